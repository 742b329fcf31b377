"""`flowos measure`: one session for one environment or several, one report."""

from flowos.operations.measure._case_order import as_planned
from flowos.operations.measure._cases import offered
from flowos.operations.measure._next_steps import with_time_to_tell
from flowos.operations.measure._prepare import check
from flowos.operations.measure._report import book_of, headlines_in
from flowos.operations.measure._run import DeployedOn, OnSample, Result, measured, planned, written
from flowos.operations.measure._sampler import TIME_WAS_OUT
from flowos.operations.measure._session import OUT_OF_TIME, measure
from flowos.operations.measure._time import budget_seconds, overhead_seconds, round_seconds

__all__ = [
    "OUT_OF_TIME",
    "TIME_WAS_OUT",
    "DeployedOn",
    "OnSample",
    "Result",
    "as_planned",
    "book_of",
    "budget_seconds",
    "check",
    "headlines_in",
    "measure",
    "measured",
    "offered",
    "overhead_seconds",
    "planned",
    "round_seconds",
    "with_time_to_tell",
    "written",
]
