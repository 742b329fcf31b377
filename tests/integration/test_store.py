"""The store's promises on SQLite and a real PostgreSQL, and how it fails: in one clear line."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowos.model import (
    Case,
    Facts,
    MachineState,
    MeasurementRequest,
    Process,
    Run,
    Sample,
    StoreError,
    Unmeasured,
)
from flowos.store import ImageRecord, Store, open_store

PASSWORD = "hunter2-%/é"
PASSWORD_IN_URL = "hunter2-%25%2F%C3%A9"

FACTS = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
)


def a_run(name: str = "20261120-one") -> Run:
    return Run(
        id=name,
        started="2026-11-20T10:00:00Z",
        host="h",
        version="0",
        request=MeasurementRequest(),
        facts=FACTS,
    )


def a_sample(run: str, number: int = 0) -> Sample:
    return Sample(
        run=run,
        case=Case("stream", (("threads", "2"),), (("flags", "-O3"),)),
        round=number,
        metric="triad",
        unit="byte/s",
        values=(45.7e9, float("inf")),
        state=MachineState(load=(0.1, 0.2)),
    )


def binaries() -> Path:
    """Debian keeps them per version, off the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    assert found, "PostgreSQL is needed for this test: apt install postgresql"
    return found[-1].parent


def as_nobody(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, "nobody", "nogroup")
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The folder of the socket of a server of our own; it listens on no network."""
    with tempfile.TemporaryDirectory(prefix="flowos-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        user = as_nobody(folder)
        (folder / "password").write_text(PASSWORD)
        (folder / "password").chmod(0o644)
        made = [f"{binaries()}/initdb", "-D", f"{folder}/data", "-U", "ada", "--no-sync"]
        made += ["-A", "scram-sha-256", f"--pwfile={folder}/password", "-E", "UTF8", "--locale=C"]
        how: dict[str, Any] = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL}
        subprocess.run([*user, *made], **how)
        started = [f"{binaries()}/pg_ctl", "-D", f"{folder}/data", "-w", "-t", "300"]
        started += ["-l", f"{folder}/log"]
        options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
        subprocess.run([*user, *started, "-o", options, "start"], **how)
        try:
            yield folder
        finally:
            subprocess.run([*user, *started, "-m", "immediate", "stop"], **how)


@pytest.fixture
def url(server: Path, request: pytest.FixtureRequest) -> str:
    """A new, empty database."""
    name = "d" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]
    root = f"postgresql://ada:{PASSWORD_IN_URL}@/postgres?host={server}"
    subprocess.run([f"{binaries()}/psql", root, "-qc", f"CREATE DATABASE {name}"], check=True)
    return root.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Every promise below is kept by both."""
    if request.param == "sqlite":
        return str(tmp_path / "flowos.db")
    url: str = request.getfixturevalue("url")
    return url


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    with open_store(where) as opened:
        yield opened


def test_what_is_kept_comes_back_in_order_after_closing(where: str) -> None:
    kept = tuple(a_sample("20261120-one", number) for number in range(5))
    with open_store(where) as store:
        store.begin(a_run())
        for sample in kept:
            store.keep(sample)
    with open_store(where) as store:
        assert store.samples(a_run()) == kept
        assert store.samples(a_run())[0].case.details == (("flags", "-O3"),)
        assert store.counts() == {"20261120-one": 5}


def test_finishing_keeps_the_end_and_what_was_not_measured(store: Store) -> None:
    store.begin(a_run())
    ended = replace(
        a_run(),
        ended="2026-11-20T10:03:00Z",
        unmeasured=((Case("fio"), Unmeasured(reason="none", remedy="apt install fio")),),
    )
    store.finish(ended)
    assert store.run("last") == ended


def test_a_run_is_found_by_last_id_and_prefix(store: Store) -> None:
    for name in ("20261120-one", "20261120-one-more", "20261121-two"):
        store.begin(a_run(name))
    assert store.run("last").id == "20261121-two"
    assert store.run("20261121").id == "20261121-two"
    assert store.run("20261120-one").id == "20261120-one", "an exact id wins over a prefix"
    assert [r.id for r in store.runs(2)] == ["20261121-two", "20261120-one-more"]
    assert len(store.runs()) == 3


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("20261120", "fits 2 runs"),
        ("1999", "no run '1999'"),
        ("", "no run ''"),
        ("%", "no run '%'"),
        ("2026112_", "no run '2026112_'"),
    ],
)
def test_a_reference_that_fits_no_one_run_is_refused(ref: str, said: str, store: Store) -> None:
    for name in ("20261120-one", "20261120-two"):
        store.begin(a_run(name))
    with pytest.raises(StoreError, match=said):
        store.run(ref)


