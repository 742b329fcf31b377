"""Nodes of a training find each other by a file, whatever is in it from before."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from flowos.probes import package_data
from tests.waiting import comes

PROGRAMS = str(package_data("probes/programs"))
NODE = """\
import os, sys
from pathlib import Path
from node_links import NodeLinksError, linked
try:
    links = linked(int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
    values = links.gathered(links.number * 10), links.gathered("so")
    print(links.number, *values, bool(links.interface))
    if links.number == int(sys.argv[4]):
        os._exit(0)
    links.gathered(0)
except NodeLinksError as why:
    sys.exit(str(why))
"""


def start(
    number: int, variable: str, *, count: int, file: Path, seconds: float = 60.0, leaves: int = 99
) -> "subprocess.Popen[str]":
    words = (str(count), str(file), str(seconds), str(leaves))
    return subprocess.Popen(
        [sys.executable, "-S", "-c", NODE, *words],
        env={**os.environ, "PYTHONPATH": PROGRAMS, variable: str(number)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("variable", ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"])
def test_each_has_the_values_of_all_in_their_order(variable: str, tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    nodes = [start(number, variable, count=3, file=file) for number in (2, 0, 1)]
    said = sorted(node.communicate(timeout=120)[0] for node in nodes)
    assert said == [f"{n} [0, 10, 20] ['so', 'so', 'so'] True\n" for n in range(3)]
    assert not list(tmp_path.iterdir()), "the file is gone"


def test_a_file_of_an_earlier_run_is_not_believed(tmp_path: Path) -> None:
    """Neither where nothing listens any more, nor where another program does."""
    file = tmp_path / "nodes.json"
    with socket.create_server(("127.0.0.1", 0)) as other:
        earlier = {"token": "t", "port": other.getsockname()[1], "addresses": ["127.0.0.1"]}
        file.write_text(json.dumps(earlier))
        second = start(1, "PMI_RANK", count=2, file=file)
        other.accept()[0].close()
    first = start(0, "PMI_RANK", count=2, file=file)
    assert first.communicate(timeout=120)[0].startswith("0 [0, 10]")
    assert second.communicate(timeout=120)[0].startswith("1 [0, 10]")


def test_what_is_not_of_the_run_does_not_count_as_a_node(tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    first = start(0, "PMI_RANK", count=2, file=file)
    assert comes(file.exists)
    with socket.create_connection(("127.0.0.1", json.loads(file.read_text())["port"])) as other:
        other.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert other.recv(64) == b""
    second = start(1, "PMI_RANK", count=2, file=file)
    assert first.communicate(timeout=120)[0].startswith("0 [0, 10]")
    second.communicate(timeout=120)


def test_a_node_that_ends_and_one_that_never_comes_are_said(tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    first, second = (start(n, "PMI_RANK", count=2, file=file, leaves=1) for n in (0, 1))
    assert first.communicate(timeout=120)[1] == "another node has ended\n"
    second.communicate(timeout=120)
    alone = [start(n, "PMI_RANK", count=3, file=file, seconds=0.3) for n in (0, 2)]
    (_, said), (_, other) = (node.communicate(timeout=120) for node in alone)
    assert said.startswith(("nodes [1] of 3 have not come", "nodes [1, 2] of 3 have not come"))
    assert other.startswith(("another node has ended", "node 2 of 3 has not found the first one"))
