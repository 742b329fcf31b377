"""The choice of engines: measured first, then the cheapest sum, and never task by task."""

import itertools
import random

import pytest

from flowos.model import (
    HOST,
    ChosenEngines,
    EngineSite,
    SiteNote,
    Task,
    array,
    float32,
    native_ports,
)
from flowos.model import NativeCode as Code
from flowos.plan import TRIES, Engines, TriedEngines, next_engines, planned
from flowos.plan._engines import cheapest, single_engines

MIB = 1 << 20
HOMES = {"cpu": HOST, "cuda": "cuda", "hdl": "hdl"}


def site(
    label: str, engines: str, *sources: tuple[int, int] | None, read: bool = False
) -> EngineSite:
    vector = array(float32, ("n",))
    names = [f"x{i}" for i in range(len(sources))]
    ports = native_ports("test", dict.fromkeys(names, vector), {"y": vector})
    bodies = tuple(Code(print, engine=engine) for engine in engines.split())
    task = Task(name=label, inputs=ports.inputs, outputs=ports.outputs, body=bodies[0])
    return EngineSite(label, task, bodies, sources, (read,))


def note(engine: str, seconds: float, *places: str, size: int = MIB) -> SiteNote:
    taken = tuple((size, place) for place in places)
    home = HOMES[engine]
    return SiteNote("20", engine, engine, seconds, home, taken, ((size, home),))


def test_engines_are_shown_by_their_names() -> None:
    assert repr(ChosenEngines("20", ("cpu", "cuda"))) == "cpu, cuda"


def test_each_engine_is_tried_before_one_is_chosen() -> None:
    sites = [site("a", "cpu cuda", None), site("b", "cuda", (0, 0), read=True)]
    assert single_engines(sites) == (("cpu", "cuda"), ("cuda", "cuda"))
    tried: dict[Engines, TriedEngines] = {("cpu", "cuda"): TriedEngines(TRIES, (3.0,))}
    assert next_engines(sites, tried, {}) == (("cuda", "cuda"), "measuring")
    tried[("cuda", "cuda")] = TriedEngines(TRIES, (1.0,))
    assert next_engines(sites, tried, {}) == (("cuda", "cuda"), "chosen")


def test_a_choice_that_is_better_by_the_sum_is_measured_itself() -> None:
    sites = [site("a", "cpu cuda", None), site("b", "cpu cuda", (0, 0), read=True)]
    notes = {
        (0, "cpu"): [note("cpu", 1.0, HOST)],
        (0, "cuda"): [note("cuda", 9.0, HOST)],
        (1, "cpu"): [note("cpu", 9.0, HOST)],
        (1, "cuda"): [note("cuda", 1.0, "cuda")],
    }
    tried: dict[Engines, TriedEngines] = {
        (each, each): TriedEngines(TRIES, (10.0,)) for each in ("cpu", "cuda")
    }
    assert next_engines(sites, tried, notes) == (("cpu", "cuda"), "measuring")
    tried["cpu", "cuda"] = TriedEngines(TRIES, (11.0, 12.0))
    assert next_engines(sites, tried, notes)[0] != ("cpu", "cuda")


def test_what_promises_next_to_nothing_is_not_measured() -> None:
    sites = [site("a", "cpu cuda", None), site("b", "cpu cuda", (0, 0), read=True)]
    seconds = {"cpu": (1.0, 1.01), "cuda": (1.01, 1.0)}
    notes = {
        (i, e): [note(e, took[i], HOMES[e] if i else HOST)]
        for e, took in seconds.items()
        for i in (0, 1)
    }
    tried: dict[Engines, TriedEngines] = {(e, e): TriedEngines(TRIES, (2.01,)) for e in seconds}
    assert next_engines(sites, tried, notes) == (("cpu", "cpu"), "chosen")


