"""What commands do for each kind of pool."""

from typing import get_args

import pytest

from flowos.model import Pool, PoolKind
from flowos.operations._pool_kinds import kind_of_pool


@pytest.mark.parametrize("kind", get_args(PoolKind))
def test_every_kind_of_pool_says_what_commands_do_with_it(kind: PoolKind) -> None:
    assert kind_of_pool(kind).here == (kind in ("local", "fake"))


@pytest.mark.parametrize(
    ("pool", "program"),
    [
        (Pool(name="p", kind="fake"), "flowos"),
        (Pool(name="p", kind="slurm", partition="a"), "srun"),
        (Pool(name="p", kind="sge", queue="all.q", pe="mpi"), "qrsh"),
    ],
)
def test_a_person_starts_a_program_with_the_words_of_the_kind(pool: Pool, program: str) -> None:
    words = kind_of_pool(pool.kind).by_hand(pool, ("flowos", "measure"))
    assert words[0] == program
    assert words[-2:] == ("flowos", "measure")
