"""Tasks of all kinds of exceptions, in a file that a worker imports without pytest.

asyncio, which takes most of a worker's start, is imported where one of its exceptions is raised.
"""

import dataclasses
from collections.abc import Callable

import flowos as fo


def cancelled() -> BaseException:
    import asyncio

    return asyncio.CancelledError()


class Own(BaseException):
    pass


class WithoutText(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise ValueError("no text")


class TextOfNoText(Exception):  # noqa: N818
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class TextCancelled(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise cancelled()


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):  # noqa: N818
    number: int = 3


RAISED: dict[str, Callable[[], BaseException]] = {
    "CancelledError": cancelled,
    "GeneratorExit": GeneratorExit,
    "SystemExit": SystemExit,
    "Own": Own,
    "WithoutText": WithoutText,
    "TextOfNoText": TextOfNoText,
    "TextCancelled": TextCancelled,
    "Frozen": Frozen,
}


class array:  # noqa: N801 - the name is the point: reprlib goes by it
    pass


@fo.task
def raises(x: fo.int64, name: fo.str_) -> fo.int64:
    if x:
        raise RAISED[name]()
    return x
