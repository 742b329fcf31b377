"""What `flowos compare --json` writes is numbers, or null."""

import json
import math

from flowos.cli.compare import plain
from flowos.model import Verdict

OPEN = Verdict(
    probe="stream",
    axis="stores",
    base="nt",
    other="plain",
    rest=(),
    metric="triad",
    ratio=math.nan,
    low=0.0,
    high=math.inf,
    margin=0.03,
    rounds=0,
    answer="cannot tell",
)


def test_what_is_not_known_of_a_comparison_is_null() -> None:
    told = json.loads(json.dumps(plain(OPEN), allow_nan=False))
    assert (told["ratio"], told["low"], told["high"]) == (None, 0.0, None)
