"""Our times of commands against hyperfine's, interleaved A B B A: alike within noise or 0.3 ms.

`python benchmarks/command.py [--json] [--rounds N]`; needs gcc and hyperfine (in PATH, or named by
HYPERFINE): apt install hyperfine. Both start the command without a shell, some runs in a turn.
`overhead` is what a run costs except the command's own time: the program's whole time without that
of its runs, over their number. `whole` is one `flowos measure -- COMMAND` and one `hyperfine -N
COMMAND`: seconds, and counted runs. Of `true` ours is less: hyperfine opens /dev/null three times
within its time, and what else differs between two programs that start one is there, too. The
command of ours that takes less than 5 ms alternates with `true`, so its overhead holds such a run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from _numbers import whole_number

from flowos.model import Case, Exited, Outcome, Sample, Unmeasured
from flowos.plan import compare
from flowos.probes import command
from flowos.probes.command import TimedCommand

MARGIN = 0.03
SECONDS = 0.3
OF_A_START = 0.0003
"""Seconds by which two programs may differ that start the same one."""
PYTHON = "n = 0\nfor i in range(600_000): n += i * i"
COMMANDS: dict[str, tuple[str, ...]] = {
    "sleep": ("sleep", "0.05"),
    "true": ("true",),
    "python loop": (sys.executable, "-c", PYTHON),
}
SOURCE = Path(command.__file__).parent / "programs/command.c"
HYPERFINE = os.environ.get("HYPERFINE") or shutil.which("hyperfine") or ""


@dataclass(frozen=True)
class Turn:
    """Seconds of each run, and what a run cost except that."""

    times: tuple[float, ...]
    overhead: float


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=16)
    rounds = parser.parse_args().rounds
    if not HYPERFINE or shutil.which("gcc") is None:
        sys.exit("command: hyperfine and gcc are needed: apt install hyperfine gcc")
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "command"
        subprocess.run(("gcc", "-O2", str(SOURCE), "-o", str(binary)), check=True)
        rows = [compared(name, binary, Path(folder), rounds) for name in COMMANDS]
    claim = "times of commands agree with hyperfine's within noise or 0.3 ms"
    holds = all(row["agrees"] for row in rows)
    print(json.dumps({"claim": claim, "holds": holds, "compared": rows}, indent=1))
    return 0 if holds else 1


def compared(name: str, binary: Path, folder: Path, rounds: int) -> dict[str, Any]:
    argv = COMMANDS[name]
    count = len(ours(binary, argv).times)  # the first run of each is warm-up
    turns: dict[str, list[Turn]] = {"ours": [], "hyperfine": []}
    samples: list[Sample] = []
    for number in range(rounds):
        for program in ("ours", "hyperfine", "hyperfine", "ours"):
            of_ours = program == "ours"
            turn = ours(binary, argv) if of_ours else theirs(argv, folder / "out.json", count)
            turns[program].append(turn)
            samples.append(sample(name, program, number, turn))
    (v,) = compare(samples, axis="program", base="hyperfine", margin=MARGIN, looks=1)
    medians = {
        program: median(t for turn in of for t in turn.times) for program, of in turns.items()
    }
    near = abs(medians["ours"] - medians["hyperfine"]) <= OF_A_START
    found = {
        program: {
            "milliseconds": round(1e3 * medians[program], 4),
            "runs": sum(len(turn.times) for turn in of),
            "overhead_milliseconds": round(1e3 * median(turn.overhead for turn in of), 4),
        }
        for program, of in turns.items()
    }
    return {
        "command": name,
        **found,
        "ours_over_theirs": round(1 / v.ratio, 4),
        "low": round(1 / v.high, 4),
        "high": round(1 / v.low, 4),
        "answer": v.answer,
        "agrees": near or v.answer == "equal" or v.low <= 1 <= v.high,
        "whole": whole(argv, folder),
    }


def sample(name: str, program: str, number: int, turn: Turn) -> Sample:
    case = Case("command", (("command", name), ("program", program)))
    return Sample(run="b", case=case, round=number, metric="wall", unit="second", values=turn.times)


def ours(binary: Path, argv: tuple[str, ...]) -> Turn:
    began = monotonic()
    words = (str(binary), "--seconds", str(SECONDS), "--", *argv)
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    took = monotonic() - began
    answer = TimedCommand().read(Case("command"), Outcome(end=Exited(0), stdout=done.stdout))
    if isinstance(answer, Unmeasured):
        sys.exit(f"command: {answer.reason}")
    times = next(reading.values for reading in answer if reading.metric == "wall")
    return Turn(times, (took - sum(times)) / len(times))


def theirs(argv: tuple[str, ...], out: Path, runs: int = 0) -> Turn:
    """runs: 0 for as many as it takes by itself."""
    began = monotonic()
    line = " ".join(word if word.isalnum() else quoted(word) for word in argv)
    many = ("-r", str(max(2, runs))) if runs else ()
    words = (HYPERFINE, "-N", *many, "--style", "none", "--export-json", str(out), line)
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    took = monotonic() - began
    times = tuple(json.loads(out.read_text())["results"][0]["times"])
    return Turn(times, (took - sum(times)) / len(times))


def quoted(word: str) -> str:
    return "'" + word + "'"


def whole(argv: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """A person's own call of each."""
    began = monotonic()
    store = ("--store", str(folder / "runs.db"), "--out", str(folder / "report"))
    words = (sys.executable, "-m", "flowos", "measure", *store, "--json", "--", *argv)
    done = subprocess.run(words, capture_output=True, check=True)
    took = monotonic() - began
    samples = json.loads(done.stdout)["report"]["samples"]
    runs = sum(len(s["values"]) for s in samples if s["metric"] == "wall")
    began = monotonic()
    turn = theirs(argv, folder / "out.json")
    return {
        "ours": {"seconds": round(took, 2), "runs": runs},
        "hyperfine": {"seconds": round(monotonic() - began, 2), "runs": len(turn.times)},
    }


if __name__ == "__main__":
    sys.exit(main())
