"""Compilers, MPIs, BLAS libraries and tools, from what real ones say of themselves."""

from pathlib import PurePath
from typing import Any

import pytest

from flowos.model import Argv, Facts
from flowos.probes import pool_words
from flowos.probes._facts_software import version_in
from flowos.probes.facts import read_facts

FSF = "Copyright (C) 2022 Free Software Foundation, Inc."
DEBIAN = {"/etc/os-release": "ID=debian"}


def compiler(path: str, says: str, **more: object) -> dict[str, Any]:
    there = {"name": PurePath(path).name, "path": path, "language": "c", "says": says, "fails": ""}
    return {**there, "openmp": True, **more}


def mpi(compiler: str, says: str, **more: object) -> dict[str, Any]:
    mpirun = compiler.replace("mpicc", "mpirun")
    return {"compiler": compiler, "mpirun": mpirun, "says": says, "fails": "", **more}


def library(path: str, says: str, **more: object) -> dict[str, Any]:
    return {"path": path, "says": says, "symbol": "{}_", "integer_bytes": 4, "fails": "", **more}


def facts(**parts: object) -> Facts:
    return read_facts({"files": DEBIAN, "uid": 1000, **parts})


def remedies(found: Facts) -> dict[str, str]:
    return {missing.what: missing.remedy for missing in found.missing}


@pytest.mark.parametrize(
    ("path", "says", "family", "version"),
    [
        ("/usr/bin/gcc-12", f"gcc-12 (Debian 12.2.0-14) 12.2.0\n{FSF}", "gcc", "12.2.0"),
        ("/usr/bin/gcc", f"gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)\n{FSF}", "gcc", "8.5.0"),
        ("/usr/bin/clang-16", "Debian clang version 16.0.6 (15~deb12u1)", "clang", "16.0.6"),
        ("/opt/AMD/clang", "AMD clang version 16.0.3 (CLANG: AOCC_4.1.0)", "clang", "16.0.3"),
        ("/opt/i/icx", "Intel(R) oneAPI DPC++/C++ Compiler 2024.0.2 (2024)", "icx", "2024.0.2"),
        ("/opt/n/nvc", "\nnvc 23.11-0 64-bit target on x86-64 Linux -tp zen3", "nvc", "23.11"),
        ("/usr/bin/cc", "tcc version 0.9.27 (x86_64 Linux)", "other", "0.9.27"),
    ],
)
def test_compilers_are_known_by_what_they_say(
    path: str, says: str, family: str, version: str
) -> None:
    (found,) = facts(compilers=[compiler(path, says)]).compilers
    assert (found.family, found.version, found.openmp) == (family, version, True)
    assert (found.name, found.path) == (PurePath(path).name, PurePath(path))


