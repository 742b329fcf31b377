"""Options of the solver."""

from collections.abc import Iterator
from math import isfinite
from operator import index
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, get_args

from flowos._dataclasses import dataclass
from flowos.model import SolveError, brief_repr

if TYPE_CHECKING:
    from flowos._native import SolverSettings

Precision: TypeAlias = Literal["auto", "fp32", "fp64"]
Coarse: TypeAlias = Literal["auto", "none", "aggregates"]
Nullspace: TypeAlias = Literal["constant"]

MAX_OPTIONS = {"block": 4096, "colours": 1024, "threads": 1024}
"""The largest values of options that are whole numbers."""


class SolverKeywords(TypedDict, total=False):
    """The keywords of `Solver`; see `SolverOptions`."""

    lower: bool
    symmetrize: bool
    block: int | None
    colours: int | None
    relax: float | None
    precision: Precision
    coarse: Coarse
    nullspace: Nullspace | None
    threads: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverOptions:
    """Options of the solver; defaults are chosen from the matrix."""

    lower: bool = False
    symmetrize: bool = False
    block: int | None = None
    colours: int | None = None
    relax: float | None = None
    precision: Precision = "auto"
    coarse: Coarse = "auto"
    nullspace: Nullspace | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise SolveError(problem)

    @classmethod
    def of(cls, options: SolverKeywords) -> "SolverOptions":
        """Raises SolveError for an unknown keyword or an invalid value."""
        known = tuple(SolverKeywords.__annotations__)
        for name in options:
            if name not in known:
                raise SolveError(f"{name}: no such keyword; there are {', '.join(known)}")
        return cls(**options)

    @property
    def settings(self) -> "SolverSettings":
        from flowos._native import SolverSettings

        return SolverSettings(
            block_rows=self.block or 0,
            colours=self.colours or 0,
            relax=-1.0 if self.relax is None else self.relax,
            precision=self.precision,
            coarse=self.coarse,
            nullspace=self.nullspace or "none",
            threads=self.threads or 0,
        )


def _problems(c: SolverOptions) -> Iterator[str]:
    words = {"precision": get_args(Precision), "coarse": get_args(Coarse)}
    for name, allowed in words.items():
        if getattr(c, name) not in allowed:
            yield f"{name}={brief_repr(getattr(c, name))}; expected one of {', '.join(allowed)}"
    if c.nullspace not in (None, *get_args(Nullspace)):
        yield f"nullspace={brief_repr(c.nullspace)}; expected None or constant"
    for name in ("lower", "symmetrize"):
        if type(getattr(c, name)) is not bool:
            yield f"{name}={brief_repr(getattr(c, name))}; expected True or False"
    for name, max_ in MAX_OPTIONS.items():
        if not _is_none_or_whole(getattr(c, name), max_):
            yield f"{name}={brief_repr(getattr(c, name))}; expected a whole number, 1 to {max_}"
    if c.relax is not None and not is_number(c.relax, max_=1.0):
        yield f"relax={brief_repr(c.relax)}; expected 0 to 1"


def _is_none_or_whole(given: object, max_: int) -> bool:
    return given is None or is_whole(given, max_)


def is_whole(given: object, max_: int) -> bool:
    """1 to `max_`, also as numpy has it."""
    if isinstance(given, bool):
        return False
    try:
        return 1 <= index(given) <= max_  # type: ignore[arg-type]  # that is asked here
    except TypeError:
        return False


def is_number(given: object, max_: float) -> bool:
    """0 to `max_`."""
    try:
        number = float(given)  # type: ignore[arg-type]  # that is asked here
    except (OverflowError, TypeError, ValueError):
        return False
    return not isinstance(given, str) and isfinite(number) and 0 <= number <= max_
