"""What `flowos exec` loads before its command runs: counted, for a time hangs on the machine."""

import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

import flowos

_MAX_MODULES = 51
"""Of FlowOS, for a bare command. Each costs between 0.2 and 2 ms."""

_ROOMS = ("feeder", "plan", "probes", "report", "solver", "store")
_PARTS = (
    *("model._ports", "model._run", "model._samples", "model._facts", "model._codec"),
    "drivers._cdi",
)
_OTHERS = (
    *("ast", "bz2", "dataclasses", "datetime", "email", "hashlib", "importlib.metadata"),
    *("importlib.resources", "inspect", "json", "logging", "lzma", "multiprocessing", "numpy"),
    *("platform", "random", "shutil", "socket", "sqlite3", "statistics", "tarfile", "tempfile"),
    "yaml",
)


def loaded_by(*words: str, cwd: Path) -> set[str]:
    """Modules that `flowos WORDS` has loaded at its end, without those of Python's own start."""
    program = (
        "import sys; before = {*sys.modules};"
        "from flowos.cli import main; code = main(sys.argv[1:]);"
        "open('modules', 'w').write(' '.join({*sys.modules} - before)); sys.exit(code)"
    )
    subprocess.run([sys.executable, "-c", program, *words], cwd=cwd, check=True)
    return {*(cwd / "modules").read_text().split()}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """By a command that finds nothing left of killed programs: removing that loads more."""
    loaded = set[str]()
    for _ in range(5):  # other tests kill some just now
        loaded = loaded_by("exec", "--", "true", cwd=tmp_path_factory.mktemp("bare"))
        if "shutil" not in loaded:
            break
    return loaded


def test_a_bare_command_loads_few_modules_of_flowos(bare: set[str]) -> None:
    ours = {name for name in bare if name.partition(".")[0] == "flowos"}
    assert "flowos.operations.exec" in ours
    assert len(ours) <= _MAX_MODULES, sorted(ours)


def test_a_bare_command_loads_no_room_and_no_library_that_it_does_not_use(bare: set[str]) -> None:
    not_used = {f"flowos.{part}" for part in (*_ROOMS, *_PARTS)} | {*_OTHERS}
    assert not bare & not_used


@pytest.mark.parametrize("room", ["drivers", "engine", "model", "plan", "solver"])
def test_every_name_of_a_room_that_is_loaded_late_is_there(room: str) -> None:
    program = f"from flowos.{room} import *; import flowos.{room} as r; print(len(r.__all__))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, int(done.stdout) > 10) == (0, True), done.stderr


def test_a_name_that_a_room_has_not_is_told() -> None:
    program = "import flowos.model as m; m.no_such"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "module 'flowos.model' has no attribute 'no_such'" in done.stderr


def test_what_the_set_up_installed_is_compiled_for_users_who_may_not_write_there() -> None:
    installed = (Path(sys.prefix) / ".flowos-built").stat().st_mtime
    sources = [p for p in Path(flowos.__file__).parent.rglob("*.py") if "programs" not in p.parts]
    old = [p for p in sources if p.stat().st_mtime < installed]
    assert len(old) > 100
    assert [p for p in old if not Path(cache_from_source(str(p))).exists()] == []