@pytest.mark.parametrize(
    ("says", "shows", "family", "version"),
    [
        ("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to", "gcc -lmpi", "openmpi", "4.1.4"),
        ("mpirun (Open MPI) 5.0.3", "gcc -lmpi", "openmpi", "5.0.3"),
        ("HYDRA build details:\n    Version:      4.0.2", "gcc -lmpich", "mpich", "4.0.2"),
        ("HYDRA build details:\n    Version: 3.3.2", "gcc -L/opt/mvapich2/lib", "mvapich", "3.3.2"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.11 Build", "", "intel", "2021.11"),
        ("SGI MPT 2.2", "", "other", "2.2"),
    ],
)
def test_mpis_are_known_by_what_they_say(says: str, shows: str, family: str, version: str) -> None:
    (found,) = facts(mpis=[mpi("/opt/bin/mpicc", says, shows=shows)]).mpis
    assert (found.name, found.family, found.version) == (family, family, version)
    assert found.mpirun == PurePath("/opt/bin/mpirun")


WHEEL = "/s/scipy_openblas64/lib/libscipy_openblas64_.so"


@pytest.mark.parametrize(
    ("path", "says", "name", "family", "version"),
    [
        ("/l/openblas-serial/lib.so", "OpenBLAS 0.3.21", "openblas-serial", "openblas", "0.3.21"),
        ("/l/blis-openmp/libblis.so.4", "BLIS 0.9.0", "blis-openmp", "blis", "0.9.0"),
        ("/v/libmkl_rt.so.2", "oneAPI Math Kernel Library Version 2024.0", "mkl", "mkl", "2024.0"),
        ("/s/numpy.libs/lib.so", "OpenBLAS 0.3.31.188.0", "numpy", "openblas", "0.3.31.188.0"),
        (WHEEL, "OpenBLAS 0.3.29", "scipy_openblas64", "openblas", "0.3.29"),
        ("/usr/lib64/libopenblas.so.0", "OpenBLAS 0.3.9", "openblas", "openblas", "0.3.9"),
        ("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3", "", "netlib", "other", ""),
        ("/opt/arm/libarmpl_mp.so", "", "libarmpl_mp", "other", ""),
    ],
)
def test_blas_libraries_get_the_name_that_people_know(
    path: str, says: str, name: str, family: str, version: str
) -> None:
    (found,) = facts(libraries=[library(path, says)]).blas
    assert (found.name, found.family, found.version) == (name, family, version)


def test_how_a_library_is_called_is_kept() -> None:
    entry = library("/s/numpy.libs/x.so", "OpenBLAS", symbol="scipy_{}_64_", integer_bytes=8)
    (found,) = facts(libraries=[entry]).blas
    assert (found.symbol, found.integer_bytes) == ("scipy_{}_64_", 8)
    (found,) = facts(libraries=[library("/l/libopenblas.so.0", "OpenBLAS")]).blas
    assert (found.symbol, found.integer_bytes) == ("{}_", 4)


def test_a_name_names_one_thing() -> None:
    says = f"gcc (GCC) {{}}\n{FSF}"
    entries = [
        compiler("/usr/bin/gcc", says.format("8.5.0")),
        compiler("/opt/a/bin/gcc", says.format("13.1.0")),
        compiler("/opt/b/bin/gcc", says.format("13.1.0")),
        compiler("/usr/bin/g++", says.format("8.5.0"), language="c++"),
    ]
    found = facts(compilers=entries).compilers
    assert [c.name for c in found] == [
        "gcc-13.1.0-opt-a-bin", "gcc-13.1.0-opt-b-bin", "gcc-8.5.0", "g++",
    ]  # fmt: skip
    mpis = [mpi("/a/mpicc", "mpirun (Open MPI) 4.1.4"), mpi("/b/mpicc", "mpirun (Open MPI) 4.1.4")]
    assert [m.name for m in facts(mpis=mpis).mpis] == ["openmpi-4.1.4-a", "openmpi-4.1.4-b"]


def test_what_does_not_work_is_left_out_with_its_own_complaint() -> None:
    says = "gcc-12: note\ncrt1.o: cannot find the file: No such file or directory\nld returned 1"
    found = facts(
        compilers=[compiler("/usr/bin/gcc-12", FSF, fails=says, openmp=False)],
        mpis=[mpi("/usr/bin/mpicc", "Open MPI", fails="mpi.h: No such file or directory")],
        libraries=[library("/l/libblis.so.4", "", fails="exit -11")],
    )
    assert (found.compilers, found.mpis, found.blas) == ((), (), ())
    missing = {m.what: m for m in found.missing}
    assert "crt1.o: cannot find the file" in missing["/usr/bin/gcc-12"].loses
    assert missing["/usr/bin/gcc-12"].remedy == "sudo apt install gcc libc6-dev"
    assert missing["/usr/bin/mpicc"].remedy == "sudo apt install openmpi-bin libopenmpi-dev"
    assert missing["/l/libblis.so.4"].loses.endswith("exit -11")


def test_the_cxx_compiler_of_an_mpi_is_known_where_it_works() -> None:
    says = "mpirun (Open MPI) 5.0.3"
    found = facts(mpis=[mpi("/a/mpicc", says, cxx="/a/mpicxx"), mpi("/b/mpicc", says, cxx="")])
    assert [m.cxx for m in found.mpis] == [PurePath("/a/mpicxx"), None]


def test_what_an_mpis_cxx_compiler_calls_is_known_with_its_version_or_not_at_all() -> None:
    says = "mpirun (Open MPI) 5.0.3"
    calls: dict[str, Any] = {
        "cxx_calls": ["/usr/bin/g++", "-g"],
        "cxx_says": f"g++ (Debian 12.2.0-14) 12.2.0\n{FSF}",
    }
    several: list[dict[str, Any]] = [calls, calls | {"cxx_says": "none"}, {"cxx_calls": "g++"}, {}]
    entries = [mpi(f"/{n}/mpicc", says, cxx=f"/{n}/mpicxx", **of) for n, of in enumerate(several)]
    first, *others = facts(mpis=entries).mpis
    assert (first.cxx_calls, first.cxx_version) == (("/usr/bin/g++", "-g"), "12.2.0")
    assert {(m.cxx_calls, m.cxx_version) for m in others} == {((), "")}


def test_an_mpi_without_a_starter_is_left_out() -> None:
    found = facts(mpis=[mpi("/usr/bin/mpicc", "", mpirun="")])
    assert found.mpis == ()
    assert "no mpirun" in next(m.loses for m in found.missing if m.what == "/usr/bin/mpicc")


def test_a_tool_that_does_not_answer_is_missing() -> None:
    fio = {"name": "fio", "path": "/usr/bin/fio", "says": "fio-3.33\n", "fails": ""}
    assert facts(tools=[fio]).tool("fio")
    broken = facts(tools=[fio | {"fails": "no answer in 5 s"}])
    assert broken.tool("fio") is None
    assert remedies(broken)["fio"] == "look again when the machine is less busy"
    assert remedies(facts(tools=[fio | {"fails": "exit 1"}]))["fio"] == "sudo apt install fio"


@pytest.mark.parametrize(
    ("loads", "family"),
    [
        ("libmpi.so.40 => /lib/x86_64-linux-gnu/libmpi.so.40 (0x0)", "openmpi"),
        ("libmpich.so.12 => /usr/lib/libmpich.so.12 (0x0)", "mpich"),
        ("libmpi.so.12 => /opt/intel/libmpi.so.12 (0x0)", "mpich"),
        ("not a dynamic executable", ""),
    ],
)
def test_the_mpi_of_an_installed_program_is_that_of_its_library(loads: str, family: str) -> None:
    xhpl = {"name": "xhpl", "path": "/usr/bin/xhpl", "loads": loads, "fails": ""}
    tool = facts(tools=[xhpl]).tool("xhpl")
    assert tool is not None
    assert tool.mpi == family


def test_of_a_long_complaint_the_first_line_that_says_what_is_wrong_is_named() -> None:
    def complaint(fails: str) -> str:
        found = facts(compilers=[compiler("/usr/bin/gcc-12", FSF, fails=fails)])
        return next(m.loses for m in found.missing if m.what == "/usr/bin/gcc-12")

    left_out = "this compiler is left out: "
    assert complaint("note\nerror: one\nerror: two") == left_out + "error: one"
    assert complaint("one\ntwo") == left_out + "one"
    assert complaint("x" * 200) == left_out + "x" * 160


@pytest.mark.parametrize(
    "fails", ["/usr/bin/gcc: no answer in 5 s", "not looked at: the time for looking was up"]
)
def test_what_had_too_little_time_is_not_to_be_installed(fails: str) -> None:
    found = facts(compilers=[compiler("/usr/bin/gcc", FSF, fails=fails)])
    remedies = {m.what: m.remedy for m in found.missing}
    assert remedies["/usr/bin/gcc"] == remedies["C compiler"]
    assert remedies["C compiler"] == "look again when the machine is less busy"
    assert "install" in remedies["MPI"]


def test_software_that_was_not_found_in_time_is_not_to_be_installed() -> None:
    first, *others = facts(software_fails="timed out").missing
    assert (first.what, first.remedy) == ("software", "look again when the machine is less busy")
    assert not any("install" in each.remedy for each in others)


def test_a_compiler_of_another_language_is_no_c_compiler() -> None:
    found = facts(compilers=[compiler("/usr/bin/g++", FSF, language="c++")])
    assert {"C compiler", "OpenMP"} <= {m.what for m in found.missing}
    found = facts(compilers=[compiler("/usr/bin/gcc", FSF)])
    assert "C compiler" not in {m.what for m in found.missing}


def test_instruction_sets_are_missing_where_none_is_known() -> None:
    assert "instruction sets" in {m.what for m in facts().missing}
    known = facts(files={"/proc/cpuinfo": "processor : 0\nflags : avx"})
    assert "instruction sets" not in {m.what for m in known.missing}


# --- remedies --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("os_release", "uid", "fio", "mpi"),
    [
        ("ID=debian", 1000, "sudo apt install fio", "sudo apt install openmpi-bin libopenmpi-dev"),
        ("ID=debian", 0, "apt install fio", "apt install openmpi-bin libopenmpi-dev"),
        ('ID=mint\nID_LIKE="ubuntu debian"', 1, "sudo apt install fio", None),
        ('ID="rocky"\nID_LIKE="rhel"', 1, "sudo dnf install fio", "sudo dnf install openmpi-devel"),
        ('ID="sles"\nID_LIKE="suse"', 1, "sudo zypper install fio", None),
        ("ID=arch", 1, "sudo pacman -S fio", "sudo pacman -S openmpi"),
        ("ID=alpine", 0, "apk add fio", "apk add openmpi"),
        ("ID=plan9", 1, "install fio with your package manager", None),
        ("", 1, "install fio with your package manager", None),
    ],
)
def test_remedies_are_commands_of_this_system(
    os_release: str, uid: int, fio: str, mpi: str | None
) -> None:
    found = remedies(read_facts({"files": {"/etc/os-release": os_release}, "uid": uid}))
    assert found["fio"] == fio
    assert mpi is None or found["MPI"] == mpi


