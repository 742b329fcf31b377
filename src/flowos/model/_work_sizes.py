"""How many work items the kernel of a body runs as, and in groups of how many."""

import re
from collections.abc import Collection, Mapping, Sequence

from flowos._dataclasses import dataclass
from flowos.model._errors import WiringError
from flowos.model._ports import brief_repr

_EXTENT = re.compile(r"\s*([A-Za-z_]\w*)\s*((?:[*/]\s*[1-9]\d*\s*)*)")
_FACTOR = re.compile(r"([*/])\s*(\d+)")
_AXES = 3


@dataclass(frozen=True, slots=True)
class WorkSize:
    """An extent and what is done with it, as (("/", 64), ("*", 64)): quotients are rounded up.

    Without a name an extent is 1.
    """

    extent: str
    factors: tuple[tuple[str, int], ...] = ()

    def of(self, sizes: Mapping[str, int]) -> int:
        size = sizes[self.extent] if self.extent else 1
        for what, number in self.factors:
            size = size * number if what == "*" else -(-size // number)
        return size

    def __str__(self) -> str:
        words = "".join(f"{what}{number}" for what, number in self.factors)
        return f"{self.extent}{words}" if self.extent else words[1:]


def work_sizes(
    where: str, keyword: str, given: object, names: Collection[str]
) -> tuple[WorkSize, ...]:
    """Of each axis. given: an integer above 0, or one of the names, multiplied and divided by
    integers as in "n/64*64", or up to three of them. names: of extents and integer inputs.

    Raises WiringError for another thing.
    """
    axes = given if isinstance(given, (tuple, list)) else (given,)
    sizes = [size for axis in axes if (size := _work_size(axis)) is not None]
    if len(sizes) != len(axes) or not 0 < len(axes) <= _AXES:
        raise WiringError(
            f"{where}: {keyword}={brief_repr(given)}; expected one to three integers above 0 or "
            "extents, as in ('n', 2), 'n*4', or 'n/4', which is rounded up"
        )
    for size in sizes:
        if size.extent and size.extent not in names:
            has = f"there is {', '.join(names)}" if names else "there is none"
            raise WiringError(
                f"{where}: {keyword}: no extent and no integer input is {size.extent!r}; {has}"
            )
    return tuple(sizes)


def _work_size(given: object) -> WorkSize | None:
    if type(given) is int and given > 0:
        return WorkSize("", (("*", given),))
    found = _EXTENT.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return None
    return WorkSize(found[1], tuple((f[1], int(f[2])) for f in _FACTOR.finditer(found[2])))


def group_sizes(where: str, keyword: str, given: object, axes: int) -> tuple[int, ...]:
    """Work items of a group on each axis. given: as many integers above 0 as there are axes.

    Raises WiringError for another thing.
    """
    numbers = given if isinstance(given, (tuple, list)) else (given,)
    if len(numbers) != axes or not all(type(each) is int and each > 0 for each in numbers):
        raise WiringError(
            f"{where}: {keyword}={brief_repr(given)}; expected "
            f"{'an integer' if axes == 1 else f'{axes} integers'} above 0"
        )
    return tuple(numbers)


def group_incompatibility(
    group: Sequence[int], sizes: Sequence[int], of: Sequence[WorkSize]
) -> str:
    """Why groups do not divide the sizes; "" if they do."""
    for number, size, named in zip(group, sizes, of, strict=True):
        if size % number and named.extent:
            return (
                f"groups of {number} do not divide {named} = {size}; '{named}/{number}*{number}' "
                "is a size that they do, with work items past the end that have to return"
            )
        if size % number:
            return f"groups of {number} do not divide {size}"
    return ""
