"""Which runs of a store a suite goes on from."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.model import (
    Case,
    DeployedNode,
    Deployment,
    Facts,
    MeasurementRequest,
    Run,
    Sample,
    StoreError,
    SuiteStep,
)
from flowos.operations._suite_runs import begun
from flowos.operations.measure import TIME_WAS_OUT
from flowos.store import open_store

FACTS = Facts(
    host="a", system="s", kernel="k", architecture="x86_64", cpu_model="c", cpus=(), allowed=(0, 1)
)
ASKED = MeasurementRequest(effort="quick")
Keep = Callable[..., None]


def run_of(id_: str, probe: str, of: str = "s-1", suite: str = "abci", **changes: object) -> Run:
    step = SuiteStep(of=of, suite=suite, probe=probe)
    run = Run(
        id=id_,
        started="2026-11-27T10:00:00Z",
        ended="2026-11-27T10:01:00Z",
        host="a",
        version="1",
        request=replace(ASKED, probes=("flops", probe), suite=step),
        facts=FACTS,
    )
    return replace(run, **changes)  # type: ignore[arg-type]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


@pytest.fixture
def keep(url: str) -> Keep:
    def kept(run: Run, *probes: str) -> None:
        with open_store(url) as store:
            store.begin(run)
            for probe in probes:
                store.keep(
                    Sample(
                        run=run.id,
                        case=Case(probe),
                        round=1,
                        metric="rate",
                        unit="1/s",
                        values=(1.0,),
                    )
                )

    return kept


def found(url: str, pool: str = "", **changes: object) -> dict[str, str] | None:
    """Probe -> run of what was begun; None if nothing was."""
    asked = replace(ASKED, **changes)  # type: ignore[arg-type]
    before = begun("abci", asked, FACTS, url, pool)
    return (
        None
        if before is None
        else {p: run_report.run.id for p, run_report in before.reports.items()}
    )


def test_nothing_was_begun_without_a_store_or_with_runs_of_no_suite(url: str, keep: Keep) -> None:
    assert found(url) is None
    keep(replace(run_of("r", "mpi"), request=ASKED), "mpi")
    keep(run_of("q", "mpi", suite="fic"), "mpi")
    assert found(url) is None


def test_a_store_that_cannot_be_read_is_no_reason_to_begin_anew(url: str, keep: Keep) -> None:
    keep(run_of("r", "mpi"), "mpi")
    with closing(sqlite3.connect(url)) as raw:
        raw.execute("UPDATE flowos_runs SET body = '{\"newer\": 1}'")
        raw.commit()
    with pytest.raises(StoreError, match="run r: "):
        found(url)
    with pytest.raises(StoreError, match="store 'mistyped'"):
        found("mistyped")


def test_runs_that_ended_by_themselves_with_numbers_of_their_probe_count(
    url: str, keep: Keep
) -> None:
    keep(run_of("whole", "mpi"), "mpi")
    keep(run_of("short", "fio", ended_early=TIME_WAS_OUT), "fio")
    keep(run_of("killed", "stream", ended=""), "stream")
    keep(run_of("stopped", "solve", ended_early="it was interrupted"), "solve")
    keep(run_of("ceilings alone", "gemm"), "clock")
    assert found(url) == {"mpi": "whole", "fio": "short"}


def test_runs_that_measured_a_probe_together_count_until_one_had_all_its_cases(
    url: str, keep: Keep
) -> None:
    def part(id_: str, *measured: str, ended_early: str = "") -> Run:
        run = run_of(id_, "mpi", ended_early=ended_early)
        step = SuiteStep(of="s-1", suite="abci", probe="mpi", measured=measured)
        return replace(run, request=replace(run.request, suite=step))

    keep(part("before it began anew"), "mpi")
    keep(part("first"), "mpi")
    keep(part("stopped", "a", ended_early="it was interrupted"), "mpi")
    keep(part("second", "a"), "mpi")
    keep(part("too short", "a", "b"), "clock")
    keep(part("third", "a", "b"), "mpi")
    before = begun("abci", ASKED, FACTS, url)
    assert before is not None
    assert before.reports["mpi"].run.id == "third"
    assert [each.run.id for each in before.earlier["mpi"]] == ["first", "second"]


def test_the_suite_that_was_begun_last_goes_on_and_its_newest_run_counts(
    url: str, keep: Keep
) -> None:
    keep(run_of("old", "mpi", of="s-1"), "mpi")
    keep(run_of("older", "fio", of="s-2"), "fio")
    keep(run_of("newer", "fio", of="s-2"), "fio")
    assert found(url) == {"fio": "newer"}


def test_another_request_begins_anew(url: str, keep: Keep) -> None:
    keep(run_of("r", "mpi"), "mpi")
    assert found(url, probes=()) == {"mpi": "r"}
    assert found(url, effort="full") is None
    assert found(url, environments=("bare", "mine")) is None
    assert found(url, scratch=PurePath("/scratch")) is None


def test_nodes_of_a_pool_go_on_with_what_was_measured_on_as_many_of_it(
    url: str, keep: Keep
) -> None:
    where = Deployment(of="d-1", number=1, pool="p", nodes=(DeployedNode(name="n1"),))
    between = replace(run_of("pair", "mpi").request, nodes=2)
    keep(run_of("pair", "mpi", request=between, deployment=where), "mpi")
    keep(run_of("one", "stream", deployment=where), "stream")
    assert found(url) is None
    assert found(url, pool="q", nodes=2) is None
    assert found(url, pool="p", nodes=2) == {"mpi": "pair", "stream": "one"}
    assert found(url, pool="p", nodes=3) == {"stream": "one"}


def test_a_machine_of_the_same_kind_goes_on_and_another_one_does_not(url: str, keep: Keep) -> None:
    keep(run_of("r", "mpi", host="b", facts=replace(FACTS, host="b", kernel="newer")), "mpi")
    assert found(url) == {"mpi": "r"}
    for other in (replace(FACTS, cpu_model="d"), replace(FACTS, gpus=("NVIDIA H100",))):
        assert begun("abci", ASKED, other, url) is None
