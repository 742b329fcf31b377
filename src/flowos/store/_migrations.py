"""Migrates any older schema to the current one: an ordered list of steps, forward only.

A step never changes after its release. The tables are described here alone: a fresh database makes
all steps. A test migrates committed databases of older schemas and compares the results with a
fresh one.
"""

import json
from collections.abc import Callable

from flowos.model import StoreError
from flowos.store._database import Database, Execute

MigrationStep = Callable[[Database, Execute], None]


def _first_tables(database: Database, execute: Execute) -> None:
    """Schema 1: runs and samples."""
    execute(
        f"CREATE TABLE flowos_runs (number {database.number}, id TEXT NOT NULL UNIQUE,"
        " started TEXT NOT NULL, host TEXT NOT NULL, body TEXT NOT NULL)"
    )
    execute(
        f"CREATE TABLE flowos_samples (number {database.number},"
        " run TEXT NOT NULL REFERENCES flowos_runs (id), probe TEXT NOT NULL,"
        " metric TEXT NOT NULL, body TEXT NOT NULL)"
    )


def _slice_events(database: Database, execute: Execute) -> None:
    """Schema 2: events of slices; an index for samples by run."""
    execute(
        f"CREATE TABLE flowos_events (number {database.number}, slice TEXT NOT NULL,"
        " at TEXT NOT NULL, kind TEXT NOT NULL, notes TEXT NOT NULL)"
    )
    execute("CREATE INDEX flowos_events_by_slice ON flowos_events (slice)")
    execute("CREATE INDEX flowos_samples_by_run ON flowos_samples (run)")


def _image_names(database: Database, execute: Execute) -> None:
    """Schema 3: names and origins of images."""
    execute(
        f"CREATE TABLE flowos_images (number {database.number}, name TEXT NOT NULL UNIQUE,"
        " digest TEXT NOT NULL, body TEXT NOT NULL)"
    )
    execute("CREATE INDEX flowos_images_by_digest ON flowos_images (digest)")


def _image_origins(database: Database, execute: Execute) -> None:
    """Schema 4: origins of images by digest. Their names stay until they are converted to links."""
    execute(
        f"CREATE TABLE flowos_image_origins (number {database.number},"
        " digest TEXT NOT NULL UNIQUE, body TEXT NOT NULL)"
    )
    origins: dict[str, str] = {}
    for digest, body in database.rows("SELECT digest, body FROM flowos_images ORDER BY number"):
        fields = {name: value for name, value in json.loads(body).items() if name != "name"}
        origins.setdefault(digest, json.dumps(fields))
    for digest, body in origins.items():
        execute(
            "INSERT INTO flowos_image_origins (digest, body) VALUES (:digest, :body)",
            {"digest": digest, "body": body},
        )


def _processes(database: Database, execute: Execute) -> None:
    """Schema 5: programs that used slices. Drops the slice events, as nothing ever wrote any."""
    execute(
        f"CREATE TABLE flowos_processes (number {database.number}, id TEXT NOT NULL UNIQUE,"
        " started TEXT NOT NULL, host TEXT NOT NULL, body TEXT NOT NULL)"
    )
    execute("DROP TABLE flowos_events")


def _slices(database: Database, execute: Execute) -> None:
    """Schema 6: slices of pools."""
    execute(
        f"CREATE TABLE flowos_slices (number {database.number}, id TEXT NOT NULL UNIQUE,"
        " process TEXT NOT NULL, asked FLOAT NOT NULL, body TEXT NOT NULL)"
    )


STEPS: tuple[MigrationStep, ...] = (
    _first_tables,
    _slice_events,
    _image_names,
    _image_origins,
    _processes,
    _slices,
)
NEWEST = len(STEPS)


def schema_number(database: Database) -> int:
    """Of this database; 0 if it has no tables of ours. Raises StoreError if it is damaged."""
    if not database.has_table("flowos_schema"):
        return 0
    ((number,),) = database.rows("SELECT max(number) FROM flowos_schema")
    if not isinstance(number, int):
        raise StoreError(f"{database.place} is damaged: move it away, then a new one is made")
    return number


def check_not_newer(number: int, place: str) -> None:
    """Raises StoreError if a newer FlowOS wrote this database."""
    if number > NEWEST:
        raise StoreError(
            f"{place} was made by a newer FlowOS (schema {number}, this one knows {NEWEST}): "
            "upgrade FlowOS, or name another place"
        )


def migrate(database: Database, execute: Execute) -> None:
    """Run the missing steps in the current transaction."""
    number = schema_number(database)
    check_not_newer(number, database.place)
    if number == 0:
        execute("CREATE TABLE flowos_schema (number INTEGER NOT NULL)")
        execute("INSERT INTO flowos_schema VALUES (0)")
    for step in STEPS[number:]:
        step(database, execute)
    execute("UPDATE flowos_schema SET number = :number", {"number": NEWEST})
