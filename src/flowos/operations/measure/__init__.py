"""`flowos measure`: one session for one environment or several, one report."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_alone": "refuse_in_a_task",
    "_case_order": "as_planned",
    "_cases": "offered",
    "_next_steps": "with_end with_time_to_decide",
    "_prepare": "check",
    "_report": "report_of headlines_in findings_in",
    "_report_files": "written",
    "_run": "OnSample Result facts_of measured planned",
    "_sampler": "TIME_WAS_OUT",
    "_session": "DeployedOn measure",
    "_time": "budget_seconds lacked_time not_begun overhead_seconds round_seconds",
}

if TYPE_CHECKING:
    from flowos.operations.measure._alone import (
        refuse_in_a_task as refuse_in_a_task,
    )
    from flowos.operations.measure._case_order import (
        as_planned as as_planned,
    )
    from flowos.operations.measure._cases import (
        offered as offered,
    )
    from flowos.operations.measure._next_steps import (
        with_end as with_end,
        with_time_to_decide as with_time_to_decide,
    )
    from flowos.operations.measure._prepare import (
        check as check,
    )
    from flowos.operations.measure._report import (
        report_of as report_of,
        headlines_in as headlines_in,
        findings_in as findings_in,
    )
    from flowos.operations.measure._report_files import (
        written as written,
    )
    from flowos.operations.measure._run import (
        OnSample as OnSample,
        Result as Result,
        facts_of as facts_of,
        measured as measured,
        planned as planned,
    )
    from flowos.operations.measure._sampler import (
        TIME_WAS_OUT as TIME_WAS_OUT,
    )
    from flowos.operations.measure._session import (
        DeployedOn as DeployedOn,
        measure as measure,
    )
    from flowos.operations.measure._time import (
        budget_seconds as budget_seconds,
        lacked_time as lacked_time,
        not_begun as not_begun,
        overhead_seconds as overhead_seconds,
        round_seconds as round_seconds,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