CLANG = "Debian clang version 16.0.6"


@pytest.mark.parametrize(
    ("entry", "system", "remedy"),
    [
        (compiler("/usr/bin/clang-16", CLANG), "debian", "sudo apt install libomp-16-dev"),
        (compiler("/usr/bin/clang", CLANG), "debian", "sudo apt install libomp-dev"),
        (compiler("/usr/bin/clang", CLANG), "fedora", "sudo dnf install libomp-devel"),
        (compiler("/usr/bin/gcc-12", FSF), "debian", "sudo apt install gcc libgomp1"),
    ],
)
def test_a_compiler_without_openmp_names_its_runtime(
    entry: dict[str, Any], system: str, remedy: str
) -> None:
    found = facts(files={"/etc/os-release": f"ID={system}"}, compilers=[entry | {"openmp": False}])
    assert remedies(found)[entry["path"]] == remedy
    assert "OpenMP" in remedies(found)


def test_openmp_is_not_asked_for_where_another_of_the_family_has_it() -> None:
    """Debian's OpenMP runtimes of two clangs exclude each other."""
    entries = [compiler("/usr/bin/clang-14", CLANG, openmp=False), compiler("/b/clang-16", CLANG)]
    assert "/usr/bin/clang-14" not in remedies(facts(compilers=entries))


