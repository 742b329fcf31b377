"""The programs through PyTorch on processors: right results, checked; clear refusals."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from flowos.probes import package_data
from flowos.probes._base import CANNOT_MEASURE_HERE

# Not imported here: each of pytest's processes collects this file.
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="pip install torch")

PROGRAMS = Path(str(package_data("probes/programs")))


@pytest.fixture(autouse=True)
def programs_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROGRAMS)


Done = subprocess.CompletedProcess[str]
Forked = Callable[..., Done]


def run(program: str, *words: str) -> Done:
    line = [sys.executable, str(PROGRAMS / program), *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def starter() -> Iterator["subprocess.Popen[str]"]:
    line = [sys.executable, str(Path(__file__).with_name("forked_programs.py"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as started:
        yield started


@pytest.fixture
def forked(starter: "subprocess.Popen[str]", tmp_path: Path) -> Forked:
    """As `run`, by a process that has imported PyTorch for all of them."""

    def forked(program: str, *words: str) -> Done:
        line, out, error = [str(PROGRAMS / program), *words], tmp_path / "out", tmp_path / "error"
        assert starter.stdin
        assert starter.stdout
        starter.stdin.write(json.dumps({"line": line, "out": str(out), "error": str(error)}) + "\n")
        starter.stdin.flush()
        code = int(starter.stdout.readline())
        return subprocess.CompletedProcess(line, code, out.read_text(), error.read_text())

    return forked


def readings(done: Done) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["readings"]
    assert all(value > 0 for reading in found for value in reading["values"])
    return found


def levels(found: list[dict[str, Any]], name: str) -> list[str]:
    return [reading["levels"][name] for reading in found]


def test_products_of_each_type_that_processors_have() -> None:
    types = ("--types", "f64,f32,bf16,fp8")
    words = ("gemm", "--device", "cpu", "--seconds", "0.1", "--sizes", "16,48", *types)
    found = readings(run("torch_device.py", *words))
    assert levels(found, "type") == ["f64", "f64", "f32", "f32", "bf16", "bf16"]
    assert levels(found, "n") == ["16", "48"] * 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("gem", "invalid choice: 'gem'"),
        ("gemm --sizes 16 --types f31", "--types f31: give some of f64,f32,"),
        ("deepbench", "--types : give some of f64,f32,"),
        ("gemm --sizes 16,x --types f32", "--sizes 16,x: give whole numbers above 0"),
        ("copy --sizes 0", "--sizes 0: give whole numbers above 0"),
        ("stream --bytes 7", "--bytes 7: give 8 or more"),
        ("stream --bytes 8 --seconds nan", "--seconds nan: give more than 0"),
    ],
)
def test_a_wrong_word_is_refused_before_pytorch_is_imported(
    words: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('it was imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run(
        "torch_device.py", *words.split()[:1], "--device=cpu", "--seconds=1", *words.split()[1:]
    )
    assert done.returncode == 2, done.stdout
    assert complaint in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "why", [ImportError("no module torch"), OSError("libcudart.so.12: cannot open shared object")]
)
def test_a_pytorch_that_cannot_be_imported_is_said(
    why: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text(f"raise {why!r}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run("torch_device.py", *["stream", "--device", "cpu", "--seconds", "1", "--bytes", "8"])
    assert (done.returncode, done.stderr) == (77, "")
    assert json.loads(done.stdout) == {"cannot": f"PyTorch cannot be imported: {why}"}


def test_the_kernels_of_stream(forked: Forked) -> None:
    words = ("stream", "--device", "cpu", "--seconds", "0.1", "--bytes", "80000")
    found = readings(forked("torch_device.py", *words))
    assert levels(found, "kernel") == ["copy", "scale", "add", "triad"]


def test_what_needs_a_gpu_says_so(forked: Forked) -> None:
    words = ("--device", "cuda:0", "--bodies", "64", "--types", "f32", "--seconds", "1")
    done = forked("nbody_gpu.py", *words)
    if done.returncode:  # else there is one
        assert done.returncode == CANNOT_MEASURE_HERE, done.stderr
        assert json.loads(done.stdout)["cannot"]


@pytest.mark.parametrize("devices", ["cpu", "cpu,cpu", "cpu,cpu,cpu,cpu"])
def test_bodies_are_accelerated_by_one_device_or_as_parts_by_several(
    devices: str, forked: Forked
) -> None:
    words = ("--device", devices, "--bodies", "512", "--types", "f32,f64", "--seconds", "0.01")
    found = readings(forked("nbody_gpu.py", *words))
    assert levels(found, "type") == ["f32", "f64"], "and no energy, which no meter counts"


@pytest.mark.parametrize("devices", [2, 4])
def test_split_bodies_are_accelerated_as_whole_ones_also_after_they_have_moved(
    devices: int,
) -> None:
    import torch
    from gpu_common import Device
    from split_bodies import SplitBodies

    whole = after_two_steps([Device("cpu")])
    split = after_two_steps([Device("cpu")] * devices)
    assert float((whole - split).abs().max() / whole.abs().max()) < 1e-13
    torch.manual_seed(1)
    lost = SplitBodies([Device("cpu")] * devices, "f64", 512)
    lost.accelerate(lost.held[0], lost.found[0], 1e-4)
    assert lost.error() != lost.error(), "positions that were not gathered are no numbers"


def after_two_steps(devices: list[Any]) -> Any:
    """The accelerations of all bodies, in their order, after each has moved by its first one."""
    import torch
    from split_bodies import SplitBodies

    torch.manual_seed(1)
    bodies = SplitBodies(devices, "f64", 512)
    bodies.step()
    for held, found in zip(bodies.held, bodies.found, strict=True):
        for axis in range(3):
            held[axis][: bodies.part] += 1e-4 * found[axis]
    bodies.step()
    assert bodies.error() < 1e-12
    return torch.stack([torch.cat(parts) for parts in zip(*bodies.found, strict=True)])


@pytest.mark.parametrize(
    ("bodies", "types", "said"),
    [
        ("512", "f32", "--bodies 512: give a multiple of 192"),
        ("0", "f32", "--bodies 0: give a multiple of 192"),
        ("192", "f32,f16", "--types f32,f16: give f32, f64 or both"),
    ],
)
def test_what_cannot_be_split_or_computed_is_refused_in_one_line(
    bodies: str, types: str, said: str
) -> None:
    words = ("--device", "cpu,cpu,cpu", "--bodies", bodies, "--types", types, "--seconds", "1")
    done = run("nbody_gpu.py", *words)
    assert (done.returncode, done.stderr) == (1, f"nbody_gpu: {said}\n")


class CountedMeter:
    """In place of NVML, which is not here: so many joules with each call."""

    def __init__(self, joules: float | None) -> None:
        self.each, self.calls = joules, 0

    def called(self) -> None:
        self.calls += 1

    def joules(self) -> float | None:
        return None if self.each is None else 5.0 + self.each * self.calls

    def slowed(self) -> str:
        return ""


def test_energy_is_that_of_all_devices_and_of_a_call() -> None:
    from gpu_common import Device, energy_readings

    meters = [CountedMeter(2.0), CountedMeter(4.0)]
    devices = [Device("cpu"), Device("cpu")]
    for device, meter in zip(devices, meters, strict=True):
        device.meter = meter  # type: ignore[assignment]

    def call() -> None:
        for meter in meters:
            meter.called()

    rate = ("flops", "flop/s", 12.0)
    per_joule, power = energy_readings(devices, call, rate, type="f32")
    assert (per_joule["metric"], per_joule["unit"]) == ("flops_per_joule", "flop/J")
    assert per_joule["values"] == pytest.approx([2.0])
    assert (power["metric"], power["unit"], power["levels"]) == ("power", "W", {"type": "f32"})
    assert power["values"][0] > 0
    meters[1].each = None
    assert list(energy_readings(devices, call, rate)) == [], "a meter of one says too little"
    meters[0].each, meters[1].each = 0.0, 0.0
    assert list(energy_readings(devices, call, rate)) == [], "a meter that stands still"


def test_collectives_of_two_ranks_count_as_nccl_tests_does(forked: Forked) -> None:
    words = ("--ranks", "2", "--backend", "gloo", "--seconds", "0.1", "--sizes", "8,4096")
    found = readings(forked("torch_collectives.py", *words))
    by = {tuple([r["metric"], *r["levels"].values()]): r["values"] for r in found}
    assert {key[1] for key in by} == {"allreduce", "allgather", "reducescatter"}
    for kind, factor in (("allreduce", 1.0), ("allgather", 0.5), ("reducescatter", 0.5)):
        times, bus = by["time", kind, "4096"], by["bus_bandwidth", kind, "4096"]
        assert bus == pytest.approx([factor * 4096 / seconds for seconds in times])


def test_a_rank_that_fails_ends_the_others(forked: Forked) -> None:
    words = ("--ranks", "2", "--backend", "gloo", "--seconds", "0.1", "--sizes", "8,many")
    done = forked("torch_collectives.py", *words)
    assert done.returncode == 1
    assert "many" in done.stderr


WITH_ANOTHER_END = """\
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
import torch_remote_copy as program

