"""The current tables. `_migrations.py` brings older databases to them."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, MetaData, Table, Text

metadata = MetaData()

schema = Table(
    "flowos_schema",
    metadata,
    Column("number", Integer, nullable=False),
)

runs = Table(
    "flowos_runs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("started", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("body", Text, nullable=False),
)

samples = Table(
    "flowos_samples",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("run", Text, ForeignKey("flowos_runs.id"), nullable=False),
    Column("probe", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("body", Text, nullable=False),
)
samples_by_run = Index("flowos_samples_by_run", samples.c.run)

processes = Table(
    "flowos_processes",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("started", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("body", Text, nullable=False),
)

slices = Table(
    "flowos_slices",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("process", Text, nullable=False),
    Column("asked", Float, nullable=False),
    Column("body", Text, nullable=False),
)

images = Table(
    "flowos_image_origins",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("body", Text, nullable=False),
)

old_image_names = Table(
    "flowos_images",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("digest", Text, nullable=False),
    Column("body", Text, nullable=False),
)
old_image_names_by_digest = Index("flowos_images_by_digest", old_image_names.c.digest)
