"""A comparison of real processes: a wrapper that slows some of them does not pass as bare."""

import math
import random
import subprocess
from pathlib import Path

import pytest

from flowos.engine import here
from flowos.model import Case, Design, Exited, Launch, Sample, Verdict
from flowos.plan import compare, next_round

BARE, WRAPPED = (Case("work", (("with", level),)) for level in ("bare", "wrapped"))

WORK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
/* Multiplies as often as it is told, and says what processor time that took: what others do on
   this machine meanwhile hardly counts. */
int main(int argc, char **argv) {
  unsigned long x = argc, n = strtoul(argv[1], NULL, 10);
  struct timespec from, to;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
  for (unsigned long i = 0; i < n; i++) x = x * 6364136223846793005UL + 1442695040888963407UL;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
  printf("%.9f\n", to.tv_sec - from.tv_sec + 1e-9 * (to.tv_nsec - from.tv_nsec));
  return x == 0;
}
"""
UNITS = 20_000_000


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    (folder / "work.c").write_text(WORK)
    subprocess.run(["gcc", "-O1", "work.c", "-o", "work"], cwd=folder, check=True)
    return folder / "work"


@pytest.fixture
def wrapper(work: Path) -> Path:
    """Runs what it is given; in a share of its runs, drawn anew each time, at half speed."""
    made = work.with_name("wrapper")
    made.write_text(
        "#!/bin/sh\n"
        "share=$1 seed=$2; shift 2\n"
        'if [ $((seed % 100)) -lt "$share" ]; then exec "$1" $(($2 * 2)); fi\n'
        'exec "$@"\n'
    )
    made.chmod(0o755)
    return made


def compared(work: Path, wrapper: Path, share: int, seed: int) -> Verdict:
    """A whole comparison of the work bare and wrapped, until its design ends."""
    design = Design(cases=(BARE, WRAPPED), axis="with", base="bare", seed=f"{seed}")
    drawn, seen = random.Random(seed), list[Sample]()
    number = 0
    while cases := next_round(design, seen, math.inf):
        for case in cases:
            words: tuple[str, ...] = (str(work), str(UNITS))
            if case == WRAPPED:
                words = (str(wrapper), str(share), str(drawn.randrange(100)), *words)
            outcome = here().run(Launch(argv=words, limit_seconds=60.0))
            assert outcome.end == Exited(0), outcome.stderr
            seconds = float(outcome.stdout)
            seen.append(
                Sample(
                    run="r",
                    case=case,
                    round=number,
                    metric="time",
                    unit="second",
                    values=(seconds,),
                )
            )
        number += 1
    (verdict,) = compare(seen, axis="with", base="bare", margin=0.03)
    return verdict


def test_a_wrapper_that_runs_some_processes_at_half_speed_does_not_pass_as_bare(
    work: Path, wrapper: Path
) -> None:
    """15 % of the processes: in 64 of them none would be slow once in 30,000 comparisons."""
    found = compared(work, wrapper, share=15, seed=1)
    assert found.answer in ("slower", "inconclusive")
    assert found.mean is not None
    assert found.mean < 0.97


def test_a_wrapper_that_runs_all_processes_at_half_speed_is_slower_by_half(
    work: Path, wrapper: Path
) -> None:
    found = compared(work, wrapper, share=100, seed=1)
    assert found.answer == "slower"
    assert 0.4 < found.ratio < 0.6
