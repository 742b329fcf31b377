"""Contests of programs that each run alone, in a process of its own, once in every round."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _numbers import positive, whole_number

NOT_HERE = 77
"""Exit code of a contestant that is not installed."""
MAX_SECONDS = 300
"""Time limit of a contestant: Ray can hang."""

Answer = dict[str, Any]


@dataclass
class Contest:
    """program: prints the names of its contestants, or with a name and seconds an Answer as JSON.

    before: words before those of its command.
    """

    program: Path
    before: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def hold(self, only: Sequence[str], rounds: int, seconds: float) -> None:
        """By turns. only: how the names of those begin that take part.

        Raises SystemExit if one of ours fails; the others are still measured if a peer does.
        """
        listed = json.loads(self._run().stdout)
        names = [name for name in listed if any(name.startswith(word) for word in only)]
        for turn in range(rounds):
            for name in names:
                if name not in self.skipped:
                    print(f"turn {turn + 1} of {rounds}: {name}", file=sys.stderr)
                    self._take(name, self._run(name, str(seconds)))

    def _take(self, name: str, done: "subprocess.CompletedProcess[str]") -> None:
        last = (done.stderr.strip() or "no word").splitlines()[-1]
        if done.returncode == 0:
            self.answers.setdefault(name, []).append(json.loads(done.stdout.splitlines()[-1]))
        elif done.returncode == NOT_HERE:
            self.skipped[name] = last
        elif name.startswith("flowos"):
            raise SystemExit(f"{name} failed:\n{done.stderr}")
        else:
            self.skipped[name] = f"it failed: {last}"

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        line = [*self.before, sys.executable, str(self.program), *words]
        environment = {**os.environ, **self.variables}
        try:
            return subprocess.run(
                line,
                capture_output=True,
                text=True,
                check=False,
                timeout=MAX_SECONDS,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(line, 1, "", f"not done in {MAX_SECONDS} s")

    def engines(self) -> dict[str, Any]:
        return {name: _of_engine(turns) for name, turns in self.answers.items()}


def arguments(doc: str | None, peers: str, *, seconds: float) -> argparse.Namespace:
    """Those of a benchmark. peers: what they are called. seconds: for each case, by default."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    parser.add_argument(
        "--rounds", type=whole_number(), default=3, help=f"turns of all {peers} (3)"
    )
    parser.add_argument(
        "--seconds", type=positive, default=seconds, help=f"for each case in a turn ({seconds:g})"
    )
    parser.add_argument("--only", default="", help=f"{peers} whose names begin so, by commas")
    return parser.parse_args()


def machine() -> dict[str, Any]:
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def different(engines: Mapping[str, Any], cases: Sequence[str]) -> Iterable[str]:
    """Of each case whose results are not equal."""
    for case in cases:
        sums = {s for e in engines.values() for s in e["cases"].get(case, {}).get("checksums", [])}
        if len(sums) > 1:
            yield f"{case}: the results differ, checksums {', '.join(sorted(sums))}"


def _of_engine(turns: list[Answer]) -> dict[str, Any]:
    return {
        "start_seconds": statistics.median(t["start_seconds"] for t in turns),
        "pss_bytes": max(t["pss_bytes"] for t in turns),
        "processes": turns[0]["processes"],
        "wrong_values_refused": turns[0]["refused"],
        "cases": {
            case: _of_case([t["cases"][case] for t in turns], turns[0]["cases"][case]["tasks"])
            for case in turns[0]["cases"]
        },
    }


def _of_case(turns: list[Answer], tasks: int) -> dict[str, Any]:
    """Seconds per task: over all repetitions, and the median of each turn as the spread."""
    every = sorted(s / tasks for turn in turns for s in turn["seconds"])
    return {
        "median_seconds": statistics.median(every),
        "p99_seconds": every[min(len(every) - 1, int(0.99 * len(every)))],
        "min_seconds": every[0],
        "median_of_turns": [statistics.median(t["seconds"]) / tasks for t in turns],
        "repetitions": len(every),
        "checksums": sorted({t["checksum"] for t in turns}),
    }
