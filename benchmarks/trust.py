"""Checks that planted disturbances mark a measurement as disturbed, and quiet runs do not.

`python benchmarks/trust.py [--json] [--trials N] [--units N]`; needs gcc.
Each trial measures a short case as `flowos measure` does (spinning before and after each sample,
counters around it, a disturbed sample repeated up to three times): alone, with a busy loop, with a
memory-bandwidth hog, and under a cpu quota of half a cpu (cgroup v1 or v2, if cgroups are
writable); and random reads of a file in --scratch: alone, and with a reader of the same disk.
Trials of all kinds are interleaved. Rates are printed with their 95 % Wilson interval, and the
share of marked samples. Exit 1 when a rate misses its claim. Quiet runs need a quiet machine: work
of other processes is marked too, correctly.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from _numbers import whole_number

from flowos import engine
from flowos.engine.local._cgroups import cpu_cgroups
from flowos.model import Case, Design, Exited, Launch, Outcome, Sample, Unmeasured
from flowos.operations._facts import facts
from flowos.plan import assess_trust, next_round, summarize, wilson
from flowos.probes import state

MIN_MARKED, MAX_MARKED = 0.95, 0.05
READ_UNITS, FILE_BYTES = "60", 256 << 20
STORAGE = "storage, "
SETTLE_SECONDS = 0.1
QUOTA_US, PERIOD_US = 50_000, 100_000
CASE = Case("work")
DESIGN = Design(cases=(CASE,), seconds={CASE: 1.0}, min_rounds=1)
SOURCE = Path(__file__).with_name("_disturb.c")
SPINNER = Path(state.__file__).parent / "programs" / "state.c"

Plant = Callable[[], AbstractContextManager[object]]


@dataclass
class Tally:
    """For one kind: the number of marked trials, and their marks."""

    trials: int = 0
    marked: int = 0
    samples: int = 0
    samples_marked: int = 0
    by: Counter[str] = field(default_factory=Counter)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--trials", type=whole_number(), default=60, help="of each kind")
    parser.add_argument(
        "--units", type=whole_number(), default=400, help="length of the case: 1 s is 400"
    )
    parser.add_argument("--scratch", help="a folder on the storage to read from")
    asked = parser.parse_args()
    trials = asked.trials
    with tempfile.TemporaryDirectory(dir=asked.scratch) as folder, quota_cgroup() as cgroup:
        watch = Watch(Path(folder), asked.units)
        plants: dict[str, Plant] = {
            "quiet": nullcontext,
            "spinner": lambda: disturber(watch.binary, "spin"),
            "bandwidth hog": lambda: disturber(watch.binary, "hog"),
            STORAGE + "quiet": nullcontext,
            STORAGE + "reader": lambda: disturber(watch.binary, "scan", str(watch.file)),
        }
        if isinstance(cgroup, Quota):
            plants["cpu quota"] = cgroup.held
        tallies = {kind: Tally() for kind in plants}
        for _ in range(trials):
            for kind, plant in plants.items():
                with plant():
                    count_marked(tallies[kind], watch.measured(on_storage=kind.startswith(STORAGE)))
    rates = [rates_of(kind, tally) for kind, tally in tallies.items()]
    missed = [r["kind"] for r in rates if not r["holds"]]
    answer: dict[str, Any] = {"claim": "disturbed runs are marked, quiet ones are not"}
    if isinstance(cgroup, str):
        answer["cannot run here"] = {"cpu quota": cgroup}
    print(json.dumps({**answer, "missed": missed, "rates": rates}, indent=1))
    return 1 if missed else 0


def count_marked(tally: Tally, seen: Sequence[Sample]) -> None:
    (number,) = summarize(seen)
    tally.trials += 1
    tally.marked += not number.trust.good
    tally.samples += len(seen)
    tally.samples_marked += sum(not assess_trust([sample.state]).good for sample in seen)
    tally.by.update(" ".join(mark.split()[:3]) for mark in number.trust.marks)


def rates_of(kind: str, tally: Tally) -> dict[str, Any]:
    share, quiet = tally.marked / tally.trials, kind.endswith("quiet")
    low, high = wilson(tally.marked, tally.trials)
    return {
        "kind": kind,
        "marked": tally.marked,
        "trials": tally.trials,
        "rate": share,
        "low": low,
        "high": high,
        "claim": f"at most {MAX_MARKED:g}" if quiet else f"at least {MIN_MARKED:g}",
        "holds": share <= MAX_MARKED if quiet else share >= MIN_MARKED,
        "samples": tally.samples,
        "samples_marked": tally.samples_marked,
        "by": dict(tally.by.most_common()),
    }


class Watch:
    """A short case, with the machine's state around it."""

    def __init__(self, folder: Path, units: int) -> None:
        program = state.program(facts())
        if isinstance(program, Unmeasured):
            sys.exit(f"trust: {program.reason}: {program.remedy}")
        self.binary = compiled(SOURCE, folder / "disturb")
        self.spinner = (compiled(SPINNER, folder / "state"), *program.argv)
        self.units = str(units)
        self.file = written(folder / "data", FILE_BYTES)

    def measured(self, *, on_storage: bool) -> list[Sample]:
        """The samples of one number: as many as `flowos measure` takes."""
        seen: list[Sample] = []
        while next_round(DESIGN, seen, math.inf):
            seen.append(self.sample(len(seen), on_storage=on_storage))
        return seen

    def sample(self, number: int, *, on_storage: bool) -> Sample:
        words = ("reads", READ_UNITS, str(self.file)) if on_storage else ("work", self.units)
        storage = self.file.parent if on_storage else None
        before, look = self.spin(), engine.here().look(storage)
        outcome = ran(self.binary, *words)
        watched = engine.state_between(look, engine.here().look(storage), outcome.usage)
        around = state.around(watched, before, self.spin())
        return Sample(
            run="trust",
            case=CASE,
            round=number,
            metric="time",
            unit="s",
            values=tuple(map(float, outcome.stdout.split())),
            state=around if on_storage else replace(around, io_pressure=None),
        )

    def spin(self) -> state.Spin:
        look = engine.here().look()
        answer = state.read(ran(*self.spinner))
        if isinstance(answer, Unmeasured):
            sys.exit(f"trust: {answer.reason}")
        return replace(answer, io_pressure=engine.io_pressure_between(look, engine.here().look()))


