"""HPL's input file, and its answer as readings."""

import re
from collections.abc import Sequence

from flowos.model import Exited, MeasureError, Outcome, Reading, Unmeasured

THRESHOLD = 16.0
BLOCK = 192

_LINE = re.compile(
    r"^W[RC]\w+ +(?P<n>\d+) +(?P<nb>\d+) +\d+ +\d+ +[\d.]+ +(?P<rate>\d+\.\d+(e[+-]\d+)?)\s*$"
)
_RESIDUAL = re.compile(
    re.escape("||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=")
    + r" *(?P<residual>-?(nan|inf|\d+\.\d+(e[+-]\d+)?)) \.+ (?P<said>PASSED|FAILED)"
)
_REFUSED = re.compile(r"HPL ERROR.*?>>> *(.+?) *<<<", re.DOTALL)


def hpl_input(sizes: Sequence[int], grid: tuple[int, int]) -> str:
    """HPL.dat: these N one after the other on P x Q ranks, settings as HPL's guide advises."""
    lines = (
        "HPLinpack benchmark input file",
        "written by FlowOS",
        "HPL.out",
        "6 device out: stdout",
        f"{len(sizes)} number of N",
        " ".join(map(str, sizes)),
        "1 number of NB",
        str(BLOCK),
        "0 process mapping: by rows",
        "1 number of grids",
        f"{grid[0]} P",
        f"{grid[1]} Q",
        f"{THRESHOLD} threshold",
        "1 number of PFACT",
        "2 right-looking",
        "1 number of NBMIN",
        "4",
        "1 number of NDIV",
        "2",
        "1 number of RFACT",
        "1 Crout",
        "1 number of BCAST",
        "1 one ring, modified",
        "1 number of DEPTH",
        "1 lookahead",
        "2 SWAP: mix",
        "64 swapping threshold",
        "0 L1 transposed",
        "0 U transposed",
        "1 equilibration",
        "8 alignment in doubles",
    )
    return "\n".join(lines) + "\n"


def read_answer_of_hpl(outcome: Outcome, sizes: Sequence[int]) -> tuple[Reading, ...] | Unmeasured:
    """flops and time of each N, whose residual HPL must have let pass.

    Raises MeasureError if it ended well and said nothing of a size.
    """
    text = outcome.stdout.decode(errors="replace")
    if refused := _REFUSED.search(text + outcome.stderr.decode(errors="replace")):
        return Unmeasured(reason=f"xhpl: {refused[1]}")
    if outcome.end != Exited(0):
        return Unmeasured(reason=f"xhpl ended by {outcome.end}")
    found: list[Reading] = []
    for n in sizes:
        answer = _answer(text, n)
        if isinstance(answer, Unmeasured):
            return answer
        found += answer
    return tuple(found)


def _answer(text: str, n: int) -> tuple[Reading, ...] | Unmeasured:
    lines = iter(text.splitlines())
    ran = next((m for line in lines if (m := _LINE.match(line)) and m["n"] == str(n)), None)
    checked = next((m for line in lines if (m := _RESIDUAL.match(line))), None)
    if ran is None or checked is None:
        raise MeasureError(f"xhpl's answer for N {n} cannot be read: {text[-300:]!r}")
    residual, rate = float(checked["residual"]), float(ran["rate"]) * 1e9
    if checked["said"] != "PASSED" or not residual < THRESHOLD:
        return Unmeasured(
            reason=f"xhpl's solution for N {n} did not pass: its scaled residual is"
            f" {checked['residual']}, where less than {THRESHOLD:g} is asked",
            remedy="check the BLAS that it loads; a wrong answer may come from faulty hardware",
        )
    levels, notes = (("n", str(n)),), (("residual", checked["residual"]), ("nb", ran["nb"]))
    return (
        Reading(metric="flops", unit="flop/s", values=(rate,), levels=levels, notes=notes),
        Reading(
            metric="time",
            unit="second",
            values=(n * n * (2 / 3 * n + 1.5) / rate,),
            levels=levels,
            notes=notes,
        ),
    )
