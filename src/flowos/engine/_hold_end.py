"""When the nodes of a slice are given back, whatever runs there."""

import math
import time

from flowos._dataclasses import dataclass


@dataclass(slots=True, eq=False)
class HoldEnd:
    """until: in seconds since 1970; None where they are held until they are freed."""

    until: float | None = None

    def left_seconds(self) -> float:
        """Infinite without an end."""
        return math.inf if self.until is None else self.until - time.time()


NO_END = HoldEnd()
"""Of this machine, which stays."""
