"""`flowos serve` over real HTTP: only its person gets in, and it goes on whatever clients do."""

import fcntl
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import Process, SliceUse, to_plain
from flowos.store import open_store
from tests.waiting import PATIENCE_SECONDS

from .served import Served

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]


RUNS = """
import sys
import flowos as fo
x = fo.flow_input("x", fo.int64)

@fo.task
def twice(x: fo.int64) -> fo.int64:
    return 2 * x

s = fo.slice(fo.flow_output(twice(x)), log="tasks.log")
s.run(1)
print("runs", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests, as each takes a second to start."""
    folder = tmp_path_factory.mktemp("served")
    with Served(folder, {**os.environ, "XDG_DATA_HOME": str(folder / "data")}) as found:
        yield found
    assert found.said == "flowos serve: ended by SIGTERM\n"


@pytest.fixture
def served(shared: Served) -> Served:
    """A client that has not opened it yet."""
    return shared.client()


def raw(served: Served, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_SECONDS) as wire:
        wire.sendall(request)
        wire.shutdown(socket.SHUT_WR)
        found = b""
        while more := wire.recv(1 << 16):
            found += more
        return found


def test_only_the_address_that_was_printed_opens_it(served: Served) -> None:
    for path in ("/", "/runs", "/live.js", "/nowhere", "/?token=x"):
        answer = served.ask(path)
        assert answer.status == 403
        assert "the address that flowos serve printed" in answer.text
    served.open()
    assert "What runs now" in served.page()
    assert '"use strict"' in served.page("/live.js")
    served.cookie += "x"
    assert served.ask("/").status == 403


def test_a_page_of_another_name_for_us_gets_nothing(served: Served) -> None:
    served.open()
    assert served.ask("/", Host="evil.example").status == 421
    assert served.ask("/", Host=f"localhost:{served.port + 1}").status == 200  # ssh -L


def test_a_link_on_another_site_opens_it_too(served: Served) -> None:
    path = served.url.partition(str(served.port))[2]
    answer = served.ask(path, Sec_Fetch_Site="cross-site")
    assert (answer.status, answer.headers["Refresh"]) == (200, "0; url=/")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_no_request_changes_anything(served: Served, method: str) -> None:
    answer = served.open().ask("/", method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_a_head_has_no_body(served: Served) -> None:
    answer = served.open().ask("/", method="HEAD")
    assert (answer.status, answer.text) == (200, "")
    assert int(answer.headers["Content-Length"]) > 1000


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/runs/../../../etc/passwd",
        "/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/programs/..%2f..%2fflowos.db",
        "/programs/p-2026%00",
        "/runs/%ff",
        "/runs/",
        "/runs/a/b",
        "/runs?page=0",
        "/runs?page=2",
        "/programs?page=7",
        "/slices?page=2",
        "/runs?page=-1",
        "/runs?page=99999999999",
        "/runs?page=%D9%A1",
        "//etc/passwd",
    ],
)
def test_what_is_no_page_is_not_here(served: Served, path: str) -> None:
    answer = served.open().ask(path)
    assert answer.status == 404
    assert "This is not here" in answer.text
    assert "root:" not in answer.text


def test_nothing_is_sent_while_nothing_changes(served: Served) -> None:
    first = served.open().ask("/")
    version = first.headers["ETag"]
    again = served.ask("/", If_None_Match=version)
    assert (again.status, again.text) == (304, "")
    data = Path(served.variables["XDG_DATA_HOME"])
    with open_store(str(data / "flowos/flowos.db")) as store:
        store.keep_process(ended("p-2026-11-20-0000000a", "new.py"))
    assert "new.py" in until(lambda: served.page("/"), "new.py")
    assert served.ask("/", If_None_Match=version).status == 200


def until(look: Callable[[], str], words: str) -> str:
    """Pages are drawn again a little later: they may not use up a processor."""
    for _ in range(PATIENCE_SECONDS * 10):
        if words in (seen := look()):
            return seen
        threading.Event().wait(0.1)
    return seen


def ended(id_: str, script: str) -> Process:
    use = SliceUse(
        flow="f", pool="local", node="vm", env="bare", slices=1, runs=3, held_seconds=1.5
    )
    return Process(
        id=id_,
        argv=("python", script),
        host="vm",
        pid=7,
        started="2026-11-20T10:00:00Z",
        ended="2026-11-20T10:00:05Z",
        state="ended",
        uses=(use,),
    )


