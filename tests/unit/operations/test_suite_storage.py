"""Which storage the page of a suite says that a figure is of."""

from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import FigurePart, MeasurementRequest, PaperFigure, Pool, StorageTier
from flowos.operations._suite_storage import with_storage

POOL = Pool(
    name="gpu",
    kind="slurm",
    nodes=4,
    shared="/lustre/me",
    scratch="/nvme",
    shared_tier=StorageTier(read_bytes_per_second=2e9),
    scratch_tier=StorageTier(capacity_bytes=3_200_000_000_000, read_bytes_per_second=3e9),
)
SHARED = MeasurementRequest(scratch=PurePath("/lustre/me"))
FROM_SHARED = "/lustre/me, the shared folder of pool gpu (promised: read 2.00 GB/s)"


def said(probe: str, request: MeasurementRequest, pool: Pool | None) -> str:
    figure = PaperFigure(number="7", title="t", caption="c", parts=(FigurePart(probe=probe),))
    return with_storage(figure, request, pool).instead


@pytest.mark.parametrize(
    ("pool", "folder", "words"),
    [
        (None, "/disk", "The storage is /disk; each node's own is /var/tmp"),
        (
            POOL,
            "/lustre/me",
            f"The storage is {FROM_SHARED}; each node's own is /nvme, as the pool names it"
            " (promised: 3.20 TB, read 3.00 GB/s)",
        ),
        (
            replace(POOL, shared="", shared_tier=None, scratch="", scratch_tier=None),
            "/disk",
            "The storage is /disk; each node's own is /var/tmp",
        ),
    ],
)
def test_trainings_read_shared_storage_and_copy_to_each_node_s_own(
    pool: Pool | None, folder: str, words: str
) -> None:
    assert said("training", replace(SHARED, scratch=PurePath(folder)), pool) == words


def test_another_folder_of_the_person_s_choice_is_said_alone() -> None:
    other = replace(SHARED, scratch=PurePath("/beegfs/me"))
    assert said("feed", other, POOL) == "The storage is /beegfs/me"
    assert said("feed", SHARED, POOL) == f"The storage is {FROM_SHARED}"


def test_images_do_not_see_what_the_pool_names_of_its_nodes() -> None:
    between = replace(SHARED, environments=("bare", "mine"))
    assert said("training", between, POOL).endswith("; each node's own is /var/tmp")


def test_what_measures_no_storage_stays_and_what_it_ran_instead_comes_first() -> None:
    assert said("stream", SHARED, POOL) == ""
    assert said("no such probe", SHARED, POOL) == ""
    figure = PaperFigure(
        number="9", title="t", caption="c", parts=(FigurePart(probe="fio"),), instead="a disk"
    )
    assert with_storage(figure, SHARED, None).instead == "a disk. The storage is /lustre/me"
    assert with_storage(replace(figure, parts=()), SHARED, None).instead == "a disk"
