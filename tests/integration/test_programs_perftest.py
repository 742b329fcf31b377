"""perftest's server and client are started in order, here and on two nodes, and what fails is said.

No machine of ours has an RDMA device: a stand-in meets its client as perftest's programs do, over
TCP, and prints a table of theirs. perftest itself is run for its refusal.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.model import Facts, RdmaPort, Tool
from flowos.probes import package_data
from flowos.probes.facts import read_facts

Flowos = Callable[..., subprocess.CompletedProcess[str]]

PROGRAMS = Path(str(package_data("probes/programs")))
TABLE = (Path(__file__).parents[1] / "data/perftest/write_bw_mib.txt").read_text()
STAND_IN = f"""#!{sys.executable}
'''ib_write_bw [OPTION...] -p PORT [HOST]: one connection, one try. FAILS: which of both does.'''
import os, socket, sys, time
at = sys.argv.index("-p") + 1
port, hosts = int(sys.argv[at]), sys.argv[at + 1:]
role = "client" if hosts else "server"
if os.environ.get("FAILS") == role:
    sys.exit(f" Couldn't get context\\n for the device of the {{role}}")
if os.environ.get("FAILS") == f"{{role}}, silently":
    sys.exit(1)
if os.environ.get("FAILS") == f"{{role}}, at length":
    sys.stderr.write("a warning\\n" * 20_000)  # more than a pipe holds
    sys.exit(" its last words")
if role == "server":
    sys.stderr.write("a warning\\n" * int(os.environ.get("WARNINGS", "0")))
    sys.stderr.flush()
    time.sleep(0.3)  # as long as a device takes: a client that is not held back fails
    with socket.create_server(("", port)) as server:
        server.accept()[0].recv(1)
else:
    with socket.create_connection((hosts[0], port)) as link:
        link.sendall(b"x")
    sys.stdout.write({TABLE!r})
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    file = tmp_path / "ib_write_bw"
    file.write_text(STAND_IN)
    file.chmod(0o755)
    return file


