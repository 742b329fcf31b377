"""Ranks are asked for by two options together."""

import pytest

from flowos.cli import parser
from flowos.cli._ranks import with_ranks
from flowos.model import BARE, MPIS, UsageError
from flowos.operations.exec import ExecRequest, RankOptions

PLAIN = ExecRequest(env=BARE, argv=("true",))


def asked(*words: str) -> ExecRequest:
    return with_ranks(parser("exec").parse_args(["exec", *words, "--", "true"]), PLAIN)


@pytest.mark.parametrize("words", ["--ranks 2", "--ranks 0 --mpi mpich", "--mpi intel"])
def test_one_without_the_other_is_refused_with_every_mpi_that_there_is(words: str) -> None:
    with pytest.raises(UsageError, match="ranks need both") as refused:
        asked(*words.split())
    assert str(refused.value).endswith(" or ".join(MPIS))


@pytest.mark.parametrize("mpi", MPIS)
def test_both_are_ranks_of_that_mpi(mpi: str) -> None:
    ranks = RankOptions(count=2, mpi=mpi, mpirun="", oversubscribe=False)
    assert asked("--ranks", "2", "--mpi", mpi).ranks == ranks
    assert asked().ranks is None
