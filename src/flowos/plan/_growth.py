"""When a slice that grows with its work holds one node more, and when it gives some back."""

from flowos._dataclasses import dataclass

MAX_FAILURES = 3
"""In a row: then it stops growing."""
_BACKLOG_SECONDS = 0.5
_RETRY_SECONDS = 0.5
_MAX_SECONDS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRange:
    """How many nodes are held, and how long one stays that has nothing to do.

    Raises ValueError for what cannot be.
    """

    min_nodes: int
    max_nodes: int
    idle_seconds: float

    def __post_init__(self) -> None:
        pair = (self.min_nodes, self.max_nodes)
        if (
            any(type(each) is not int for each in pair)
            or not 0 <= self.min_nodes <= self.max_nodes > 0
        ):
            raise ValueError(
                f"nodes={pair!r}; expected (MIN, MAX), with MIN from 0 to MAX, MAX above 0"
            )
        seconds = self.idle_seconds
        if type(seconds) not in (int, float) or not 0 < seconds < _MAX_SECONDS:
            raise ValueError(f"idle_seconds={seconds!r}; expected a finite number above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthView:
    """What is held and waits now.

    idle: seconds since each node worked, 0 while it does. leaving: nodes that work on, but get
    nothing new. backlog: work for which no node has room; backlog_seconds: for how long there was
    some, quiet_seconds: for how long there was none. coming: whether a node is waited for.
    failures: in a row; failed_seconds: since the last of them.
    """

    idle: tuple[float, ...] = ()
    leaving: int = 0
    backlog: int = 0
    backlog_seconds: float = 0.0
    quiet_seconds: float = 0.0
    coming: bool = False
    failures: int = 0
    failed_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthStep:
    """What to do now. withdraw: wait no longer. give_back: nodes by their place in `idle`."""

    grow: bool = False
    withdraw: bool = False
    give_back: tuple[int, ...] = ()


def growth_step(view: GrowthView, nodes: NodeRange) -> GrowthStep:
    """One thing at a time: nodes are given back while none is waited for."""
    enough = len(view.idle) >= nodes.min_nodes
    if view.coming:
        unneeded = view.backlog == 0 and view.quiet_seconds >= nodes.idle_seconds
        return GrowthStep(withdraw=enough and unneeded)
    if _grows(view, nodes, enough=enough):
        return GrowthStep(grow=True)
    longest = sorted(range(len(view.idle)), key=lambda i: -view.idle[i])
    spare = longest[: max(0, len(view.idle) - nodes.min_nodes)]
    return GrowthStep(give_back=tuple(i for i in spare if view.idle[i] >= nodes.idle_seconds))


def why_no_node(view: GrowthView, nodes: NodeRange, pool_said: str, failed: str) -> str:
    """Why work waits for a node, in words. failed: why the last one did not come, or was lost."""
    if view.coming:
        before = f"; before, none came: {failed}" if view.failures else ""
        return f"the pool was asked for one, and said: {pool_said or 'nothing yet'}{before}"
    held = len(view.idle) + view.leaving
    if held >= nodes.max_nodes:
        return f"the slice holds {held}, the most that it may, and they have no room"
    if view.failures:
        return f"none came ({failed}); the pool is asked again"
    return "one is asked for when work has waited for a while"


def _grows(view: GrowthView, nodes: NodeRange, *, enough: bool) -> bool:
    held = len(view.idle) + view.leaving
    if held >= nodes.max_nodes or view.failures >= MAX_FAILURES:
        return False
    if view.failures and view.failed_seconds < _RETRY_SECONDS * 2 ** (view.failures - 1):
        return False
    lasts = view.backlog_seconds >= _BACKLOG_SECONDS or not view.idle
    return not enough or (view.backlog > 0 and lasts)
