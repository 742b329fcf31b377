"""Launches of a thread that end together, as those do whose nodes are taken away."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flowos.engine import LaunchGroup, here
from flowos.model import BARE, Exited, Killed, Launch, Outcome
from flowos.operations._held_nodes import held_nodes
from tests.waiting import PATIENCE_SECONDS, comes, in_a_thread


def launch(*argv: str) -> Launch:
    return Launch(argv=argv, variables=here().variables(BARE), limit_seconds=PATIENCE_SECONDS)


def run_in(group: LaunchGroup, one: Launch) -> Callable[[], Outcome]:
    """In a thread of its own; the function that is returned waits for its end."""

    def run() -> Outcome:
        with group.joined():
            return here().run(one)

    thread, answers = in_a_thread(run)

    def ended() -> Outcome:
        thread.join(PATIENCE_SECONDS)
        assert answers, "it runs on"
        outcome: Outcome = answers[0]
        return outcome

    return ended


@pytest.mark.usefixtures("nothing_is_left")
def test_what_runs_ends_with_its_group_and_others_run_on(tmp_path: Path) -> None:
    ours, others = LaunchGroup(), LaunchGroup()
    go = tmp_path / "go"
    waits = ("sh", "-c", 'touch "$1"; while [ ! -e "$0" ]; do sleep 0.02; done', str(go))
    first = run_in(ours, launch(*waits, str(tmp_path / "first")))
    second = run_in(others, launch(*waits, str(tmp_path / "second")))
    assert comes(lambda: all((tmp_path / name).exists() for name in ("first", "second")))
    ours.end()
    assert first().end == Killed(15, by="request")
    go.touch()
    assert second().end == Exited(0)


@pytest.mark.usefixtures("nothing_is_left")
def test_what_begins_after_its_end_is_ended() -> None:
    group = LaunchGroup()
    group.end()
    ended = run_in(group, launch("sleep", "1000"))().end
    assert ended == Killed(15, by="request")
    with group.joined(), LaunchGroup().joined():
        assert here().run(launch("true")).end == Exited(0), "it is of the inner one"
    assert here().run(launch("true")).end == Exited(0), "it is of none"


@pytest.mark.parametrize(
    ("pool", "why"),
    [
        ("kind = 'fake', nodes = 2, script = ['end after 0.2']", "its slice ended after 0.2 s"),
        ("kind = 'local', max_seconds = 0.2", "its slice ended after 0.2 s"),
        (
            "kind = 'fake', nodes = 2, script = ['lose 1 after 0.2']",
            "node p-1 was lost: the node does not answer",
        ),
    ],
)
def test_what_runs_on_held_nodes_ends_when_they_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: str, why: str
) -> None:
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    (tmp_path / "flowos.toml").write_text(f"pools.p = {{{pool}}}")
    with held_nodes("p", 1, lambda _: None, of="d-1") as on, on.launches.joined():
        ended = on.node.run(launch("sleep", "1000")).end
        assert (ended, on.gone()) == (Killed(15, by="request"), why)
