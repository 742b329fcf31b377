"""What distinguishes processors for which a compiler makes different code."""

import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def processor_lines() -> str:
    """What -march=native depends on: the lines of the first processor."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        first = file.read(16384).partition("\n\n")[0]
        lines = (line for line in first.splitlines() if re.match(r"(?i)model|flags|features", line))
        return "\n".join(lines)
    return " ".join(os.uname())


def architecture_and_lines() -> str:
    """The same with the architecture in a line before it."""
    return f"{os.uname().machine}\n{processor_lines()}"
