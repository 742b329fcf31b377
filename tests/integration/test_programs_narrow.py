"""Kernels of flops for bf16 and 8-bit integers: read where they cannot run, run where they can."""

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import as_file
from pathlib import Path, PurePath
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray

from flowos.model import (
    Case,
    Compiler,
    Exited,
    Facts,
    LogicalCpu,
    Measurement,
    MeasurementRequest,
    Outcome,
    Unmeasured,
)
from flowos.probes._build import Build
from flowos.probes._facts_processor import blocks_of, instruction_sets_of
from flowos.probes.flops import Flops

PROBE = Flops()
CPU = min(os.sched_getaffinity(0))
X86 = platform.machine() == "x86_64"
QEMU, CROSS = shutil.which("qemu-aarch64-static"), shutil.which("aarch64-linux-gnu-gcc")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
SHORT = ("--cpus", str(CPU), "--repetitions", "1", "--seconds", "0.001")

only_x86 = pytest.mark.skipif(not X86, reason="these kernels are of x86-64")
on_arm = pytest.mark.skipif(
    not (QEMU and CROSS), reason="needs gcc-aarch64-linux-gnu and qemu-user-static"
)


def build_by(compiler: str) -> Build:
    """As the probe compiles its program on a machine with this compiler."""
    path = PurePath(shutil.which(compiler) or "")
    facts = Facts(
        host="h",
        system="s",
        kernel="k",
        architecture="x86_64",
        cpu_model="",
        cpus=(LogicalCpu(number=CPU, core=0, socket=0, node=0),),
        allowed=(CPU,),
        compilers=(Compiler(name="c", family="gcc", language="c", version="", path=path),),
    )
    cases = PROBE.cases(facts, MeasurementRequest())
    assert not isinstance(cases, Unmeasured)
    build = PROBE.program(cases[0]).build
    assert build
    return build


def compiled(compiler: str, out: Path, source: Path | None = None, *more: str) -> Path:
    build = build_by(compiler)
    with as_file(build.sources[0]) as own:
        words = (build.compiler, *build.flags, *more, f"-I{own.parent}", str(source or own))
        subprocess.run((*words, "-o", str(out), *build.libraries), check=True, timeout=120)
    return out


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("flops")

    def of(compiler: str) -> Path:
        more = ("-static",) if compiler == CROSS else ()
        return compiled(compiler, folder / f"flops-{Path(compiler).name}", None, *more)

    return cache(of)


def changed(tmp_path: Path, header: str, old: str, new: str) -> Path:
    """A copy of the source in which one header has something else."""
    with as_file(build_by("gcc").sources[0]) as own:
        for file in own.parent.glob("flo*.[ch]"):
            shutil.copy(file, tmp_path)
    text = (tmp_path / header).read_text()
    assert text.count(old) == 1
    (tmp_path / header).write_text(text.replace(old, new))
    return tmp_path / "flops.c"


def run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in argv]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)


# --- read ------------------------------------------------------------------------------------


def instructions(objdump: str, binary: Path, function: str) -> list[tuple[str, str]]:
    """(address, instruction) of a function, as binutils reads its bytes."""
    listing = run(objdump, "-d", "--no-show-raw-insn", binary).stdout
    body = listing.split(f"<{function}>:\n")[1].split("\n\n")[0]
    found = re.findall(r"^\s*([0-9a-f]+):\t(.+)$", body, re.MULTILINE)
    return [(address, " ".join(text.split(" //")[0].split())) for address, text in found]


def loop_of(found: list[tuple[str, str]]) -> list[str]:
    """What is between the last jump back and where it goes, both included."""
    addresses = [address for address, _ in found]
    last = max(i for i, (_, text) in enumerate(found) if re.match(r"(jne|b\.ne) ", text))
    first = addresses.index(found[last][1].split()[1])
    assert first < last
    return [text for _, text in found[first : last + 1]]


def passes(chains: int, line: str, take: str, add: str) -> list[str]:
    return [line.format(a=a, i=i) for a in (take, add) for i in range(chains)]


X86_LOOPS = {
    "avx_vnni": passes(12, "{{vex}} vpdpbusd %ymm{a},%ymm12,%ymm{i}", "14", "13"),
    "avx512_vnni": passes(24, "vpdpbusd %zmm{a},%zmm24,%zmm{i}", "26", "25"),
    "avx512_bf16": passes(24, "vdpbf16ps %zmm{a},%zmm24,%zmm{i}", "26", "25"),
    "amx_int8": passes(5, "tdpbusd %tmm{a},%tmm5,%tmm{i}", "7", "6"),
    "amx_bf16": passes(5, "tdpbf16ps %tmm{a},%tmm5,%tmm{i}", "7", "6"),
}
ARM_LOOPS = {
    "neon_sdot": passes(24, "sdot v{i}.4s, v24.16b, v{a}.16b", "26", "25"),
    "neon_smmla": passes(24, "smmla v{i}.4s, v24.16b, v{a}.16b", "26", "25"),
    "neon_bfdot": passes(24, "bfdot v{i}.4s, v24.8h, v{a}.8h", "26", "25"),
    "neon_bfmmla": passes(24, "bfmmla v{i}.4s, v24.8h, v{a}.8h", "26", "25"),
}


