"""A task that computes at once where nothing is to be wired."""

from collections.abc import Callable
from typing import Any

from flowos._dataclasses import dataclass
from flowos.model import Constant, Python, Task


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Kernel(Task):
    """A task on arrays. With `dataclasses.replace` it gets needs, retries or a cache of its own.

    library: names the library that computes for these arguments, with its version.

    >>> fo.kernels.sort(np.array([3, 1, 2]))
    array([1, 2, 3])
    >>> fo.kernels.sort.library(np.array([3, 1, 2]))
    'NumPy ..., np.sort...'
    """

    body: Python
    library: Callable[..., str]

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Wire it as any task, or compute if no argument is a port.

        Raises WiringError for arguments that do not fit its ports, TypeError or ValueError for
        arrays that it cannot take.
        """
        wired = Task.__call__(self, *arguments, **named)
        given = (wired[0] if isinstance(wired, tuple) else wired).call.arguments
        if not all(isinstance(each, Constant) for each in given):
            return wired
        return self.body.fun(*(each.value for each in given))