def test_without_any_run_last_says_how_to_get_one(store: Store) -> None:
    with pytest.raises(StoreError, match="measure first"):
        store.run("last")


def test_removed_runs_are_gone_with_their_samples_and_the_others_stay(store: Store) -> None:
    for name in ("20261120-one", "20261121-two", "20261122-three"):
        store.begin(a_run(name))
        store.keep(a_sample(name))
    store.remove(("20261120-one", "20261122-three"))
    assert [run.id for run in store.runs()] == ["20261121-two"]
    assert store.counts() == {"20261121-two": 1}
    store.begin(a_run("20261120-one"))
    assert store.samples("20261120-one") == ()


def test_when_one_of_several_runs_is_not_there_none_is_removed(store: Store) -> None:
    store.begin(a_run())
    store.keep(a_sample(a_run().id))
    with pytest.raises(StoreError, match="not all of them are there"):
        store.remove((a_run().id, "20261121-two"))
    assert store.counts() == {a_run().id: 1}


def test_what_contradicts_itself_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="its run never began there"):
        store.keep(a_sample("unknown"))
    with pytest.raises(StoreError, match="it never began"):
        store.finish(a_run("unknown"))
    store.begin(a_run())
    with pytest.raises(StoreError, match="a run's id must be new"):
        store.begin(a_run())


def test_processes_are_kept_once_and_come_back_newest_first(store: Store) -> None:
    at = "2026-11-20T10:00:0"
    first = Process(id="p-0", argv=("python", "it's"), host="n", pid=7, started=f"{at}0Z")
    second = replace(first, id="p-1", started=f"{at}1Z", state="ended")
    for process in (first, second, replace(first, pid=8)):
        store.keep_process(process)
    assert store.processes() == (second, first)
    assert store.processes(1) == (second,)


def test_how_an_image_first_came_to_be_is_kept_by_its_digest(store: Store) -> None:
    first = ImageRecord(digest="sha256:aa", at="2026-11-20T10:00:00Z", size_bytes=1, source="'--")
    other = replace(first, digest="sha256:bb", made_with=(("skopeo", "1.9"),))
    assert store.image("sha256:aa") is None
    assert [store.keep_image(each) for each in (first, other)] == [first, other]
    assert store.keep_image(replace(first, at="2026-11-21T10:00:00Z", source="another")) == first
    assert (store.image("sha256:aa"), store.image("sha256:bb")) == (first, other)
    assert store.old_image_names() == ()


def test_a_new_file_and_its_folder_are_read_by_their_owner_only(tmp_path: Path) -> None:
    for file in (tmp_path / "data/flowos/flowos.db", tmp_path / "in-a-folder-that-is-there.db"):
        with open_store(str(file)) as store:
            store.keep_process(Process(id="p", argv=(), host="n", pid=7, started="2026"))
            files = [*file.parent.glob(f"{file.name}*")]
            assert len(files) == 3, "with its -wal and -shm"
            assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
    assert (tmp_path / "data/flowos").stat().st_mode & 0o777 == 0o700


WRITER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_store import a_run, a_sample
from flowos.store import open_store
with open_store(sys.argv[1]) as store:
    store.begin(a_run(sys.argv[2]))
    for number in range(int(sys.argv[3])):
        store.keep(a_sample(sys.argv[2], number))
        print(number, flush=True)
