"""URLs of databases, error messages when one fails, and that secrets stay secret."""

import sys
from pathlib import Path

import pytest

from flowos.model import StoreError
from flowos.store import default_file, file_stamp, open_store
from flowos.store._database import describe
from flowos.store._files import on_network
from flowos.store._place import read_url
from flowos.store._postgresql import without_secrets


def test_the_default_is_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_file() == Path("/data/flowos/flowos.db")
    assert read_url(None) == Path("/data/flowos/flowos.db")


@pytest.mark.parametrize("data", ["", "relative/is/to/be/ignored"])
def test_without_a_data_folder_it_is_under_home(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", data)
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_file() == Path("/home/ada/.local/share/flowos/flowos.db")


def test_a_path_is_a_database_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert read_url("~/runs.db") == Path("/home/ada/runs.db")


@pytest.mark.parametrize("given", ["runs.db", "runs.sqlite", "./runs", "/data/runs"])
def test_what_looks_like_a_path_is_one(given: str) -> None:
    assert read_url(given) == Path(given).absolute()


@pytest.mark.parametrize("given", ["foo", "sqlite"])
def test_a_mistyped_url_makes_no_database_of_that_name(given: str) -> None:
    with pytest.raises(StoreError, match=f"store '{given}': expected the path of an SQLite file"):
        read_url(given)


@pytest.mark.parametrize(
    ("given", "file"),
    [
        ("sqlite:////home/a/x.db", "/home/a/x.db"),
        ("sqlite+pysqlite:////home/a/x?.db", "/home/a/x?.db"),
        ("sqlite:///x.db", f"{Path.cwd()}/x.db"),
    ],
)
def test_a_url_of_sqlite_is_a_database_file(given: str, file: str) -> None:
    assert read_url(given) == Path(file)


@pytest.mark.parametrize("given", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_database_in_memory_is_forgotten(given: str) -> None:
    for _ in range(2):
        with open_store(given) as store:
            assert (store.place, store.sizes()) == (":memory:", (0, 0, 0))


@pytest.mark.parametrize("kind", ["postgresql", "postgres", "POSTGRESQL", "postgresql+psycopg"])
def test_urls_of_postgresql_have_several_beginnings(kind: str) -> None:
    assert read_url(f"{kind}://u@h/x") == "postgresql://u@h/x"


@pytest.mark.parametrize(
    "given",
    [
        *("sqlite://x.db", "sqlite:foo", "sqlite:/y.db", "SQLite:x.db", "postgresql:h"),
        *("postgresql:/u:hunter2@h/x", "postgresql:u:hunter2@h/x"),
        "postgresql://u:hunter2@h:port/x",
    ],
)
def test_an_unreadable_url_is_one_line_without_the_url(given: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(given)
    assert "URL cannot be read: write " in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hunter2@h/x", "postgresql://u:***@h/x"),
        ("postgresql://u:hun@t/er:2@h/x", "postgresql://u:***@h/x"),
        ("postgresql://u@h:5432/x", "postgresql://u@h:5432/x"),
        ("postgresql://h/x?user=u&password=hunter2", "postgresql://h/x?user=u&password=***"),
        ("postgresql://h/x?sslPassword=a&user=u", "postgresql://h/x?sslPassword=***&user=u"),
    ],
)
def test_a_place_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_a_password_in_the_drivers_words_is_hidden_and_the_words_are_one_line() -> None:
    assert describe("odd:\n hunter2 and\n s3cret", ("hunter2", "s3cret", "")) == "odd: *** and ***"


def test_a_short_password_is_hidden_as_a_word_and_leaves_other_words_whole() -> None:
    assert describe('an invalid port: "p" of p@h', ("p",)) == 'an invalid port: "***" of ***@h'


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("permission denied for schema public", "create tables there"),
        ("permission denied for table flowos_runs", "read and write its tables"),
        ("permission denied for sequence flowos_runs_number_seq", "read and write its tables"),
    ],
)
def test_the_right_that_a_user_lacks_is_named(said: str, right: str) -> None:
    assert describe(said) == f"this user may not: ask for the right to {right}"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nosuchkind://u:hunter2@h/x", "a database of 'nosuchkind' is unknown: use sqlite:///FILE"),
        ("mysql://u:hunter2@h/x", "or postgresql://HOST/NAME"),
        ("://u:hunter2@h/x", "a database of '' is unknown"),
        ("postgresql://u:hunter2@127.0.0.1:1/x", "no server answers there: start it"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_line_with_a_remedy(url: str, said: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(url)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    shows_cause = caught.value.__context__ and not caught.value.__suppress_context__
    assert not shows_cause, "the driver's own traceback may show the URL"


def test_a_missing_driver_is_one_line_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"u:\*\*\*@h/x: .*pip install 'flowos-hpc\[postgresql\]'"):
        open_store("postgresql://u:hunter2@h/x")


def test_a_store_that_a_path_made_is_new_once_and_ones_own_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for url, new in (
        (f"{tmp_path}/x.db", True),
        (f"sqlite:///{tmp_path}/y.db", True),
        (None, False),
    ):
        for is_new in (new, False):
            with open_store(url) as store:
                assert store.is_new is is_new


MOUNTS = (
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw",
    "40 22 0:40 / /home rw,relatime shared:9 - nfs4 server:/home rw",
    "41 22 0:41 / /mnt/my\\040disk rw - fuse.sshfs host: rw",
)


@pytest.mark.parametrize(
    ("file", "network"),
    [
        ("/var/lib/x.db", False),
        ("/home/ada/flowos.db", True),
        ("/mnt/my disk/x.db", True),
        ("/homes/x.db", False),
    ],
)
def test_a_network_file_system_is_recognised(file: str, network: bool) -> None:
    assert on_network(Path(file), MOUNTS) is network


def test_without_a_list_of_mounts_a_folder_counts_as_local() -> None:
    assert not on_network(Path("/home/x.db"), ())


def test_a_stamp_changes_with_the_file_and_a_server_has_none(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    seen = [file_stamp(str(file))]
    for path, text in ((file, "a"), (file, "ab"), (tmp_path / "runs.db-wal", "a")):
        path.write_text(text)
        seen.append(file_stamp(str(file)))
    assert len(set(seen)) == 4
    assert file_stamp(str(file)) == seen[-1]
    assert file_stamp("postgresql://localhost/runs") is None
    assert file_stamp("sqlite:///:memory:") is None