@only_x86
@pytest.mark.parametrize("kernel", X86_LOOPS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_loop_has_its_instructions_and_nothing_else(
    program: Any, compiler: str, kernel: str
) -> None:
    *work, count, back = loop_of(instructions("objdump", program(compiler), kernel))
    assert work == X86_LOOPS[kernel]
    assert (count.split()[0], back.split()[0]) == ("dec", "jne")
    assert "(" not in count, "it counts in a register"


@on_arm
@pytest.mark.parametrize("kernel", ARM_LOOPS)
def test_a_loop_of_aarch64_has_its_instructions_and_nothing_else(program: Any, kernel: str) -> None:
    objdump = shutil.which("aarch64-linux-gnu-objdump")
    assert objdump
    *work, count, back = loop_of(instructions(objdump, program(CROSS), kernel))
    assert work == ARM_LOOPS[kernel]
    assert (count.split()[0], back.split()[0]) == ("subs", "b.ne")


@only_x86
@pytest.mark.parametrize("compiler", COMPILERS)
def test_tiles_are_loaded_and_stored_where_they_belong(program: Any, compiler: str) -> None:
    found = [text for _, text in instructions("objdump", program(compiler), "amx_int8")]
    of_tiles = [text for text in found if "tile" in text]
    at = [f"{1024 * i:#x}(%rax,%rcx,1)" for i in range(8)]
    assert of_tiles == [
        "ldtilecfg (%rdx)",
        *(f"tileloadd {at[i]},%tmm{i}" for i in range(8)),
        *(f"tilestored %tmm{i},{at[i]}" for i in range(5)),
        "tilerelease",
    ]
    eight = [64] * 8 + [0] * 8
    shape = b"\x01" + bytes(15) + numpy.array(eight, "<u2").tobytes() + bytes([16] * 8 + [0] * 8)
    assert shape in program(compiler).read_bytes()


# --- what comes out --------------------------------------------------------------------------

DRIVER = """
#include "flops_dot.h"
#include "flops_x86.h"
int main(int count, char **words) {
  static union registers in, out;
  for (unsigned k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
    if (count != 2 || strcmp(kernels[k].isa, words[1])) continue;
    struct kernel kernel = kernels[k];
    kernel.vector_bytes = strstr(kernel.isa, "amx")     ? tile
                          : strstr(kernel.isa, "avx512") ? zmm
                                                         : ymm;
    fill_dots(&kernel, &in);
    fwrite(&in, sizeof in, 1, stdout);
    fflush(stdout);
    if (fread(&out, sizeof out, 1, stdin) != 1) return 2;
    check_dots(&kernel, &in, &out);
    return 0;
  }
  return 3;
}
"""
WIDTHS = "".join(
    f"static int {name}(void) {{ return {size}; }}\n"
    for name, size in (("ymm", 32), ("zmm", 64), ("tile", 1024))
)


def by_the_manual(isa: str, raw: bytes) -> bytes:
    """The chains after m . a was added to each, by the pseudocode of Intel's manual."""
    chains, size = {"amx": (5, 1024), "avx512": (24, 64), "avx": (12, 32)}[isa.split("_")[0]]
    real = isa.endswith("bf16")
    sums = numpy.frombuffer(raw, "<f4" if real else "<i4", chains * size // 4)
    constants = raw[chains * size : (chains + 2) * size]
    if real:
        bits = numpy.frombuffer(constants, "<u2").astype("<u4") << 16
        m, a = bits.view("<f4").reshape(2, size // 4, 2)
    else:
        m = numpy.frombuffer(constants[:size], "<u1").astype("<i4").reshape(size // 4, 4)
        a = numpy.frombuffer(constants[size:], "<i1").astype("<i4").reshape(size // 4, 4)
    dots: NDArray[Any] = (m * a).sum(axis=1)
    if isa.startswith("amx"):
        rows, columns = m.reshape(16, 16, -1), a.reshape(16, 16, -1)
        dots = numpy.einsum("mkj,knj->mn", rows, columns).ravel()
    out: bytes = (sums.reshape(chains, -1) + dots).astype(sums.dtype).tobytes()
    return out + bytes(len(raw) - len(out))


@only_x86
@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("isa", X86_LOOPS)
def test_the_check_expects_exactly_what_the_manual_says(
    tmp_path: Path, isa: str, wrong: int
) -> None:
    source = tmp_path / "driver.c"
    source.write_text(DRIVER.replace("int main", f"{WIDTHS}int main"))
    driver = compiled("gcc", tmp_path / "driver", source)
    with subprocess.Popen(
        [driver, isa], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        raw = process.stdout.read(32 * 256)
        out = bytearray(by_the_manual(isa, raw))
        out[2 * wrong] ^= 1 * wrong
        _, said = process.communicate(bytes(out), timeout=60)
    assert process.returncode == wrong, said
    assert (f"{isa}, ".encode() in said and b"chain 0 ended at" in said) is bool(wrong)


# --- run -------------------------------------------------------------------------------------


def told(readings: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Sets that were not used, and why."""
    notes = readings[0]["notes"].items()
    return {
        note.removeprefix("refused "): why for note, why in notes if note.startswith("refused ")
    }


@only_x86
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_sets_that_run_here_are_those_of_the_facts(program: Any, compiler: str) -> None:
    facts = instruction_sets_of(blocks_of(Path("/proc/cpuinfo").read_text()), (CPU,))
    done = run(program(compiler), *SHORT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["readings"]
    refused = told(found)
    assert set(refused) <= {"amx_int8, amx_bf16"}
    assert {r["levels"]["isa"] for r in found} == set(facts) - set(", ".join(refused).split(", "))


@on_arm
def test_bf16_and_integers_give_exact_answers_on_aarch64(program: Any) -> None:
    """Emulated: every kernel checks its own answer; the rates mean nothing."""
    assert QEMU
    done = run(QEMU, "-cpu", "max", program(CROSS), *SHORT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["readings"]
    narrow = [r for r in found if r["levels"]["type"] in ("bf16", "i8")]
    assert [(r["levels"]["isa"], r["metric"], r["unit"]) for r in narrow] == [
        ("neon_dotprod", "ops", "op/s"),
        ("neon_i8mm", "ops", "op/s"),
        ("neon_bf16", "flops", "flop/s"),
    ]


@on_arm
@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        (
            "DOT_PASS(word, 26)",
            "DOT_PASS(word, 25)",
            dict.fromkeys(("neon_dotprod", "neon_i8mm", "neon_bf16"), "its sums are wrong"),
        ),
        ("neon_sdot, 0x4e809400", "neon_sdot, 0", {"neon_dotprod": "Illegal instruction"}),
        ("neon_bfmmla, 0x6e40ec00", "neon_bfmmla, 0", {}),
    ],
    ids=["all only add", "one is no instruction", "another of its set works"],
)
def test_a_set_that_fails_is_told_and_the_others_measured(
    tmp_path: Path, old: str, new: str, refused: dict[str, str]
) -> None:
    assert QEMU
    assert CROSS
    source = changed(tmp_path, "flops_arm.h", old, new)
    broken = compiled(CROSS, tmp_path / "broken", source, "-static")
    done = run(QEMU, "-cpu", "max", broken, *SHORT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["readings"]
    assert told(found) == refused
    isas = {"neon", "sve", "neon_dotprod", "neon_i8mm", "neon_bf16"}
    assert {r["levels"]["isa"] for r in found} == isas - set(refused)


@on_arm
def test_children_are_tried_also_where_their_ends_are_ignored(program: Any) -> None:
    assert QEMU
    ignoring = ("sh", "-c", 'trap "" CHLD; exec "$@"', "sh")
    done = run(*ignoring, QEMU, "-cpu", "max", program(CROSS), *SHORT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["readings"]
    assert told(found) == {}
    assert "neon_bf16" in {r["levels"]["isa"] for r in found}


@only_x86
@pytest.mark.skipif(
    "amx_tile" in Path("/proc/cpuinfo").read_text(), reason="this kernel gives the tiles"
)
def test_a_kernel_that_refuses_the_tiles_is_told_and_the_rest_measured(tmp_path: Path) -> None:
    """A processor that says that it has AMX, and the refusal of this machine's own kernel."""
    old = "static int has_tiles(void) { return extension(0, EDX, 24); }"
    source = changed(tmp_path, "flops_x86.h", old, "static int has_tiles(void) { return 1; }")
    done = run(compiled("gcc", tmp_path / "claims", source), *SHORT)
    assert done.returncode == 0, done.stderr
    readings = PROBE.read(Case("flops"), Outcome(end=Exited(0), stdout=done.stdout.encode()))
    assert not isinstance(readings, Unmeasured)
    one = readings[0]
    case = Case("flops", levels=(("cores", "1"), *one.levels), details=one.notes)
    value = one.values[0]
    m = Measurement(
        case=case,
        metric=one.metric,
        unit=one.unit,
        count=1,
        median=value,
        low=value,
        high=value,
        best=value,
    )
    ((left, told),) = PROBE.left_out([m])
    assert left.level("isa") == "amx_int8, amx_bf16"
    assert re.fullmatch(r"the kernel refuses the tiles of AMX: [A-Z][\w ]+", told.reason)
