"""The report that HPCG writes, as readings."""

import re

from flowos.model import Exited, MeasureError, Outcome, Reading, Unmeasured

_RATING = re.compile(r"HPCG result is[ =:]*(?P<said>VALID|INVALID)(?:[^=:\n]*[=:] *(?P<rate>\S*))?")
_VERSION = re.compile(r"HPCG-Benchmark version *[=:] *(\S+)|^version *[=:] *(\S+)", re.MULTILINE)
_RESIDUAL = re.compile(r"Scaled residual mean *[=:] *(\S+)")
_FAILED = re.compile(r"^(?P<test>[^:=\n]+)(?:::| *:\s+)Result *[=:] *FAILED", re.MULTILINE)


def read_answer_of_hpcg(outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
    """flops, as HPCG rates it, of a run that it calls valid.

    Raises MeasureError if it ended well without a rating.
    """
    text = outcome.stdout.decode(errors="replace")
    if outcome.end != Exited(0):
        return Unmeasured(reason=f"xhpcg ended by {outcome.end}")
    rating = _RATING.search(text)
    if rating is None:
        raise MeasureError(f"xhpcg's report cannot be read: {text[-300:]!r}")
    if rating["said"] == "INVALID":
        failed = ", ".join(match["test"].strip() for match in _FAILED.finditer(text))
        return Unmeasured(
            reason=f"xhpcg calls its own result invalid: {failed or 'it says no more'}"
        )
    try:
        rate = float(rating["rate"]) * 1e9
    except ValueError as error:
        raise MeasureError(f"xhpcg's rating cannot be read: {rating[0]!r}") from error
    version, residual = _VERSION.search(text), _RESIDUAL.search(text)
    notes = (
        *((("version", version[1] or version[2]),) if version else ()),
        *((("residual", residual[1]),) if residual else ()),
    )
    return (Reading(metric="flops", unit="flop/s", values=(rate,), notes=notes),)