def compiled(source: Path, binary: Path) -> str:
    subprocess.run(["gcc", "-O2", "-pthread", str(source), "-o", str(binary)], check=True)
    return str(binary)


def written(file: Path, size: int) -> Path:
    """A file of this size, written to disk."""
    with file.open("wb") as data:
        for _ in range(size >> 20):
            data.write(os.urandom(1 << 20))
        data.flush()
        os.fsync(data.fileno())
    return file


def ran(*argv: str) -> Outcome:
    outcome = engine.here().run(Launch(argv=argv, limit_seconds=60.0))
    if outcome.end != Exited(0):
        sys.exit(f"trust: {argv[0]} ended by {outcome.end}: {outcome.stderr.decode()}")
    return outcome


@contextmanager
def disturber(binary: str, kind: str, *words: str) -> Iterator[None]:
    with subprocess.Popen([binary, kind, *words]) as process:
        try:
            time.sleep(SETTLE_SECONDS)
            yield
        finally:
            process.kill()


@dataclass(frozen=True)
class Quota:
    """A cgroup of ours with a cpu quota, and the file of our original cgroup."""

    folder: Path
    home: Path

    @contextmanager
    def held(self) -> Iterator[None]:
        """Put this process, and its children, under the quota."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            self.home.write_text(str(os.getpid()))


@contextmanager
def quota_cgroup() -> Iterator[Quota | str]:
    """A cgroup with a quota, removed at the end; or the reason why there is none."""
    reasons: list[str] = []
    cgroups = cpu_cgroups(Path("/"))
    for parent in cgroups:
        folder = parent / f"flowos-trust-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            limit(folder)
        except OSError as error:
            reasons.append(str(error))
            folder.rmdir()
            continue
        home = next(c for c in cgroups if c.is_relative_to(parent))
        try:
            yield Quota(folder, home / "cgroup.procs")
        finally:
            folder.rmdir()
        return
    yield f"no cgroup with a cpu quota can be made: {'; '.join(reasons) or 'no cgroup is mounted'}"


def limit(folder: Path) -> None:
    """Set half a cpu, by cgroup v1 or v2. Raises OSError if this cgroup cannot have a quota."""
    if (folder / "cpu.cfs_quota_us").exists():
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        return
    if not (folder / "cpu.max").exists():
        (folder.parent / "cgroup.subtree_control").write_text("+cpu")
    (folder / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")


if __name__ == "__main__":
    sys.exit(main())