def test_an_administrator_of_real_hardware_is_told_where_the_memory_speed_stands() -> None:
    def told(**more: object) -> str:
        return next(m.loses for m in facts(**more).missing if m.what == "nominal memory speed")

    assert "sudo dmidecode -t memory" in told()
    assert "dmidecode" not in told(commands={"lscpu": "Hypervisor vendor:   KVM"})
    assert "dmidecode" not in told(uid=0)


def test_what_the_kernel_does_not_allow_is_told_with_its_reason() -> None:
    tried = {
        "io_uring": {"works": False, "says": "Operation not permitted"},
        "cycle counter": {"works": False, "says": "Permission denied"},
        "pinning": {"works": False},
        "other": {"works": False, "says": "odd"},
        "memory files": {"works": True, "says": ""},
    }
    missing = {m.what: m for m in facts(tried=tried).missing}
    assert missing["io_uring"].loses.startswith("not allowed here: fio measures with libaio")
    assert missing["io_uring"].remedy == "sudo sysctl kernel.io_uring_disabled=0"
    assert missing["cycle counter"].remedy == "sudo sysctl kernel.perf_event_paranoid=2"
    assert missing["pinning"].loses.startswith("threads wander")
    assert missing["other"].remedy == "none known"
    assert missing["other"].loses.startswith("odd")
    assert "memory files" not in missing


@pytest.mark.parametrize(
    ("of_pool", "there"), [((), ""), (pool_words("hpc", 2), " --pool hpc --nodes 2")]
)
def test_what_is_to_be_measured_anew_is_so_where_it_was_measured(of_pool: Argv, there: str) -> None:
    tried = {"direct I/O": {"works": False, "says": "Invalid argument"}}
    found = remedies(read_facts({"files": DEBIAN, "tried": tried}, of_pool=of_pool))
    assert found["direct I/O"] == f"flowos measure --scratch DIR{there}"
    assert found["nominal clock"] == f"flowos measure --nominal clock_hz=VALUE{there}"
    assert found["nominal memory speed"] == (
        f"flowos measure --nominal memory_bytes_per_second=VALUE{there}"
    )
    assert "--pool" not in "".join(
        remedy for remedy in found.values() if "flowos measure" not in remedy
    )


def test_hidden_counters_of_a_virtual_machine_have_no_remedy() -> None:
    tried = {"cycle counter": {"works": False, "says": "No such file or directory"}}
    found = facts(tried=tried, commands={"lscpu": "Hypervisor vendor:   KVM"})
    assert remedies(found)["cycle counter"].startswith("none here")
    told = {m.what: m.loses for m in found.missing}
    assert told["cycle counter"] == (
        "the processor shows none: the clock is measured by dependent additions alone"
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [("no number", ""), ("only (1.2.3)", "1.2.3"), ("v7", ""), ("a-3.33 4.5", "3.33")],
)
def test_versions_are_found_outside_parentheses_first(text: str, version: str) -> None:
    assert version_in(text) == version