"""


def writer(file: Path | str, run: str, samples: int, *before: str) -> subprocess.Popen[str]:
    command = [*before, sys.executable, "-c", WRITER, str(file), run, str(samples)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_two_writers_at_once_lose_nothing_from_the_first_moment_on(where: str) -> None:
    writers = [writer(where, name, 500) for name in ("one", "two")]
    for each in writers:
        _, complaint = each.communicate(timeout=300)
        assert (each.returncode, complaint) == (0, "")
    with open_store(where) as store:
        assert store.counts() == {"one": 500, "two": 500}
        for name in ("one", "two"):
            assert [s.round for s in store.samples(name)] == list(range(500))


def test_a_killed_writer_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    with writer(file, "one", 100_000) as victim:
        assert victim.stdout is not None
        lines = [victim.stdout.readline() for _ in range(50)]
        victim.send_signal(signal.SIGKILL)
        lines += victim.stdout.readlines()
    with open_store(str(file)) as store:
        rounds = [s.round for s in store.samples("one")]
    assert rounds[: len(lines)] == list(range(len(lines)))
    assert len(rounds) - len(lines) <= 1, "at most the one that was kept but not yet printed"


def test_a_wrong_password_is_one_line_that_does_not_show_it(url: str) -> None:
    code = "import sys; from flowos.store import open_store; open_store(sys.argv[1])"
    wrong = url.replace(PASSWORD_IN_URL, "sesame-1234")
    answer = subprocess.run(
        [sys.executable, "-c", code, wrong], capture_output=True, text=True, timeout=300
    )
    assert "the server refused user or password" in answer.stderr.splitlines()[-1]
    assert "sesame-1234" not in answer.stderr + answer.stdout


@pytest.mark.parametrize("broken", ["/nosuch?", "nobody-known:x@/"])
def test_an_unknown_database_or_user_is_one_line(broken: str, url: str) -> None:
    wrong = url.replace(url[url.index("/d") : url.index("?") + 1], broken)
    if broken.startswith("nobody"):
        wrong = url.replace(f"ada:{PASSWORD_IN_URL}@/", broken)
    with pytest.raises(StoreError, match=r"the server (does not know|refused)") as caught:
        open_store(wrong)
    assert PASSWORD_IN_URL not in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_text_that_postgresql_cannot_hold_is_a_store_error(url: str) -> None:
    with open_store(url) as store, pytest.raises(StoreError, match="cannot keep the run in"):
        store.begin(a_run("nul\0inside"))


def test_who_may_delete_nothing_may_keep_runs(url: str) -> None:
    def ask(words: str) -> None:
        subprocess.run([f"{binaries()}/psql", url, "-qc", words], check=True)

    ask("CREATE ROLE bob LOGIN PASSWORD 'bob'")
    bobs = url.replace(f"ada:{PASSWORD_IN_URL}@", "bob:bob@")
    with open_store(url) as store:
        store.begin(a_run())
    ask("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO bob")
    ask("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO bob")
    with open_store(bobs) as store:
        store.check_writable()
        store.begin(a_run("20261120-two"))
        store.finish(a_run("20261120-two"))
        assert store.run("20261120-one") == a_run()
        ask("REVOKE UPDATE ON flowos_runs FROM bob")
        with pytest.raises(StoreError, match="cannot keep runs in"):
            store.check_writable()


def test_the_store_shows_itself_without_the_password(url: str) -> None:
    with open_store(url) as store:
        assert "ada:***@" in repr(store)
        assert "hunter2" not in repr(store) + store.place


def test_a_connection_that_the_server_ended_is_made_anew(url: str) -> None:
    ours = "datname = current_database() AND pid <> pg_backend_pid()"
    others = f"FROM pg_stat_activity WHERE {ours} AND backend_type = 'client backend'"
    with open_store(url) as store:
        store.begin(a_run())
        end_them = f"SELECT pg_terminate_backend(pid) {others}"
        ended = subprocess.run(
            [f"{binaries()}/psql", url, "-Atqc", end_them], check=True, capture_output=True
        )
        assert ended.stdout == b"t\n"
        store.keep(a_sample("20261120-one"))
        assert store.counts() == {"20261120-one": 1}


def test_a_path_that_cannot_be_looked_at_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^cannot look for .*: .*File name too long"):
        open_store(str(tmp_path / f"{'x' * 300}.db"), make=False)


def test_a_child_of_a_fork_opens_its_own(store: Store) -> None:
    store.begin(a_run())
    pid = os.fork()
    if not pid:
        try:
            store.runs()
        except StoreError as error:
            os._exit(
                0 if "opened before this process was forked: open it anew" in str(error) else 1
            )
        finally:
            store.close()
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert store.runs() == (a_run(),)


def test_a_lock_of_another_program_is_not_waited_for_without_an_end(url: str) -> None:
    open_store(url).close()
    locks = "BEGIN; LOCK TABLE flowos_runs IN ACCESS EXCLUSIVE MODE; SELECT 'locked';"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([f"{binaries()}/psql", url, "-Atq"], **pipes) as other:
        assert other.stdin
        assert other.stdout
        other.stdin.write(f"{locks}\n")
        other.stdin.flush()
        assert other.stdout.readline() == "locked\n"
        with open_store(url, wait_seconds=0.5) as store:
            with pytest.raises(StoreError, match="another program holds it"):
                store.runs()
            with pytest.raises(StoreError, match="another program holds it"):
                store.begin(a_run())


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no server answers there: start it"):
        open_store(f"postgresql:///x?host={tmp_path}")
