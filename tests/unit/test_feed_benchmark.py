"""How `benchmarks/feed.py` chooses settings and opponents, and goes on where it was stopped."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

FEED = Path(__file__).parents[2] / "benchmarks" / "feed"


@pytest.fixture(autouse=True)
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FEED)


def found(seconds: float, batches: int = 1000) -> dict[str, Any]:
    return {"batches": batches, "seconds": seconds, "marks": [[1, 0.0]]}


def test_what_was_found_before_a_run_was_stopped_is_not_looked_for_again(tmp_path: Path) -> None:
    from journal import Journal

    def never() -> Any:
        raise AssertionError

    file = tmp_path / "run.jsonl"
    journal = Journal(file, "this", resume=False)
    assert journal.once("a", lambda: {"two": 2}) == {"two": 2}
    journal.once("b", lambda: 3)
    file.write_text(file.read_text()[:-5])  # killed while it wrote
    journal = Journal(file, "this", resume=True)
    assert journal.once("a", never) == {"two": 2}
    assert journal.once("b", lambda: 4) == 4
    assert Journal(file, "this", resume=True).once("b", never) == 4
    for run, resume in (("another", True), ("this", False)):
        assert Journal(file, run, resume=resume).known == {}
    journal.end()
    assert not file.exists()


def test_the_best_two_settings_are_tried_for_longer_where_they_are_near(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import contest
    from cases import named
    from peers import PEERS

    looks = {4: 60.0, 16: 10.5, 64: 10.0}
    tries = {16: 9.9, 64: 11.1}
    asked: list[tuple[int, float]] = []

    def turn(_table: object, _case: object, _of: object, setting: Any, seconds: float) -> Any:
        asked.append((setting.workers, seconds))
        return found((looks if seconds == contest.LOOK_SECONDS else tries)[setting.workers])

    monkeypatch.setattr(contest, "turn", turn)
    obstore = next(peer for peer in PEERS if peer.name == "obstore")
    entrant: Any = SimpleNamespace(contestant=obstore)
    points = contest.sweep(None, named("s3"), entrant)  # type: ignore[arg-type]
    assert {point["workers"]: round(point["seconds"], 1) for point in points} == {4: 60.0, **tries}
    assert asked == [(4, 1.0), (16, 1.0), (64, 1.0), (64, 3.0), (16, 3.0)]


def test_the_best_two_others_and_who_is_near_them_have_a_second_round() -> None:
    from cases import named
    from contest import going_on
    from peers import OURS, PEERS

    peers = [OURS, *PEERS[:5]]
    entrants: Any = [SimpleNamespace(name=peer.name, contestant=peer) for peer in peers]
    seconds = dict(zip((peer.name for peer in peers), (9, 7, 10, 12, 13, 5), strict=True))
    case = named("local-warm")

    def names(turns: Mapping[str, Any], is_last: bool = False) -> set[str]:
        return {entrant.name for entrant in going_on(case, entrants, turns, is_last)}

    assert names({}, is_last=True) == set(seconds)
    once = {name: [found(value)] for name, value in seconds.items() if name != peers[5].name}
    assert names(once) == {"ours", *(peer.name for peer in peers[1:4])}
    assert names(once, is_last=True) == {"ours"}
    assert names({**once, "ours": once["ours"] * 2}) == {"ours"}
