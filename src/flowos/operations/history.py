"""`flowos show` and `report`: what the runs in the store say."""

import io
import shlex
from collections.abc import Iterator
from csv import reader
from pathlib import Path

from flowos.model import Run, Sample, StoreError, UsageError
from flowos.operations._files import replaced
from flowos.operations.measure import not_begun, report_of
from flowos.plan import Numbers, limits_for
from flowos.report import NUMBER_COLUMNS, Report, csv
from flowos.store import open_store


def report(ref: str, url: str | None) -> Report:
    """The report of a run by its id, a prefix or 'last'. Raises StoreError if there is none."""
    return report_of(*samples_of(ref, url))


def rewritten(made: Report, out: Path, *, parquet: bool = False) -> tuple[Path, ...]:
    """Write a report again; parquet: the table of its numbers as Parquet, too.

    Raises StoreError if the folder is not writable, UsageError without the package pyarrow.
    """
    from flowos.operations.measure import written  # all formats: slow to import

    table = _as_parquet(csv(made)) if parquet else None
    notes: list[str] = []
    files = written(made, out, notes)
    if notes:
        raise StoreError(notes[0])
    if table is None:
        return files
    with replaced(out / "report.parquet") as file:
        file.write(table)
    return (*files, out / "report.parquet")


def _as_parquet(text: str) -> bytes:
    """The table of a report as Parquet, whose columns have the same types in every report."""
    try:
        from pyarrow import BufferOutputStream
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv
        from pyarrow.parquet import write_table
    except ImportError as error:
        raise UsageError(
            "--parquet needs the package pyarrow: pip install 'flowos-hpc[parquet]'"
        ) from error
    data = text.encode()
    types = {name: "string" for name in next(reader(io.StringIO(text)))}
    types |= {"count": "int64"} | dict.fromkeys(NUMBER_COLUMNS, "float64")
    table = read_csv(
        io.BytesIO(data),
        ReadOptions(block_size=len(data) + 1),  # a row is in one block
        ParseOptions(newlines_in_values=True),
        ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True),
    )
    out = BufferOutputStream()
    write_table(table, out)
    return bytes(out.getvalue())


def described(run: Run) -> Iterator[tuple[str, str]]:
    """What numbers may depend on."""
    yield "host", run.host
    yield "processor", run.facts.cpu_model
    yield "cpus", str(len(run.facts.allowed))
    yield "quota of cpus", "" if run.facts.quota_cpus is None else f"{run.facts.quota_cpus:g}"
    yield "GPUs", ", ".join(run.facts.gpus)
    yield "kernel", run.facts.kernel
    yield "FlowOS", run.version
    yield "effort", run.request.effort
    yield "binary", run.request.binary
    yield "matrix", str(run.request.matrix or "")
    yield "folder on the storage", str(run.request.scratch)
    yield "environments", ", ".join(run.request.environments)
    yield "commands", "; ".join(map(shlex.join, run.request.commands))
    yield "--ignore-failure", "yes" * run.request.ignore_failure
    yield "folder of commands", str(run.request.folder or "")


def numbers_of(report: Report) -> Numbers:
    """What a run is compared by with one that was not interleaved with it."""
    limits = limits_for(report.run.facts.architecture, (s.state for s in report.samples))
    return Numbers(
        run=report.run.id,
        measurements=report.measurements,
        samples=report.samples,
        failed=[c for c, why in report.run.unmeasured if not not_begun(why)],
        ended_early=report.run.ended_early,
        limits=limits,
    )


def samples_of(ref: str, url: str | None) -> tuple[Run, tuple[Sample, ...]]:
    """A run of the store, and its samples."""
    with open_store(url, make=False) as store:
        run = store.run(ref)
        return run, store.samples(run)
