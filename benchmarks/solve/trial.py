"""One turn of a contestant, in a process of its own, and the check of its answer."""

import json
import os
import re
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from building import on_cores
from problems import Problem
from promises import RESIDUAL_MARGIN, RTOL

PATIENCE_SECONDS = 300.0


class TurnFailed(Exception):  # noqa: N818 - reads as what happened
    """The contestant gave no answer, or a wrong one; the message is the reason."""


def turn(
    words: Sequence[str], options: Sequence[str], problem: Problem, b: Path, cores: int
) -> Any:
    """The contestant's result, with its `residual` as computed here. Raises TurnFailed."""
    x = problem.empty_answer()
    line = [*words, str(problem.matrix_file), str(b), str(x), repr(RTOL), *options]
    others = Others()
    answer = answer_of(line, on_cores(cores))
    answer["others"] = others.share()
    answer["residual"] = checked(problem, b, x)
    answer["total_seconds"] = answer["setup_seconds"] + answer["solve_seconds"]
    return answer


class Others:
    """CPU time of other processes since creation: busy time minus that of our children."""

    def __init__(self) -> None:
        self.began = self._readings()

    def share(self) -> float:
        """The share of all cores, 0 to 1, including steal."""
        all_ticks, busy, ours = (
            now - then for now, then in zip(self._readings(), self.began, strict=True)
        )
        return max(0.0, (busy - ours) / all_ticks) if all_ticks else 0.0

    @staticmethod
    def _readings() -> tuple[float, float, float]:
        line = Path("/proc/stat").read_text().splitlines()[0]
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in line.split()[1:9]]
        idle, waiting = ticks[3], ticks[4]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(ticks), sum(ticks) - idle - waiting, used.ru_utime + used.ru_stime


def answer_of(line: Sequence[str], variables: Mapping[str, str]) -> Any:
    """The JSON in its output. Raises TurnFailed, with the end of its output, if it failed."""
    with subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        start_new_session=True,
    ) as process:
        try:
            printed, words = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise TurnFailed(f"no answer in {PATIENCE_SECONDS:g} s") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    begins = re.search(r"^\{", printed, re.MULTILINE)
    if process.returncode != 0 or begins is None:
        last = words.strip().splitlines() or [f"it ended with {process.returncode}"]
        raise TurnFailed(last[-1][:300])
    return json.JSONDecoder().raw_decode(printed, begins.start())[0]


def checked(problem: Problem, b: Path, x: Path) -> float:
    """The residual of its answer. Raises TurnFailed if it is larger than requested."""
    residual = problem.residual(np.fromfile(b), np.fromfile(x))
    if not residual <= RTOL * RESIDUAL_MARGIN:
        raise TurnFailed(f"its residual is {residual:.2e}, and {RTOL:g} was asked for")
    return residual
