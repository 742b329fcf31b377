"""Which stored runs are judged together, by the probes that they measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.model import Run
from flowos.operations._alike_runs import probes_of
from flowos.operations.measure import report_of
from flowos.operations.usual import MAX_OTHERS, with_places
from flowos.store import open_store
from tests.integration.test_acceptance import Change, kept
from tests.integration.test_commands import Flowos


def test_runs_of_the_same_probes_in_another_order_are_alike(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    sets = [("clock", "flops"), ("flops", "clock"), ("clock",), ("clock", "flops", "clock")]
    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 4, asked_for(*sets))
    assert numbers_of_alike(flowos, store) == [1, 2, 4]
    words = ("compare", "--axis", "machine", "--store", store)
    assert "3 runs, " in flowos(*words).stdout


def test_runs_of_a_command_and_those_checked_are_alike(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    sets: list[tuple[str, ...]] = [(), (), ("command",)]
    change = asked_for(*sets, commands=(("p",),))
    store = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 3, change)
    assert numbers_of_alike(flowos, store) == [1, 2, 3]


def test_a_run_that_named_no_probe_is_like_one_that_named_all_that_it_measured(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    run = run_of(measured)
    every = probes_of(replace(run, request=replace(run.request, probes=())))
    sets = [(), tuple(sorted(every)), tuple(sorted(every - {"clock"})), ()]
    own = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 4, asked_for(*sets))
    assert {"clock", "flops", "stream"} <= every
    assert every.isdisjoint({"command", "training"}), "measured only if they are named"
    assert numbers_of_alike(flowos, own) == [1, 2, 4]


def test_runs_that_named_no_probe_are_alike_whatever_a_machine_lacks(
    flowos: Flowos, measured: Path, tmp_path: Path
) -> None:
    def without_compilers(at: int, run: Run) -> Run:
        facts = replace(run.facts, compilers=()) if at == 1 else run.facts
        return replace(run, request=replace(run.request, probes=()), facts=facts)

    runs = [without_compilers(at, run_of(measured)) for at in range(2)]
    assert probes_of(runs[0]) != probes_of(runs[1])
    own = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * 3, without_compilers)
    assert numbers_of_alike(flowos, own) == [1, 2, 3]


def test_no_more_runs_are_looked_at_than_a_place_is_found_among(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = asked_for(*[()] * (MAX_OTHERS + 3))
    own = kept(measured / "runs.db", tmp_path / "r.db", [1.0] * (MAX_OTHERS + 3), change)
    asked: list[str] = []

    def counted(run: Run) -> frozenset[str]:
        asked.append(run.id)
        return probes_of(run)

    monkeypatch.setattr("flowos.operations.usual.probes_of", counted)
    with open_store(str(own)) as store:
        run = store.runs()[-1]
        report = report_of(run, store.samples(run))
    places = with_places(report, str(own)).places
    assert {place.runs for place in places} == {MAX_OTHERS}
    assert len(asked) == 1 + MAX_OTHERS


def run_of(measured: Path) -> Run:
    with open_store(str(measured / "runs.db")) as store:
        return store.runs()[-1]


def asked_for(*sets: tuple[str, ...], commands: tuple[tuple[str, ...], ...] = ()) -> Change:
    """Each run was asked for the next of these sets of probes."""

    def changed(at: int, run: Run) -> Run:
        return replace(run, request=replace(run.request, probes=sets[at], commands=commands))

    return changed


def numbers_of_alike(flowos: Flowos, store: Path) -> list[int]:
    """Which of the runs, counted from 1, the baseline of the last one has."""
    shown = flowos("baseline", "--store", store, "--dry-run", "--json").stdout
    return [int(id.split("-")[2]) for id in json.loads(shown)["runs"]]
