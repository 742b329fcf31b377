"""Databases made by other versions, damaged ones, and files that are none."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import Ask, Process, SliceRecord, StoreError
from flowos.operations.stored_runs import removed
from flowos.store import ImageRecord, open_store

DATABASES = Path(__file__).parents[1] / "data/store"
OLD = DATABASES / "schema-1.db"


def test_the_old_database_is_migrated_and_its_runs_are_read(tmp_path: Path) -> None:
    shutil.copy(OLD, tmp_path / "old.db")
    with open_store(str(tmp_path / "old.db")) as store:
        newest, oldest = store.runs()
        assert (oldest.id, oldest.ended) == ("20261120T100000-a0", "2026-11-20T10:03:00Z")
        assert oldest.unmeasured[0][1].remedy == "apt install fio"
        assert newest.facts.compilers[0].name == "gcc-12"
        assert [s.values[0] for s in store.samples(newest)] == [45.7e9, 45.8e9]
        process = Process(id="p-1", argv=("x",), host="h", pid=1, started="2026-11-20T10:00:00Z")
        store.keep_process(process)
        assert store.processes() == (process,)


def test_a_run_is_read_by_the_names_that_its_fields_had(tmp_path: Path) -> None:
    mpi = '{"name":"m","family":"mpich","version":"4","compiler":"cc","starter":"/usr/bin/mpirun"}'
    shutil.copy(DATABASES / "schema-4.db", tmp_path / "old.db")
    with sqlite3.connect(tmp_path / "old.db") as database:
        database.execute("UPDATE flowos_runs SET body = json_set(body, '$.facts.mpis[0]', json(?))",
                         (mpi,))  # fmt: skip
    with open_store(str(tmp_path / "old.db")) as store:
        run = store.runs()[0]
        assert (run.request.effort, str(run.facts.mpis[0].mpirun)) == ("normal", "/usr/bin/mpirun")
        assert run == store.runs()[0]
        store.finish(run)
        assert store.runs()[0] == run


def test_a_database_without_images_keeps_some(tmp_path: Path) -> None:
    shutil.copy(DATABASES / "schema-2.db", tmp_path / "old.db")
    with open_store(str(tmp_path / "old.db")) as store:
        image = ImageRecord(digest="sha256:ab", at="2026-11-21T10:00:00Z", size_bytes=7)
        assert store.keep_image(image) == image
        assert len(store.runs()) == 2


def test_images_that_had_several_names_have_one_origin_and_the_names_wait(tmp_path: Path) -> None:
    shutil.copy(DATABASES / "schema-3.db", tmp_path / "old.db")
    with open_store(str(tmp_path / "old.db")) as store:
        image = store.image(f"sha256:{'a1' * 32}")
        assert image
        assert (image.source, image.at) == ("/home/ada/fio", "2026-11-20T10:00:00Z")
        assert image.made_with == (("mksquashfs", "4.5.1"),)
        names = [(name, digest[7:11]) for name, digest in store.old_image_names()]
        assert names == [
            ("fio", "a1a1"),
            ("second", "a1a1"),
            ("other.sqfs", "b2b2"),
            ("gone", "c3c3"),
        ]
        store.forget_old_image_names()
        assert store.old_image_names() == ()


def test_a_database_without_processes_keeps_some_beside_what_it_has(tmp_path: Path) -> None:
    shutil.copy(DATABASES / "schema-4.db", tmp_path / "old.db")
    with open_store(str(tmp_path / "old.db")) as store:
        assert len(store.runs()) == 2
        assert store.image("sha256:ab") is not None
        assert store.processes() == ()


def test_a_database_without_slices_keeps_the_last_that_is_known_of_each(tmp_path: Path) -> None:
    shutil.copy(DATABASES / "schema-5.db", tmp_path / "old.db")
    with open_store(str(tmp_path / "old.db")) as store:
        (process,) = store.processes()
        assert store.slices() == ()
        first = SliceRecord(
            id="c-1", pool="c", kind="local", process=process.id, asked=1.5, ask=Ask()
        )
        second = replace(first, id="c-2", asked=2.5)
        for each in (first, second, replace(first, state="freed")):
            store.keep_slice(each)
        assert store.slices() == (second, replace(first, state="freed"))
        assert store.slices(1) == (second,)


def tables(file: Path) -> dict[str, object]:
    """Columns and indexes of each table, without the order of the tables."""
    with closing(sqlite3.connect(file)) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: (
                [column[1:3] for column in database.execute(f"PRAGMA table_info({name})")],
                {index[1:3] for index in database.execute(f"PRAGMA index_list({name})")},
                [key[2:5] for key in database.execute(f"PRAGMA foreign_key_list({name})")],
            )
            for (name,) in names
        }


@pytest.mark.parametrize("old", ["1", "2", "3", "4", "5"])
def test_an_old_database_gets_the_tables_of_a_new_one(old: str, tmp_path: Path) -> None:
    shutil.copy(DATABASES / f"schema-{old}.db", tmp_path / "old.db")
    for name in ("old.db", "new.db"):
        open_store(str(tmp_path / name)).close()
    assert tables(tmp_path / "old.db") == tables(tmp_path / "new.db")
    assert len(tables(tmp_path / "new.db")) == 7


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    open_store(str(file)).close()
    with sqlite3.connect(file) as raw:
        raw.execute("UPDATE flowos_schema SET number = 99")
    raw.close()
    with pytest.raises(StoreError, match=r"made by a newer FlowOS \(schema 99, .*upgrade FlowOS"):
        open_store(str(file))


def test_a_damaged_row_is_named_not_a_traceback(tmp_path: Path) -> None:
    file = Path(shutil.copy(OLD, tmp_path / "x.db"))
    with open_store(str(file)) as store:
        with sqlite3.connect(file) as raw:
            raw.execute("UPDATE flowos_runs SET body = '{\"id\": 7}'")
        raw.close()
        with pytest.raises(StoreError, match=r"cannot be read: run (\S+): .*flowos rm \1'"):
            store.run("last")
        with pytest.raises(StoreError, match=r"cannot be read: run (\S+): .*flowos rm \1'"):
            store.runs()
    (gone,) = removed(("last",), str(file))
    with open_store(str(file)) as store:
        assert gone.id not in store.counts()
        assert store.sizes()[0] == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE flowos_schema SET number = 'six'",
        "DELETE FROM flowos_schema",
    ],
)
def test_a_damaged_schema_is_one_line(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    open_store(str(file)).close()
    with closing(sqlite3.connect(file)) as raw:
        raw.execute(damage)
        raw.commit()
    with pytest.raises(StoreError, match="is damaged: move it away, then a new one is made"):
        open_store(str(file))


def test_bodies_in_each_other_without_an_end_cannot_be_read(tmp_path: Path) -> None:
    file = Path(shutil.copy(OLD, tmp_path / "x.db"))
    with open_store(str(file)) as store, closing(sqlite3.connect(file)) as raw:
        raw.execute("UPDATE flowos_runs SET body = ?", ("[" * 100_000,))
        raw.commit()
        with pytest.raises(StoreError, match="holds what cannot be read"):
            store.run("last")


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear Ada, this is a letter and no database. " * 40)
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"letter\.txt: this file is no database"):
        open_store(str(file))
    assert file.read_bytes() == before