def test_a_program_appears_while_it_runs_and_stays_when_it_is_killed(served: Served) -> None:
    assert "No program has slices now" in served.open().page()
    folder, env, pipe = served.folder, served.variables, subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", RUNS], cwd=folder, env=env, stdin=pipe, stdout=pipe, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "runs\n"
        page = until(served.page, "data-since")
        assert f"pid {program.pid}" in page
        at = re.findall(r'"(/programs/p-[^"]*)"', page)[0]
        page = served.page(at)
        assert f"pid {program.pid}" in page
        assert "What ran when: tasks.log" in page
        assert "1 task on 1 worker" in served.page(f"{at}/logs/0")
        program.send_signal(signal.SIGKILL)
    assert "lost" in until(lambda: served.page(at), "lost")
    assert "No program has slices now" in until(served.page, "No program has slices now")
    assert served.ask(f"{at}/logs/1").status == 404
    (folder / "tasks.log").write_text("no log at all\n")
    assert "is no line of a slice" in until(lambda: served.page(at), "is no line of a slice")
    (folder / "tasks.log").unlink()
    assert "no such file now" in until(lambda: served.page(at), "no such file now")
    assert "no such file now" in until(lambda: served.ask(f"{at}/logs/0").text, "no such file now")


def test_what_runs_for_long_is_not_hidden_by_what_ended_since(served: Served) -> None:
    records = Path(served.variables["XDG_DATA_HOME"], "flowos/processes")
    records.mkdir(exist_ok=True)
    old = replace(ended("p-old", "long.py"), state="running", started="2020-01-01T00:00:00Z")
    made = [ended(f"p-{number}", "short.py") for number in range(120)]
    for each in made:
        (records / f"{each.id}.json").write_text(json.dumps(to_plain(each)))
    with (records / "p-old.json").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(to_plain(old)))
        file.flush()
        page = until(served.open().page, "long.py")
        assert page.index('id="running"') < page.index("long.py") < page.index('id="over"')
        assert page.count('href="/programs/p-') == 1 + 10
        assert "long.py" in until(lambda: served.page("/programs"), "long.py")
    for each in (*made, old):
        (records / f"{each.id}.json").unlink()


def test_many_clients_at_once_are_all_answered(served: Served) -> None:
    served.open()
    seen: list[int] = []

    def ask() -> None:
        for path in ("/", "/slices", "/runs", "/pools"):
            seen.append(served.ask(path).status)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert seen == [200] * 64


def test_clients_that_break_off_or_talk_nonsense_do_not_end_it(served: Served) -> None:
    host = b"Host: localhost\r\n"
    assert b" 400 " in raw(served, b"\x16\x03\x01\x02\x00\r\n\r\n")
    assert b" 414 " in raw(served, b"GET /" + b"a" * 70_000)
    assert b" 431 " in raw(served, b"GET / HTTP/1.1\r\n" + host + b"a: b\r\n" * 200 + b"\r\n")
    assert b" 405 " in raw(served, b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 9\r\n\r\n")
    assert b" 421 " in raw(served, b"GET / HTTP/1.1\r\n" + host + host + b"\r\n")
    assert b" 421 " in raw(served, b"GET / HTTP/1.0\r\n\r\n")
    assert raw(served, b"") == b""
    hidden = b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 40\r\n\r\nGET /runs HTTP/1.1\r\n"
    assert raw(served, hidden).count(b"HTTP/1.1 ") == 1
    idle = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(40)]
    for each in idle:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        each.sendall(b"GET / HTTP/1.1\r\nHost: local")
        each.close()
    assert "What runs now" in served.open().page()


def test_more_connections_than_it_has_room_for_are_closed(served: Served) -> None:
    held = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(64)]
    for each in held:
        each.sendall(b"GET ")
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_SECONDS) as last:
        assert last.recv(1) == b""
    for each in held:
        each.close()
    assert until(lambda: str(answers(served)), "True") == "True"


def answers(served: Served) -> bool:
    try:
        return served.ask("/").status == 403
    except OSError:
        return False


