"""Bodies of tests/integration/engines/test_either.py: workers load nothing else."""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from flowos.model import EngineMissing

# Of this process of pytest and its workers alone: others run the same tests at the same time.
gone = Path(
    os.environ.setdefault(
        "FLOWOS_TEST_GONE", str(Path(tempfile.gettempdir(), f"flowos-either-{os.getpid()}"))
    )
)


def twice(x: Any) -> Any:
    return 2 * x


def slowly_twice(x: Any) -> Any:
    time.sleep(0.02)  # so that it loses on a busy machine too
    return 2 * x


def add_one(x: Any) -> Any:
    return x + 1


def missing(_: Any) -> Any:
    raise EngineMissing("no such card")


def refuse(_: Any) -> Any:
    raise ArithmeticError("no")


def there_once(x: Any) -> Any:
    if gone.exists():
        raise EngineMissing("the card is gone")
    return 2 * x


def fails_as_it_should(x: Any) -> Any:
    if x[0] == 13:
        raise ArithmeticError(13)
    return 3 if x[0] == 14 else there_once(x)


def same(n: int) -> int:
    return n
