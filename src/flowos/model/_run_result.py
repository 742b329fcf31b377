"""How one run of a flow ended, as a value."""

from flowos._dataclasses import dataclass
from flowos.model._errors import FlowosError


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RunResult:
    """One item of `map(..., on_error="return")`.

    outputs: as `run` returns them; None if it failed, and then `error` says why. attempts: of the
    task that needed most; 1 without a retry, 0 for values that were refused before anything ran.
    seconds: from the start of the first task to the end of the last, of the last attempt where the
    flow is a single one; the mean of those that ran in one millisecond.

    >>> @fo.task
    ... def inverse(x: float) -> float:
    ...     return 1 / x
    >>> with fo.slice(inverse(fo.flow_input("x", float))) as s:
    ...     good, bad = s.map([4.0, 0.0], on_error="return")
    >>> good.ok, good.get()
    (True, [0.25])
    >>> bad.ok, type(bad.error).__name__
    (False, 'TaskFailed')
    """

    outputs: list[object] | None = None
    error: FlowosError | None = None
    attempts: int = 1
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it came to its end."""
        return self.error is None

    def get(self) -> list[object]:
        """The outputs; raises the error of a run that failed."""
        if self.error is not None:
            raise self.error
        assert self.outputs is not None
        return self.outputs
