"""The collector and its reader on this machine, compared with other programs' output."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flowos.model import Facts, FileSystemFacts, MeasureError, MeasurementRequest
from flowos.operations._facts import facts
from flowos.probes.facts import read_facts

PROGRAMS = Path(read_facts.__code__.co_filename).parent / "programs"
COLLECTOR = PROGRAMS / "collect.py"
NO_PATH = {**os.environ, "PATH": ""}
OF_COLLECTOR = ("found_files.py", "kept_trials.py", "mpi_wrappers.py", "program_output.py")


@pytest.fixture(scope="module")
def here() -> Facts:
    return facts()


def run(program: str, *words: str, **variables: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, PROGRAMS / program, *words],
        capture_output=True,
        env={**os.environ, **variables},
        check=True,
        timeout=300,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def script(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


# --- this machine ----------------------------------------------------------------------------


def test_cores_sockets_and_nodes_are_those_of_lscpu(here: Facts) -> None:
    said = subprocess.run(
        ["lscpu", "--parse=CPU,CORE,SOCKET,NODE"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(",") for line in said.splitlines() if not line.startswith("#")]
    assert [cpu.number for cpu in here.cpus] == [int(row[0]) for row in rows]
    assert len({c.core for c in here.cpus}) == len({(row[1], row[2]) for row in rows})
    assert len({c.socket for c in here.cpus}) == len({row[2] for row in rows})
    assert {cpu.node for cpu in here.cpus} == {int(row[3] or 0) for row in rows}


def test_the_last_cache_is_that_of_lscpu(here: Facts) -> None:
    said = subprocess.run(
        ["lscpu", "--caches=NAME,ONE-SIZE", "--bytes", "--json"], capture_output=True, check=True
    ).stdout
    theirs = {c["name"]: int(c["one-size"]) for c in json.loads(said).get("caches", [])}
    ours = {f"L{cache.level}": cache.size_bytes for cache in here.caches if cache.level > 1}
    assert ours == {name: size for name, size in theirs.items() if not name.startswith("L1")}


def test_usable_cpus_and_memory_are_those_of_the_system(here: Facts) -> None:
    assert set(here.allowed) == os.sched_getaffinity(0)
    assert here.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert (here.kernel, here.architecture) == (os.uname().release, os.uname().machine)


def test_every_compiler_mpi_and_tool_found_can_be_started(here: Facts) -> None:
    paths = [compiler.path for compiler in here.compilers]
    paths += [path for mpi in here.mpis for path in (mpi.compiler, mpi.mpirun)]
    paths += [mpi.cxx for mpi in here.mpis if mpi.cxx]
    paths += [tool.path for tool in here.tools]
    assert paths
    assert [path for path in paths if not os.access(path, os.X_OK)] == []
    assert all(c.version and c.family != "other" for c in here.compilers)


def test_each_compiler_is_listed_once(here: Facts) -> None:
    binaries = [(os.path.realpath(c.path), c.language) for c in here.compilers]
    assert len(binaries) == len(set(binaries))


def test_numpys_own_blas_is_found_and_called_right(here: Facts) -> None:
    numpy = next(blas for blas in here.blas if blas.name == "numpy")
    assert (numpy.family, numpy.symbol, numpy.integer_bytes) == ("openblas", "scipy_{}_64_", 8)
    assert numpy.version


def test_only_the_cpus_of_our_cpuset_are_usable() -> None:
    cpu = max(os.sched_getaffinity(0))
    words = [shutil.which("taskset") or "taskset", "-c", str(cpu), sys.executable, str(COLLECTOR)]
    done = subprocess.run(words, capture_output=True, check=True, env=NO_PATH)
    found = read_facts(json.loads(done.stdout))
    assert found.allowed == (cpu,)
    assert len(found.cpus) == os.cpu_count()


def test_a_quota_of_this_kernel_is_found() -> None:
    group, limits = _new_group()
    try:
        for name, text in limits.items():
            (group / name).write_text(text)
        enter = f"echo $$ > {group}/cgroup.procs && exec {sys.executable} {COLLECTOR}"
        words = ["/bin/sh", "-c", enter]
        done = subprocess.run(words, capture_output=True, check=True, env=NO_PATH)
    finally:
        group.rmdir()
    assert read_facts(json.loads(done.stdout)).quota_cpus == 0.75


def _new_group() -> tuple[Path, dict[str, str]]:
    """A cgroup with a cpu controller, v1 or v2, and the files of a quota of 0.75 CPUs."""
    root = Path("/sys/fs/cgroup")
    at, limits = root, {"cpu.max": "75000 100000"}
    if (root / "cpu" / "cpu.cfs_quota_us").exists():
        at, limits = root / "cpu", {"cpu.cfs_quota_us": "75000", "cpu.cfs_period_us": "100000"}
    group = at / f"flowos-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    if not (group / next(iter(limits))).exists():
        group.rmdir()
        pytest.skip("the cpu controller is not given to groups here")
    return group, limits


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    """A scratch folder, and what was found with it."""
    folder = tmp_path_factory.mktemp("scratch")
    return folder, facts(MeasurementRequest(scratch=folder))


def test_a_scratch_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = facts(MeasurementRequest(scratch=tmp_path / "absent"))
    (tried,) = [each for each in found.tried if each.name == "direct I/O"]
    assert (tried.works, tried.says) == (False, "No such file or directory")
    assert "direct I/O" in {missing.what for missing in found.missing}
    assert found.storage == FileSystemFacts()


def test_the_storage_to_be_measured_is_described(scratch: tuple[Path, Facts]) -> None:
    folder, found = scratch
    said = ["stat", "--file-system", "--format=%T", str(folder)]
    kind = subprocess.run(said, capture_output=True, check=True, text=True).stdout.strip()
    assert found.storage.file_system[:3] == kind[:3]  # stat says ext2/ext3 for ext4
    assert found.storage.free_bytes


def test_nothing_is_left_in_the_scratch_folder(scratch: tuple[Path, Facts]) -> None:
    folder, found = scratch
    (tried,) = [each for each in found.tried if each.name == "direct I/O"]
    assert tried.says
    assert list(folder.iterdir()) == []


# --- compilers, MPIs and libraries made for the test -----------------------------------------


def test_a_compiler_that_hangs_costs_its_entry_and_no_more(tmp_path: Path) -> None:
    script(tmp_path, "gcc", "/bin/sleep 60 & /bin/sleep 60")
    script(tmp_path, "clang", "echo 'clang version 99.1'; exit 0")
    answer = run("collect_software.py", PATH=str(tmp_path))
    entry = {e["path"]: e for e in answer["compilers"]}
    assert "no answer in " in entry[str(tmp_path / "gcc")]["fails"]
    assert entry[str(tmp_path / "clang")]["fails"], "it says a version and builds nothing"
    found = read_facts(answer)
    assert tmp_path not in {Path(c.path).parent for c in found.compilers}


def test_a_caching_wrapper_is_no_compiler(tmp_path: Path) -> None:
    script(tmp_path, "ccache", "echo no")
    (tmp_path / "gcc").symlink_to("ccache")
    assert run("collect_software.py", PATH=str(tmp_path))["compilers"] == []


def test_an_installed_benchmark_is_looked_at_and_not_run(tmp_path: Path) -> None:
    script(tmp_path, "xhpl", "echo ran > ran; /bin/sleep 60")
    (tmp_path / "xhpcg").symlink_to(sys.executable)
    (tmp_path / "ldd").symlink_to("/usr/bin/ldd")
    answer = run("collect_software.py", PATH=str(tmp_path))
    found = {e["name"]: e for e in answer["tools"]}
    assert "not a dynamic executable" in found["xhpl"]["loads"]
    assert "libc.so" in found["xhpcg"]["loads"]
    assert found["xhpl"]["fails"] == found["xhpcg"]["fails"] == ""


def test_an_mpi_whose_headers_are_gone_is_left_out(tmp_path: Path) -> None:
    script(
        tmp_path, "mpicc.mpich", 'case "$*" in *.c*) echo "mpi.h: No such file" >&2; exit 1; esac'
    )
    script(tmp_path, "mpirun.mpich", "echo 'HYDRA build details: Version: 4.0.2'")
    answer = run("collect_software.py", PATH=str(tmp_path))
    (entry,) = [e for e in answer["mpis"] if e["compiler"] == str(tmp_path / "mpicc.mpich")]
    assert entry["mpirun"] == str(tmp_path / "mpirun.mpich")
    assert entry["fails"] == "mpi.h: No such file"


def test_an_mpis_cxx_compiler_that_makes_no_program_is_none(tmp_path: Path) -> None:
    for name in ("mpicc.mpich", "mpicc"):
        script(tmp_path, name, "exit 0")
        script(tmp_path, name.replace("mpicc", "mpirun"), "echo 'HYDRA Version: 4.0.2'")
    script(tmp_path, "mpicxx.mpich", "echo 'g++: not found' >&2; exit 1")
    script(tmp_path, "mpic++", "exit 0")
    answer = run("collect_software.py", PATH=str(tmp_path))
    found = {e["compiler"]: e["cxx"] for e in answer["mpis"]}
    assert found[str(tmp_path / "mpicc.mpich")] == ""
    assert found[str(tmp_path / "mpicc")] == str(tmp_path / "mpic++")


OWN = "g++ (Own) 12.2.0"
SHOWN: dict[str, list[str] | None] = {
    "g++ -c a.cpp -I/mpi/include -L/mpi/lib -Wl,-z,relro -lmpi -pthread": [],
    "g++ -g -flto=auto -c 'a.cpp' -I'/of mpi'": ["-g", "-flto=auto"],
    "": None,
    "no-such-compiler -c a.cpp": None,
    "g++ -isystem /mpi -c a.cpp": None,
    "ccache g++ -c a.cpp": None,
    "g++ 'a": None,
}
"""The command by which a C++ wrapper would compile, and the flags that are known by it."""


Calls = tuple[str, dict[tuple[str, str], Any]]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """g++; what C++ wrappers that show this and say this version are known to call, all at once."""
    folder = tmp_path_factory.mktemp("mpis")
    gxx = script(folder, "g++", f"echo '{OWN}'")
    shown = [*((shows, OWN) for shows in SHOWN), ("g++ -c a.cpp", "g++ (Other) 13.1.0")]
    places = [folder / str(number) for number in range(len(shown))]
    for place, (shows, version) in zip(places, shown, strict=True):
        place.mkdir()
        shown_by = f'case "$*" in *-show*) echo "{shows}";; *) echo "{version}";; esac'
        script(place, "mpicxx", shown_by)
        for name in ("mpicc", "mpirun"):
            script(place, name, "echo 'HYDRA Version: 4.0.2'")
    answer = run("collect_software.py", PATH=":".join(map(str, [folder, *places])))
    found = {Path(e["cxx"]).parent: e.get("cxx_calls") for e in answer["mpis"]}
    return str(gxx), {each: found[place] for place, each in zip(places, shown, strict=True)}


@pytest.mark.parametrize("shows", [shows for shows, flags in SHOWN.items() if flags is not None])
def test_what_an_mpis_cxx_wrapper_calls_is_known_by_what_it_shows(calls: Calls, shows: str) -> None:
    gxx, known = calls
    assert known[shows, OWN] == [gxx, *(SHOWN[shows] or ())]


@pytest.mark.parametrize("shows", [shows for shows, flags in SHOWN.items() if flags is None])
def test_what_is_shown_in_another_way_is_not_known(calls: Calls, shows: str) -> None:
    assert calls[1][shows, OWN] is None


def test_a_compiler_of_another_version_than_its_wrapper_is_not_known(calls: Calls) -> None:
    assert calls[1]["g++ -c a.cpp", "g++ (Other) 13.1.0"] is None


def test_compilers_beneath_the_wrappers_of_this_machine_are_known(here: Facts) -> None:
    known = {str(Path(compiler.path).resolve()) for compiler in here.compilers}
    for mpi in here.mpis:
        if mpi.cxx:
            assert str(Path(mpi.cxx_calls[0]).resolve()) in known
            assert mpi.cxx_version


DGEMM = """
#include <stdint.h>
void {name}(char *ta, char *tb, {integer} *m, {integer} *n, {integer} *k, double *alpha, double *a,
            {integer} *lda, double *b, {integer} *ldb, double *beta, double *c, {integer} *ldc) {{
  (void)ta; (void)tb; (void)beta;
  if (*m < 0) return;
  for ({integer} i = 0; i < *m; i++)
    for ({integer} j = 0; j < *n; j++) {{
      double sum = {start};
      for ({integer} l = 0; l < *k; l++) sum += a[i + l * *lda] * b[l + j * *ldb];
      c[i + j * *ldc] = *alpha * sum;
    }}
}}
__attribute__((constructor)) static void opened(void) {{ {opened} }}
"""


def blas(folder: Path, **parts: str) -> dict[str, Any]:
    """Compile a library of one function and ask open_blas.py about it."""
    usual = {"name": "dgemm_", "integer": "int32_t", "start": "0", "opened": ""}
    source, library = folder / "blas.c", folder / "libblas.so"
    source.write_text("#include <stdlib.h>\n" + DGEMM.format(**{**usual, **parts}))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return run("open_blas.py", str(library))


@pytest.mark.parametrize(("integer", "size"), [("int32_t", 4), ("int64_t", 8)])
@pytest.mark.parametrize(
    ("name", "symbol"), [("dgemm_", "{}_"), ("scipy_dgemm_64_", "scipy_{}_64_")]
)
def test_the_size_of_a_librarys_integers_is_tried_not_guessed(
    tmp_path: Path, integer: str, size: int, name: str, symbol: str
) -> None:
    answer = blas(tmp_path, integer=integer, name=name)
    assert (answer["integer_bytes"], answer["symbol"]) == (size, symbol)


def test_a_library_that_multiplies_wrongly_is_refused(tmp_path: Path) -> None:
    assert blas(tmp_path, start="1") == {"fails": "dgemm gives a wrong product"}


def test_a_library_without_dgemm_is_refused(tmp_path: Path) -> None:
    assert blas(tmp_path, name="sgemm_") == {"fails": "has no dgemm"}


def test_a_library_that_crashes_when_opened_is_left_out(tmp_path: Path) -> None:
    """Looked for as an unpacked root, where the collector meets it among others."""
    at = tmp_path / "usr" / "lib" / "x-linux-gnu"
    at.mkdir(parents=True)
    with pytest.raises(subprocess.CalledProcessError):
        blas(at, opened="abort();")
    (at / "libblis.so").write_text("no library")
    answer = run("collect_software.py", "--deps", str(tmp_path), PATH="")
    fails = {Path(e["path"]).name: e["fails"] for e in answer["libraries"] if str(at) in e["path"]}
    assert fails["libblas.so"] == "exit -6"
    assert "file too short" in fails["libblis.so"] or "invalid ELF" in fails["libblis.so"]


# --- the collector as a program --------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["collect.py", "collect_software.py", "cuda_devices.py", "open_blas.py", *OF_COLLECTOR]
)
def test_the_collectors_programs_are_python_3_8_and_import_the_standard_library_only(
    name: str,
) -> None:
    tree = ast.parse((PROGRAMS / name).read_text(), feature_version=(3, 8))
    plain = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    plain += [n.module or "." for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    ours = {file.removesuffix(".py") for file in OF_COLLECTOR}
    assert {module.split(".")[0] for module in plain} <= sys.stdlib_module_names | ours


def test_a_dump_of_another_machine_can_be_read(tmp_path: Path) -> None:
    at = tmp_path / "sys/devices/system/cpu"
    for cpu in range(2):
        (at / f"cpu{cpu}/topology").mkdir(parents=True)
        (at / f"cpu{cpu}/topology/thread_siblings_list").write_text("0-1\n")
    (at / "online").write_text("0-1\n")
    found = read_facts(run("collect.py", "--root", str(tmp_path)))
    assert [(cpu.number, cpu.core) for cpu in found.cpus] == [(0, 0), (1, 0)]
    assert found.memory_bytes == 0


GROUPS = {
    "12:cpu,cpuacct:/docker/c1/task\n0::/": {
        "31 25 0:27 /docker/c1 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct": (
            "sys/fs/cgroup/cpu,cpuacct/task/cpu.cfs_quota_us"
        ),
    },
    "0::/../other/job": {
        "30 24 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate": (
            "sys/fs/cgroup/other/job/cpu.max"
        ),
    },
}


@pytest.mark.parametrize("groups", GROUPS)
def test_limits_are_found_in_containers_however_their_groups_are_mounted(
    tmp_path: Path, groups: str
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for mount, path in GROUPS[groups].items():
        (tmp_path / "proc/self/mountinfo").write_text(f"22 27 0:21 / /proc rw - proc p rw\n{mount}")
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("50000 100000" if path.endswith("max") else "50000")
        (tmp_path / path).with_name("cpu.cfs_period_us").write_text("100000")
    assert read_facts(run("collect.py", "--root", str(tmp_path))).quota_cpus == 0.5


def test_a_collector_that_fails_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(MeasureError, match="cannot be looked at: the collector exited with 1"):
        facts()
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    with pytest.raises(MeasureError, match="cannot be read"):
        facts()
    monkeypatch.setattr(sys, "executable", "/absent/python")
    with pytest.raises(MeasureError, match=r"cannot be looked at: [^(]*/absent/python"):
        facts()
