"""`flowos measure`: one session for one environment or several, one report."""

from flowos.operations.measure._case_order import as_planned
from flowos.operations.measure._next_steps import with_time_to_tell
from flowos.operations.measure._report import book_of
from flowos.operations.measure._run import DeployedOn, OnSample, Result, measured, planned, written
from flowos.operations.measure._session import OUT_OF_TIME, measure

__all__ = [
    "OUT_OF_TIME",
    "DeployedOn",
    "OnSample",
    "Result",
    "as_planned",
    "book_of",
    "measure",
    "measured",
    "planned",
    "with_time_to_tell",
    "written",
]