right = program.pass_to_host

def ends():
    os._exit(0)

def waits():
    signal.pause()

def lies(near, there, device):
    there += 1
    right(near, there, device)

how = sys.argv.pop(1)
if how == "lies":
    program.pass_to_host = lies
else:
    program.next_order = {"ends": ends, "waits": waits}[how]
sys.exit(program.main())
"""


def measured(forked: Forked, sizes: str, seconds: str) -> set[tuple[str, ...]]:
    """Attachment, direction and bytes."""
    found = readings(forked("torch_remote_copy.py", "--seconds", seconds, "--sizes", sizes))
    assert all("device" in reading["levels"] for reading in found)
    axes = ("attachment", "to", "bytes")
    return {tuple(reading["levels"][axis] for axis in axes) for reading in found}


def test_bytes_of_whole_parts_and_of_others_go_both_ways_by_both_attachments(
    forked: Forked,
) -> None:
    sizes = ("1", "4194304", "9000001")
    assert measured(forked, ",".join(sizes), "120") == {
        (attachment, to, size)
        for attachment in ("local", "remote")
        for to in ("device", "host")
        for size in sizes
    }


def test_sizes_for_which_there_is_no_time_are_left_out(forked: Forked) -> None:
    found = {size for *_, size in measured(forked, "8,64,65536", "1e-9")}
    assert found == {"8", "64"}, "the first two say how long the others take"


@pytest.mark.parametrize(
    ("how", "patience", "said"),
    [
        ("ends", "120", ": process 1 of 2, "),
        ("waits", "1", ": Timed out "),
        ("lies", "120", ": 4096 bytes came back from the remote device as others"),
    ],
)
def test_an_end_that_is_lost_late_or_wrong_is_one_line(
    how: str,
    patience: str,
    said: str,
    forked: Forked,
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(WITH_ANOTHER_END)
    sizes = ("--seconds", "0.1", "--sizes", "4096", "--patience", patience)
    done = forked(str(program), str(PROGRAMS), how, *sizes)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("torch_remote_copy: ")
    assert said in line


@pytest.mark.parametrize(
    "why", [ImportError("no module torch"), OSError("libcudart.so.12: cannot open shared object")]
)
def test_a_node_without_pytorch_is_one_line(tmp_path: Path, why: Exception) -> None:
    """Of two nodes, which both are this one: mpirun or srun would start them elsewhere."""
    has = {"first": "distributed = None", "second": f"raise {why!r}"}
    for name, text in has.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "torch.py").write_text(f"{text}\n")
    far = node_of_two(1, tmp_path, path=str(tmp_path / "second"))
    first = node_of_two(0, tmp_path, path=str(tmp_path / "first"))
    stdout, stderr = first.communicate(timeout=120)
    assert (first.returncode, stdout) == (1, "")
    (line,) = stderr.splitlines()
    assert line.startswith("torch_remote_copy: ")
    assert line.endswith(f"PyTorch cannot be imported: {why}")
    assert (*far.communicate(timeout=120), far.returncode) == ("", "", 0)


def node_of_two(number: int, folder: Path, path: str) -> "subprocess.Popen[str]":
    numbers = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
    variables = {name: value for name, value in os.environ.items() if name not in numbers}
    words = ("--seconds", "0.1", "--sizes", "4096", "--nodes", "2")
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS / "torch_remote_copy.py"), *words],
        env={**variables, "SLURM_PROCID": str(number), "PYTHONPATH": path},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