def test_a_task_that_is_faster_elsewhere_stays_if_the_copies_cost_more() -> None:
    sites = [
        site("a", "cpu cuda", None),
        site("b", "cpu cuda", (0, 0)),
        site("c", "cpu cuda", (1, 0), read=True),
    ]
    size = 1 << 30
    notes = {
        (0, "cuda"): [note("cuda", 0.01, HOST, size=size)],
        (0, "cpu"): [note("cpu", 1.0, HOST, size=size)],
        (1, "cuda"): [note("cuda", 0.02, "cuda", size=size)],
        (1, "cpu"): [note("cpu", 0.001, HOST, size=size)],
        (2, "cuda"): [note("cuda", 0.01, "cuda", size=size)],
        (2, "cpu"): [note("cpu", 1.0, HOST, size=size)],
    }
    assert cheapest(sites, notes)[1] == ("cuda", "cuda", "cuda")
    notes[1, "cuda"] = [note("cuda", 2.0, "cuda", size=size)]
    assert cheapest(sites, notes)[1] == ("cuda", "cpu", "cuda")


def test_the_plan_lists_each_copy_with_its_bytes() -> None:
    sites = [site("a", "cpu cuda", None), site("b", "cpu cuda", (0, 0), read=True)]
    notes = {
        (0, "cpu"): [note("cpu", 1.0, HOST)],
        (0, "cuda"): [note("cuda", 0.1, HOST)],
        (1, "cpu"): [note("cpu", 1.0, HOST)],
        (1, "cuda"): [note("cuda", 0.1, "cuda")],
    }
    tried: dict[Engines, TriedEngines] = {
        (each, each): TriedEngines(TRIES, (0.2 if each == "cuda" else 2,)) for each in HOMES
    }
    plan = planned(sites, tried, notes)
    assert [(c.value, c.bytes, c.source, c.target) for c in plan.copies] == [
        ("a.x0", MIB, HOST, "cuda"),
        ("b.y", MIB, "cuda", HOST),
    ]
    assert plan.seconds == pytest.approx(0.2, rel=0.01)
    assert str(plan).splitlines() == [
        "task  engine  time",
        "a     cuda    100 ms",
        "b     cuda    100.2 ms",
        "copy a.x0: 1048576 bytes, host to cuda",
        "copy b.y: 1048576 bytes, cuda to host",
        "state: chosen",
    ]


def test_a_plan_before_anything_ran_says_so() -> None:
    plan = planned([site("a", "cpu cuda", None)], {}, {})
    assert (plan.state, plan.seconds, plan.tasks[0].seconds) == ("measuring", None, None)
    assert "a     cpu     not measured\nno copies" in str(plan)


@pytest.mark.parametrize("seed", range(20))
def test_the_sum_is_the_least_of_all_choices(seed: int) -> None:
    """Against all 3^7 choices, whose cost is counted here on its own."""
    draw = random.Random(seed)
    sites: list[EngineSite] = []
    for number in range(7):
        made = [(draw.randrange(number), 0) if number else None for _ in range(draw.randint(1, 2))]
        sites.append(site(f"s{number}", "cpu cuda hdl", *made, read=number == 6))
    alone = {(i, e): draw.uniform(0.0001, 0.002) for i in range(7) for e in HOMES}
    notes = {(i, e): [note(e, alone[i, e], *[HOMES[e]] * len(sites[i].sources))] for i, e in alone}

    def cost(engines: tuple[str, ...]) -> float:
        copies = int(HOMES[engines[6]] != HOST)
        for i, each in enumerate(sites):
            for source in each.sources:
                place = HOMES[engines[source[0]]] if source else HOST
                copies += HOMES[engines[i]] != place
        return sum(alone[i, e] for i, e in enumerate(engines)) + copies * MIB / 5e9

    best = min(map(cost, itertools.product(HOMES, repeat=7)))
    seconds, choice = cheapest(sites, notes)
    assert cost(choice) == pytest.approx(best) == pytest.approx(seconds)
