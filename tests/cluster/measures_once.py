"""`flowos` that measures each case in one round, few of storage, with small files and arrays.

It ends when all was measured, on a busy machine later: a limit of time would be used up by more
rounds, or be over before all had its turn. Its figures say nothing. Messages are those of Open MPI:
MPICH's ranks may never end between nodes (docs/slurm.md), and keep their cores busy until they are
stopped.
"""

import sys
from dataclasses import replace
from functools import partial
from typing import Any

from flowos.cli import main
from flowos.model import Design, Facts, MeasurementRequest
from flowos.operations.measure import _rounds as blocks
from flowos.plan import _rounds
from flowos.probes import _fio_job, fio, stream
from flowos.probes.mpi import MpiPairs

cases_of_all = MpiPairs.cases


def cases_of_one(probe: MpiPairs, facts: Facts, request: MeasurementRequest) -> Any:
    mpis = tuple(mpi for mpi in facts.mpis if mpi.family == "openmpi")
    return cases_of_all(probe, replace(facts, mpis=mpis), request)


MpiPairs.cases = cases_of_one  # type: ignore[assignment,method-assign]
vars(_rounds)["MAX_REPEATS"] = 0
vars(blocks)["Design"] = partial(Design, looks=(1,))
vars(stream)["elements_for"] = lambda _: 1 << 21
stream.COMPARED_REPEATS = dict.fromkeys(stream.COMPARED_REPEATS, "3")
vars(fio)["LEVELS"] = fio.LEVELS[:2]
vars(_fio_job)["MIN_BYTES"] = 32 << 20
_fio_job.SETTINGS["quick"] = _fio_job.SETTINGS["quick"]._replace(file_bytes=32 << 20)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
