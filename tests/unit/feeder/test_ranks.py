"""Which part of the data is a process's."""

import pytest

from flowos.feeder._ranks import Ranks, ranks_of
from flowos.model import FeedError

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}
PMI = {"PMI_RANK": "1", "PMI_SIZE": "2"}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "0"}


def test_a_process_alone_takes_all() -> None:
    assert ranks_of(None, None, None, {"HOME": "/root"}) == Ranks(0, 1)


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        (TORCHRUN, Ranks(5, 8)),
        (OPEN_MPI, Ranks(2, 4)),
        (PMI, Ranks(1, 2)),
        (SLURM, Ranks(3, 4)),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "16", "SLURM_PROCID": "15"}, Ranks(15, 16)),
    ],
)
def test_what_started_it_says_which_part(variables: dict[str, str], found: Ranks) -> None:
    assert ranks_of(None, None, None, variables) == found


def test_a_batch_script_is_not_one_of_the_tasks_it_will_start() -> None:
    in_script = {"SLURM_PROCID": "0", "SLURM_NTASKS": "64"}
    assert ranks_of(None, None, None, in_script) == Ranks(0, 1)


def test_what_is_given_wins_over_torch_and_torch_over_variables() -> None:
    joined = Ranks(1, 3)
    assert ranks_of(0, 2, joined, TORCHRUN) == Ranks(0, 2)
    assert ranks_of(None, None, joined, TORCHRUN) == joined


def test_torchrun_started_by_srun_once_per_node_is_no_contradiction() -> None:
    per_node = {**SLURM, "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}
    assert ranks_of(None, None, None, {**TORCHRUN, **per_node}) == Ranks(5, 8)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({**OPEN_MPI, "PMI_RANK": "1", "PMI_SIZE": "4"}, "rank 2 of 4 by Open MPI, but rank 1 of"),
        ({"RANK": "0", "WORLD_SIZE": "1", **OPEN_MPI}, "rank 0 of 1 by torchrun, but rank 2 of 4"),
        ({"RANK": "1"}, "RANK is set, but not WORLD_SIZE"),
        ({"PMI_SIZE": "2"}, "PMI_SIZE is set, but not PMI_RANK"),
        ({"SLURM_PROCID": "1", "SLURM_STEP_ID": "0"}, "but not SLURM_STEP_NUM_TASKS"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK=one and WORLD_SIZE=2 are no whole numbers"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "a rank is one of 0 to size - 1"),
    ],
)
def test_a_contradiction_is_one_line_that_names_the_variables(
    variables: dict[str, str], said: str
) -> None:
    with pytest.raises(FeedError, match=said) as refused:
        ranks_of(None, None, None, variables)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("rank", "world_size", "said"),
    [
        (1, None, "rank is given without world_size"),
        (None, 2, "world_size is given without rank"),
        (2, 2, "rank=2 .*expected 0 to 1"),
        (-1, 2, "rank=-1"),
        (0, 0, "world_size=0"),
        (0, "4", "world_size='4'"),
    ],
)
def test_half_of_it_or_a_wrong_number_is_refused(
    rank: int | None, world_size: int | None, said: str
) -> None:
    with pytest.raises(FeedError, match=said):
        ranks_of(rank, world_size, None, {})