def start(folder: Path, *words: str, **variables: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-S", str(PROGRAMS / "perftest_pair.py"), *words],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, *words: str, **variables: str) -> tuple[int, str, str]:
    started = start(folder, *words, **variables)
    said, complaint = started.communicate(timeout=120)
    return started.returncode, said, complaint


def test_the_client_comes_once_the_server_listens_and_its_table_is_printed(
    stand_in: Path, tmp_path: Path
) -> None:
    assert run(tmp_path, str(stand_in), "-a", "-n", "5") == (0, TABLE, "")


def test_on_two_nodes_the_first_has_the_server_and_prints_what_the_other_had(
    stand_in: Path, tmp_path: Path
) -> None:
    words = ("--nodes", "2", str(stand_in), "-a")
    first, second = (start(tmp_path, *words, PMI_RANK=number) for number in "01")
    assert first.communicate(timeout=120) == (TABLE, "")
    assert second.communicate(timeout=120) == ("", "")
    assert (first.returncode, second.returncode) == (0, 0)
    assert list(tmp_path.iterdir()) == [stand_in]


@pytest.mark.parametrize("role", ["server", "client"])
def test_who_fails_is_named_with_its_own_words_on_one_line(
    role: str, stand_in: Path, tmp_path: Path
) -> None:
    said = f"{role}: Couldn't get context / for the device of the {role}"
    line = f"perftest_pair: ib_write_bw failed: {said}\n"
    assert run(tmp_path, str(stand_in), "-a", FAILS=role) == (1, "", line)
    words = ("--nodes", "2", str(stand_in))
    nodes = [start(tmp_path, *words, PMI_RANK=number, FAILS=role) for number in "01"]
    assert [node.communicate(timeout=120)[1] for node in nodes] == [line, ""]


@pytest.mark.parametrize(
    ("role", "why"), [("server", "the server does not listen"), ("client", "client: exit 1")]
)
def test_who_fails_without_a_word_is_named(
    role: str, why: str, stand_in: Path, tmp_path: Path
) -> None:
    line = f"perftest_pair: ib_write_bw failed: {why}\n"
    assert run(tmp_path, str(stand_in), FAILS=f"{role}, silently") == (1, "", line)


def test_a_program_that_is_not_there_is_named(stand_in: Path, tmp_path: Path) -> None:
    code, said, complaint = run(tmp_path, str(tmp_path / "gone"))
    assert (code, said, complaint.count("\n")) == (1, "", 1)
    assert "gone" in complaint
    first = start(tmp_path, "--nodes", "2", str(stand_in), PMI_RANK="0")
    start(tmp_path, "--nodes", "2", str(tmp_path / "gone"), PMI_RANK="1").communicate(timeout=120)
    assert re.search(r"failed: client: .*gone", first.communicate(timeout=120)[1])


def test_a_server_that_says_more_than_a_pipe_holds_does_not_wait_for_a_reader(
    stand_in: Path, tmp_path: Path
) -> None:
    assert run(tmp_path, str(stand_in), WARNINGS="20000") == (0, TABLE, "")
    _, _, complaint = run(tmp_path, str(stand_in), FAILS="server, at length")
    warnings = " / ".join(["a warning"] * 3)
    line = f"perftest_pair: ib_write_bw failed: server: {warnings} / its last words\n"
    assert complaint == line


@pytest.mark.skipif(shutil.which("ib_write_bw") is None, reason="apt install perftest")
@pytest.mark.skipif(Path("/sys/class/infiniband").exists(), reason="here is an RDMA device")
def test_perftest_itself_says_that_there_is_no_device(tmp_path: Path) -> None:
    code, said, complaint = run(tmp_path, "ib_write_bw", "-d", "mlx5_0", "-a", "-n", "100", "-F")
    assert (code, said, complaint.count("\n")) == (1, "", 1)
    assert "Unable to find the Infiniband/RoCE device" in complaint


def test_ports_are_found_by_the_links_of_sysfs(tmp_path: Path) -> None:
    device = tmp_path / "sys/devices/pci0000:00/infiniband/mlx4_0"
    port = device / "ports/1"
    port.mkdir(parents=True)
    texts = {"state": "4: ACTIVE", "rate": "40 Gb/sec (4X QDR)", "link_layer": "InfiniBand"}
    for name, text in texts.items():
        (port / name).write_text(f"{text}\n")
    (tmp_path / "sys/class/infiniband").mkdir(parents=True)
    link = tmp_path / "sys/class/infiniband/mlx4_0"
    link.symlink_to("../../devices/pci0000:00/infiniband/mlx4_0")
    words = [sys.executable, str(PROGRAMS / "collect.py"), "--root", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, check=True, timeout=120)
    (found,) = read_facts(json.loads(done.stdout)).rdma
    assert (found.device, found.number, found.bytes_per_second) == ("mlx4_0", 1, 4e9)


def test_flowos_measures_by_it_what_the_facts_name(
    flowos: Flowos, stand_in: Path, monkeypatch: pytest.MonkeyPatch, looked_once: Facts
) -> None:
    port = RdmaPort(device="mlx4_0", number=1, state="ACTIVE", bytes_per_second=4e9)
    tool = Tool(name="ib_write_bw", version="", path=PurePath(stand_in))
    there = replace(looked_once, rdma=(port,), tools=(tool,))
    monkeypatch.setattr("flowos.operations.measure._run.facts", lambda _: there)
    done = flowos("measure", "--quick", "--only", "rdma", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["report"]
    found = {dict(m["case"]["levels"])["bytes"]: m["median"] for m in report["measurements"]}
    assert found["65536"] == pytest.approx(3293.56 * 2**20)
    assert [section["title"] for section in report["sections"]] == ["RDMA by perftest"]
