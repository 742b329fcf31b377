"""Slurm's answers in shapes that others have reported; see tests/golden/slurm/README.md."""

from pathlib import Path

import pytest

from flowos.drivers.allocators.slurm import (
    partition_of,
    read_partitions,
    refusal,
)
from flowos.drivers.launchers.srun import read_types
from flowos.model import Ask, Pool

REPORTED = Path(__file__).parents[2] / "golden/slurm/reported"


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("named", {"cray_shasta", "none", "pmi2"}),
        ("versions", {"cray_shasta", "none", "pmi2", "pmix"}),
        ("complaints", {"cray_shasta", "none", "pmi2", "pmix"}),
    ],
)
def test_kinds_of_mpi_are_read_whatever_is_printed_with_them(name: str, types: set[str]) -> None:
    text = (REPORTED / f"mpi_list_{name}.txt").read_text()
    assert set(read_types(text)) == types


def test_what_a_partition_allows_and_denies_is_read() -> None:
    found = read_partitions((REPORTED / "partitions.txt").read_text())
    serial, standard, short = found
    assert (serial.accounts, serial.qos, serial.max_nodes) == ((), (), 1)
    assert (standard.accounts, standard.qos, standard.is_default) == ((), ("normal", "high"), True)
    assert (short.qos, short.nodes, short.is_up) == (("gpu1",), 0, True)
    assert refusal(Pool(name="c", kind="slurm"), Ask(nodes=160), standard).endswith(
        "partition 'standard' gives 159"
    )
    pool = Pool(name="c", kind="slurm", partition="standard", qos="hihg")
    assert str(partition_of(pool, found)).endswith("not for qos 'hihg'; did you mean 'high'?")
