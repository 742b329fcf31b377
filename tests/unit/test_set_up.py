"""What the tests need is what tools/setup brings, and a gate's answer hangs on nothing else."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parents[2]
SET_UP = (HERE / "tools/setup").read_text()
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())

STARTS = {"run", "Popen", "check_output", "check_call", "call"}
EVERY_DEBIAN_HAS = {
    *(
        "apt-cache",
        "bash",
        "dd",
        "false",
        "filefrag",
        "lscpu",
        "mount",
        "sha256sum",
        "stat",
        "taskset",
        "true",
        "umount",
        "unshare",
    )
}
"""Programs of packages that Debian requires of every machine, the smallest too."""
NOT_IN_DEBIAN = {"julia"}
"""Where one is missing, its tests are skipped."""


def trees(*folders: str, having: str = "") -> Iterator[ast.Module]:
    """Of the files with a match of `having`: to parse all takes seconds."""
    for folder in folders:
        for path in sorted((HERE / folder).rglob("*.py")):
            if re.search(having, text := path.read_text()):
                yield ast.parse(text, str(path))


def programs(tree: ast.Module) -> set[str]:
    """Looked for by `has` or `which`, or first word of a list that a subprocess is started by."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    looked_for = [call.args[0] for call in calls if name_of(call.func) in ("has", "which")]
    lists = assigned(tree)
    for call in calls:
        if name_of(call.func) in STARTS and "subprocess" in ast.unparse(call.func):
            first = call.args[0]
            looked_for += lists.get(first.id, []) if isinstance(first, ast.Name) else [first]
    return {
        w.rpartition("/")[2]
        for w in map(first_word, looked_for)
        if re.fullmatch(r"\w[\w.+/-]*|/.+", w)
    }


def assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """What is given to each name anywhere in a file."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def name_of(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ast.unparse(function).rpartition(".")[2]


def first_word(node: ast.expr) -> str:
    match node:
        case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
            return first_word(first)
        case ast.BinOp(left=first) | ast.Starred(value=first):
            return first_word(first)
        case ast.Constant(value=str(word)):
            return word
    return ""


@pytest.mark.no_cover
def test_every_program_that_tests_ask_for_is_named_in_the_set_up() -> None:
    asked = set().union(*map(programs, trees("tests", having=r"\b(has|which)\b|subprocess")))
    assert {"umoci", "ip", "mksquashfs", "gcc"} <= asked
    missing = {p for p in asked if not re.search(rf"(?<!\w){re.escape(p)}(?!\w)", SET_UP)}
    assert missing <= EVERY_DEBIAN_HAS | NOT_IN_DEBIAN


def test_in_ci_a_skip_that_the_set_up_could_mend_is_a_failure(tmp_path: Path) -> None:
    shutil.copy(HERE / "tests/conftest.py", tmp_path)
    (tmp_path / "test_two.py").write_text(
        "import pytest\n"
        "def test_a(): pytest.importorskip('no_such_module')\n"
        "def test_b(): pytest.skip('needs two cpus')\n"
        "def test_b2(): pytest.skip('no Julia: not in Debian 12')\n"
        "@pytest.mark.skipif(True, reason='no umoci')\n"
        "def test_c(): ...\n"
        "@pytest.mark.xfail\n"
        "def test_d(): assert False\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    for ci, ended in (
        ("true", "1 failed, 2 skipped, 1 xfailed, 1 error"),
        ("", "4 skipped, 1 xfailed"),
    ):
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "CI": ci})
        assert ended in done.stdout.splitlines()[-1], done.stdout


@pytest.mark.no_cover
def test_no_property_is_given_up_because_the_machine_is_busy() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
    assert not [
        tree for tree in trees("tests", having="deadline") if "deadline" in settings_given(tree)
    ]


@pytest.mark.no_cover
def test_what_is_simulated_a_thousand_times_is_not_traced_for_coverage() -> None:
    assert sys.gettrace() is None


def settings_given(tree: ast.Module) -> set[str | None]:
    """Names of the keywords of `@settings` in a file."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {k.arg for call in calls if name_of(call.func) == "settings" for k in call.keywords}


@pytest.mark.no_cover
def test_what_only_some_machines_have_is_the_same_to_mypy_everywhere() -> None:
    settings = PROJECT["tool"]["mypy"]
    overrides = [o for o in settings["overrides"] if o.get("follow_imports") == "skip"]
    skipped = {module.removesuffix(".*") for o in overrides for module in o["module"]}
    build, dev = (PROJECT["dependency-groups"][name] for name in ("build", "dev"))
    assert dev[0] == {"include-group": "build"}
    dev = (*PROJECT["project"]["dependencies"], *build, *dev[1:])
    brought = {plain(re.split(r"[^\w.-]", one)[0]) for one in dev}
    owners = packages_distributions().items()
    always = {module for module, of in owners if brought & set(map(plain, of))}
    always |= {*sys.stdlib_module_names, "typing_extensions", "_typeshed"}
    ours = {path.stem for folder in settings["files"] for path in (HERE / folder).rglob("*")}
    ours.update(settings["files"])
    known = "|".join(sorted(always | ours | skipped))
    of_others = rf"(?m)^\s*(from|import)\s+(?!({known})\b)\w|^\s*import .*,"
    asked = set[str]().union(*map(imported, trees(*settings["files"], having=of_others)))
    assert asked - always - ours <= skipped


def test_flowos_is_built_in_its_venv_with_what_a_build_apart_takes() -> None:
    groups = PROJECT["dependency-groups"]
    assert set(PROJECT["build-system"]["requires"]) <= set(groups["build"])


def plain(distribution: str) -> str:
    return distribution.lower().replace("_", "-")


def imported(tree: ast.Module) -> set[str]:
    """Top-level modules that a file imports, wherever it does."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


OPEN_MPI, MPICH = ("mpicc", "mpirun.openmpi"), ("mpicc.mpich", "mpiexec.mpich")


@pytest.mark.parametrize(
    ("here", "mpicc", "asked_for"),
    [
        ((), "", True),
        (OPEN_MPI, "/usr/bin/opal_wrapper", True),
        (OPEN_MPI, "/opt/cray/cc", False),
        (("mpicc",), "/usr/bin/opal_wrapper", False),
        ((*OPEN_MPI, *MPICH), "/usr/bin/opal_wrapper", False),
    ],
    ids=["no MPI", "after make measure", "an Open MPI of another", "an MPI of another", "both"],
)
def test_a_second_mpi_is_set_up_beside_debians_open_mpi_which_make_measure_brings(
    tmp_path: Path, here: tuple[str, ...], mpicc: str, asked_for: bool
) -> None:
    """That there is an mpicc says nothing of MPICH; no other MPI gets a second one."""
    for name, says in (("dirname", "."), ("readlink", mpicc), *((name, "") for name in here)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / name).chmod(0o755)
    checks = SET_UP.partition("\ncase $purpose in")[0] + '\nneeds_of_test; echo "$missing_packages"'
    words = [shutil.which("sh") or "sh", "-c", checks, "setup", "test"]
    done = subprocess.run(words, cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True)
    assert (b"mpich libmpich-dev" in done.stdout) == asked_for
