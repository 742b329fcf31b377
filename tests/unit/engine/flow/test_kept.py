"""Values that stay where they were made, and what is said of their size."""

from typing import Any

import flowos as fo
from flowos.engine.flow._kept import kept_slots, traffic_notes
from flowos.plan import compile_flow

LARGE, ANY = fo.array(fo.float64, (5_000, 1_000)), fo.array(fo.float64, (None, 1_000))


def flow_of(passed: Any) -> fo.Flow:
    """One task gives an array to two others."""

    def gives(x: Any) -> Any:
        return x

    def takes(x: Any) -> Any:
        return x

    def task(fun: Any, takes: Any, gives: Any) -> Any:
        fun.__annotations__ = {"x": takes, "return": gives}
        return fo.task(fun)

    made = task(gives, fo.int64, passed)(fo.flow_input("x", fo.int64))
    read = task(takes, passed, fo.int64)
    return fo.flow_output(read(made), read(made))


def test_what_only_tasks_read_is_kept_and_outputs_are_not() -> None:
    schedule = compile_flow(flow_of(LARGE))
    kept = kept_slots(schedule)
    assert [len(kept[stage.number]) for stage in schedule.stages] == [1, 0, 0]


def test_arrays_whose_ports_say_that_they_are_large_are_noted() -> None:
    assert traffic_notes(compile_flow(flow_of(LARGE))) == (
        "tasks pass 80 MB of arrays on in a run, by way of this program; workers='ray' leaves them "
        "on the nodes, and starts slowly: it may pay over many runs",
    )


def test_nothing_is_said_where_ports_do_not_say_how_large_they_are() -> None:
    for port in (ANY, fo.array(fo.float64), fo.int64, fo.array(fo.float64, (10, 10))):
        assert traffic_notes(compile_flow(flow_of(port))) == ()
