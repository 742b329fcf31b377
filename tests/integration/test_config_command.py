"""`flowos config`: what counts, and where it comes from."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flowos.model import SettingsError, _settings_layers
from flowos.operations import settings, settings_file
from tests.integration.conftest import called_here


@pytest.fixture
def home(tmp_path: Path) -> Path:
    own = tmp_path / "config/flowos/flowos.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[pools.hpc]\nkind = "slurm"\nnodes = 8\naccount = "physics"\n')
    (tmp_path / "flowos.toml").write_text("[pools.hpc]\nnodes = 2\n")
    return tmp_path


def flowos(home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("FLOWOS_")}
    env |= {"XDG_CONFIG_HOME": str(home / "config"), **variables}
    return called_here([*words], home, env)


def test_each_value_has_the_place_that_it_comes_from(home: Path) -> None:
    words = ("--set=pools.hpc.qos=high", "config")
    done = flowos(home, *words, FLOWOS_POOLS_LOCAL_CORES="1", FLOWOS_POOLS_HPX_NODES="1")
    own = home / "config/flowos/flowos.toml"
    said = dict(line.rsplit("  # ", 1) for line in done.stdout.splitlines()[1:])
    assert {line.strip(): at for line, at in said.items()} == {
        'pools.hpc.kind = "slurm"': f"{own}:2",
        "pools.hpc.nodes = 2": "flowos.toml:2",
        'pools.hpc.account = "physics"': f"{own}:4",
        "pools.local.cores = 1": "FLOWOS_POOLS_LOCAL_CORES",
        'pools.hpc.qos = "high"': "--set pools.hpc.qos=high",
    }
    assert done.stdout.startswith(f"# flowos.toml and {own}\n")
    assert done.stderr == "flowos config: FLOWOS_POOLS_HPX_NODES: no table and key has this name\n"


def test_a_misspelt_table_of_a_variable_is_named(home: Path) -> None:
    assert tuple(sorted(_settings_layers.TABLES)) == settings._TABLES
    done = flowos(home, "config", FLOWOS_POLS_LOCAL_CORES="1", FLOWOS_DEVICES_DIR="/dev")
    assert done.stderr == "flowos config: FLOWOS_POLS_LOCAL_CORES: no table and key has this name\n"


def test_the_page_writes_defaults_as_toml_does() -> None:
    page = settings.settings_page()
    assert '| `size` | `""` |' in page
    assert "| `spot` | `false` |" in page
    assert not re.search(r"\| ``? \||`False`|`True`", page)


def test_dev_null_is_no_file(home: Path) -> None:
    done = flowos(home, "config", FLOWOS_CONFIG="/dev/null")
    assert (done.stdout, done.stderr) == ("# no flowos.toml\n", "")


def test_a_folder_of_settings_that_cannot_be_entered_is_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied")  # root is refused nothing

    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.delenv("FLOWOS_CONFIG", raising=False)
    monkeypatch.setattr(Path, "lstat", refused)
    own = home / "config/flowos/flowos.toml"
    with pytest.raises(SettingsError, match=f"^{own}: cannot be read: Permission denied$"):
        settings_file.settings_files()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "another"))
    monkeypatch.chdir(home / "config")
    assert settings_file._is_there(home / "another/flowos/flowos.toml") is False


def test_set_has_its_place_before_the_command(home: Path) -> None:
    assert flowos(home, "config", "--set", "a=1").stderr == (
        "flowos config: error: unrecognized arguments: --set a=1; it goes before the command: "
        "flowos --set KEY=VALUE config; see flowos config --help\n"
    )
    assert flowos(home, "--st", "a=1", "list").stderr == (
        "flowos: error: unrecognized arguments: --st; did you mean '--set'? See flowos --help\n"
    )
    assert flowos(home, "help", "help").stdout == flowos(home, "--help").stdout


def test_as_json_and_with_defaults(home: Path) -> None:
    found = json.loads(flowos(home, "config", "--json").stdout)
    assert {"key": "pools.hpc.nodes", "value": 2, "said_at": "flowos.toml:2"} in found["said"]
    shown = flowos(home, "config", "--all").stdout.splitlines()
    assert any(line.startswith("# pools.local.cores is not set ") for line in shown)
    assert any(line.startswith('pools.hpc.env = "bare"') for line in shown)
    (home / "flowos.toml").unlink()
    assert flowos(home, "config", XDG_CONFIG_HOME=str(home)).stdout == "# no flowos.toml\n"


def test_the_command_line_counts_for_every_command(home: Path) -> None:
    done = flowos(home, "--set", "pools.hpc.nodes=5", "--set", "pools.local.cores=1", "pools")
    assert "hpc  slurm  5 nodes" in done.stdout
    assert "1 core each" in done.stdout


def test_a_mistake_is_one_line(home: Path) -> None:
    done = flowos(home, "config", FLOWOS_POOLS_HPC_NODES="x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "flowos config: FLOWOS_POOLS_HPC_NODES: pools.hpc.nodes: int expected, got 'x'\n"
    )
    assert flowos(home, "--set").returncode == 2
    done = flowos(home, "--set", "nodes", "config")
    assert done.stderr.startswith("flowos config: --set nodes: expected KEY=VALUE, as pools.")


@pytest.mark.parametrize("option", ["nonsense", "pools.local.coers=2", "pools.local.cores=x"])
def test_a_wrong_option_is_refused_where_no_settings_are_read(home: Path, option: str) -> None:
    done = flowos(home, "--set", option, "solve", "poisson:8x8x8", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"flowos solve: --set {option}: ")
    assert flowos(home, "solve", "poisson:8x8x8", "--dry-run").returncode == 0


@pytest.mark.parametrize("option", ["", "=5", "pools..x=1", ".="])
def test_an_option_that_names_no_key_is_refused(home: Path, option: str) -> None:
    refused = f"flowos pools: --set {option or repr('')}: expected KEY=VALUE, as pools.local.cores="
    for words in (
        ("--set", option),
        (f"--set={option}",),
        ("--set", "pools.hpc.qos=a", "--set", option),
    ):
        done = flowos(home, *words, "pools")
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{refused}2\n")


@pytest.mark.parametrize(
    "option",
    [
        "pools.hpc.qos=a\nb",
        "pools.hpc.qos=a\n",
        "\npools.hpc.nodes=3",
        "pools.hpc.nodes=3\npools.hpc.qos=b",
        "pools.hpc.qos=a\rb",
        "pools.hpc.qos=a\u2028b",
        "\n",
    ],
)
def test_a_line_break_makes_no_second_option(home: Path, option: str) -> None:
    said = f"--set {option!r}: it has a line break; write it in one line\n"
    done = flowos(home, "--set", "pools.local.cores=2", f"--set={option}", "config")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"flowos config: {said}")


def test_without_a_command_options_are_checked_too(home: Path) -> None:
    refused = "--set x: expected KEY=VALUE, as pools.local.cores=2\n"
    for words in (("--set", "x"), ("--set=x",), ("-q", "--set", "x"), ("--set", "x", "-v")):
        done = flowos(home, *words)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"flowos: {refused}")
    done = flowos(home, "--set", "a=\nb=1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    done = flowos(home, "--set", "pools.local.cores=2")
    assert (done.returncode, done.stdout) == (0, flowos(home).stdout)
    assert done.stdout.startswith("usage: flowos ")
    (home / "flowos.toml").write_text("[pools.hpc]\nnodez = 2\n")
    done = flowos(home, "--set", "pools.local.cores=2")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("flowos: flowos.toml:2: pools.hpc.nodez: no such key")
    assert flowos(home).returncode == 0


def test_what_is_started_knows_the_options_of_all_before_it(home: Path) -> None:
    first = flowos(home, "--set", "pools.hpc.nodes=3", "config", FLOWOS_SET="pools.hpc.qos=a\n")
    assert "nodes = 3" in first.stdout
    assert 'qos = "a"' in first.stdout


def test_options_of_which_one_makes_a_table_of_anothers_value_are_refused(home: Path) -> None:
    given = ("--set=pools.x=5", "--set=pools.x.nodes=4")
    for words in (given, given[::-1]):
        done = flowos(home, *words, "pools")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "flowos pools: --set pools.x=5: pools.x: 5: a table is expected, as [pools.x]\n"
        )
    (home / "flowos.toml").write_text("[pools]\nx = 5\n")
    done = flowos(home, "--set=pools.x.nodes=4", "pools")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "flowos pools: flowos.toml:2: pools.x: 5: a table is expected, as [pools.x]\n"
    )


def test_an_option_is_wrong_usage_and_a_file_is_not(home: Path) -> None:
    done = flowos(home, "--set", "pools.local.size=nosuch", "list")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--set pools.local.size=nosuch: pools.local.size: no size 'nosuch'" in done.stderr
    (home / "flowos.toml").write_text("[pools.hpc]\nnodez = 2\n")
    for option in ("pools.local.cores=2", "nonsense"):
        done = flowos(home, "--set", option, "config")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("flowos config: flowos.toml:2: pools.hpc.nodez: no such key")


def test_an_option_may_stand_before_help(home: Path) -> None:
    done = flowos(home, "--set", "k=v", "help", "config")
    assert (done.returncode, done.stdout) == (0, flowos(home, "config", "--help").stdout)


def test_help_loads_no_settings(home: Path) -> None:
    program = (
        "import sys; from flowos.cli import main\n"
        "try: main(['config', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('tomllib', 'dataclasses', 'flowos.model._settings',"
        " 'flowos.operations') if name in sys.modules])"
    )
    done = subprocess.run(
        (sys.executable, "-c", program), cwd=home, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