def test_a_store_that_is_missing_locked_or_damaged_is_said_and_the_rest_goes_on(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    store = tmp_path / "runs.db"
    open_store(str(store)).close()
    with Served(tmp_path, variables, words=("--store", str(store))) as served:
        assert "0 runs of flowos measure" in served.open().page("/runs")
        with sqlite3.connect(store, isolation_level=None) as other:
            other.execute("PRAGMA journal_mode = DELETE")
            other.execute("BEGIN EXCLUSIVE")
            assert "another program holds it" in until(
                lambda: served.page("/runs"), "another program holds it"
            )
            assert served.ask("/runs/last").status == 503
            other.execute("ROLLBACK")
        other.close()
        store.write_bytes(b"no database at all" * 100)
        assert "no database" in until(lambda: served.page("/runs"), "no database")
        assert "What runs now" in served.page("/")
        store.unlink()
        assert "there is no store" in until(lambda: served.page("/"), "there is no store")


def test_a_named_store_that_is_not_there_is_one_line(flowos: Flowos) -> None:
    done = flowos("serve", "--store", "./none.db", code=1)
    assert done.stdout == ""
    assert re.fullmatch(r"flowos serve: there is no store .*none\.db: mend .*\n", done.stderr)


def test_a_port_that_is_taken_is_one_line(flowos: Flowos) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = flowos("serve", "--port", str(port), code=1)
    assert f"flowos serve: port {port} of 127.0.0.1 cannot be used: Address already" in done.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "http", "\u0661", ""])
def test_what_is_no_port_is_refused(flowos: Flowos, port: str) -> None:
    assert "expected a port, 0 to 65535" in flowos("serve", f"--port={port}", code=2).stderr


def test_ctrl_c_ends_it_as_it_ends_every_command(tmp_path: Path, variables: dict[str, str]) -> None:
    with Served(tmp_path, variables) as served:
        idle = socket.create_connection(("127.0.0.1", served.port))
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(timeout=PATIENCE_SECONDS) == 130
        idle.close()
    assert served.said == "flowos serve: interrupted\n"


def test_reports_and_parts_of_lists_are_pages(
    kept_runs: list[str], tmp_path: Path, variables: dict[str, str]
) -> None:
    with Served(tmp_path, variables) as served:
        page = served.open().page("/runs")
        assert [f'/runs/{run}"' in page for run in kept_runs] == [True, True]
        report = served.page(f"/runs/{kept_runs[0]}")
        assert "What it reaches" in report
        assert 'aria-current="page">Measurements' in report
        assert re.findall("<script[^>]*>", report) == ['<script src="/curves.js">']
        assert "All measurements" in served.page("/")


def test_a_mistake_in_flowos_toml_is_said(served: Served) -> None:
    assert ">local</h2>" in served.open().page("/pools")
    settings = served.folder / "flowos.toml"
    settings.write_text("[pools.a]\nnodse = 3\n")
    assert "nodse" in until(lambda: served.ask("/pools").text, "nodse")
    assert served.ask("/pools").status == 503
    settings.write_text('[pools.gpu]\nkind = "fake"\nnodes = 3\n')
    assert ">gpu</h2>" in served.page("/pools")
    settings.unlink()


def test_a_browser_is_given_a_file_as_command_lines_are_seen_by_all(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {seen}.part\ncat "${{1#file://}}" >> {seen}.part\n'
        f"mv {seen}.part {seen}\n"
    )
    browser.chmod(0o755)
    words = ("--open",)
    with Served(tmp_path, {**variables, "BROWSER": f"{browser} %s"}, words=words) as served:
        assert until(lambda: str(seen.exists()), "True") == "True"
        called, content = seen.read_text().splitlines()
        assert served.url in content
        assert "token" not in called
        opened = Path(called.removeprefix("file://"))
        assert opened.stat().st_mode & 0o77 == 0
    assert not opened.exists()


def test_without_a_display_one_line_says_what_to_do(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    shown = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    bare = {name: value for name, value in variables.items() if name not in shown}
    words = [sys.executable, "-m", "flowos", "serve", "--open"]
    done = subprocess.run(words, cwd=tmp_path, env=bare, capture_output=True, text=True)
    assert done.returncode == 2
    assert "this session has no display; open the address that is printed" in done.stderr
