"""Migrates any older schema to the current one: an ordered list of steps, forward only.

A step never changes after its release, so it defines its own tables and columns instead of using
`_tables`, which changes. A test migrates committed databases of older schemas and compares the
results with a fresh one.
"""

import json
from collections.abc import Callable

from sqlalchemy import Column, Connection, Float, ForeignKey, Integer, MetaData, Table, Text, text

from flowos.model import StoreError

Step = Callable[[Connection], None]


def _first_tables(connection: Connection) -> None:
    """Schema 1: runs and samples."""
    meta = MetaData()
    Table(
        "flowos_runs",
        meta,
        Column("number", Integer, primary_key=True, autoincrement=True),
        Column("id", Text, nullable=False, unique=True),
        Column("started", Text, nullable=False),
        Column("host", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    Table(
        "flowos_samples",
        meta,
        Column("number", Integer, primary_key=True, autoincrement=True),
        Column("run", Text, ForeignKey("flowos_runs.id"), nullable=False),
        Column("probe", Text, nullable=False),
        Column("metric", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    meta.create_all(connection)


def _slice_events(connection: Connection) -> None:
    """Schema 2: events of slices; an index for samples by run."""
    meta = MetaData()
    Table(
        "flowos_events",
        meta,
        Column("number", Integer, primary_key=True, autoincrement=True),
        Column("slice", Text, nullable=False),
        Column("at", Text, nullable=False),
        Column("kind", Text, nullable=False),
        Column("notes", Text, nullable=False),
    )
    meta.create_all(connection)
    connection.execute(text("CREATE INDEX flowos_events_by_slice ON flowos_events (slice)"))
    connection.execute(text("CREATE INDEX flowos_samples_by_run ON flowos_samples (run)"))


def _image_names(connection: Connection) -> None:
    """Schema 3: names and origins of images."""
    meta = MetaData()
    Table(
        "flowos_images",
        meta,
        Column("number", Integer, primary_key=True, autoincrement=True),
        Column("name", Text, nullable=False, unique=True),
        Column("digest", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    meta.create_all(connection)
    connection.execute(text("CREATE INDEX flowos_images_by_digest ON flowos_images (digest)"))


def _image_origins(connection: Connection) -> None:
    """Schema 4: origins of images by digest. Their names stay until they are converted to links."""
    meta = MetaData()
    Table(
        "flowos_image_origins",
        meta,
        Column("number", Integer, primary_key=True, autoincrement=True),
        Column("digest", Text, nullable=False, unique=True),
        Column("body", Text, nullable=False),
    )
    meta.create_all(connection)
    origins: dict[str, str] = {}
    rows = connection.execute(text("SELECT digest, body FROM flowos_images ORDER BY number"))
    for digest, body in rows:
        fields = {name: value for name, value in json.loads(body).items() if name != "name"}
        origins.setdefault(digest, json.dumps(fields))
    for digest, body in origins.items():
        connection.execute(
            text("INSERT INTO flowos_image_origins (digest, body) VALUES (:digest, :body)"),
            {"digest": digest, "body": body},
        )


def _processes(connection: Connection) -> None:
    """Schema 5: programs that used slices. Drops the slice events, as nothing ever wrote any."""
    meta = MetaData()
    Table(
        "flowos_processes",
        meta,
        Column("number", Integer, primary_key=True, autoincrement=True),
        Column("id", Text, nullable=False, unique=True),
        Column("started", Text, nullable=False),
        Column("host", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    meta.create_all(connection)
    connection.execute(text("DROP TABLE flowos_events"))


def _slices(connection: Connection) -> None:
    """Schema 6: slices of pools."""
    meta = MetaData()
    Table(
        "flowos_slices",
        meta,
        Column("number", Integer, primary_key=True, autoincrement=True),
        Column("id", Text, nullable=False, unique=True),
        Column("process", Text, nullable=False),
        Column("asked", Float, nullable=False),
        Column("body", Text, nullable=False),
    )
    meta.create_all(connection)


STEPS: tuple[Step, ...] = (
    _first_tables,
    _slice_events,
    _image_names,
    _image_origins,
    _processes,
    _slices,
)
NEWEST = len(STEPS)


def schema_number(connection: Connection) -> int:
    """The schema of this database; 0 if it has no tables of ours."""
    if not connection.dialect.has_table(connection, "flowos_schema"):
        return 0
    return connection.execute(text("SELECT max(number) FROM flowos_schema")).scalar() or 0


def check_not_newer(number: int, place: str) -> None:
    """Raises StoreError if a newer FlowOS wrote this database."""
    if number > NEWEST:
        raise StoreError(
            f"{place} was made by a newer FlowOS (schema {number}, this one knows {NEWEST}): "
            "upgrade FlowOS, or name another place"
        )


def migrate(connection: Connection, place: str, newest: int = NEWEST) -> None:
    """Run the missing steps in the current transaction."""
    number = schema_number(connection)
    check_not_newer(number, place)
    if number == 0:
        connection.execute(text("CREATE TABLE flowos_schema (number INTEGER NOT NULL)"))
        connection.execute(text("INSERT INTO flowos_schema VALUES (0)"))
    for step in STEPS[number:newest]:
        step(connection)
    connection.execute(text("UPDATE flowos_schema SET number = :n"), {"n": newest})
