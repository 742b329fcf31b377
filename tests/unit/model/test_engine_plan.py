"""On which engines tasks run: as a table, and what their calls moved."""

from flowos.model import EnginePlan, PlannedCopy, PlannedTask, SiteNote


def planned(*tasks: PlannedTask, copies: tuple[PlannedCopy, ...] = ()) -> EnginePlan:
    return EnginePlan(state="chosen", tasks=tasks, copies=copies)


SCALE = PlannedTask(task="outer/scale", engine="opencl", seconds=0.0025)
ADD = PlannedTask(task="add", engine="cpu", seconds=0.0005)
UNKNOWN = PlannedTask(task="add", engine="cuda", seconds=None)


def test_a_plan_is_a_table_whose_columns_are_as_wide_as_their_words() -> None:
    copy = PlannedCopy(value="add.out", bytes=800, source="host", target="opencl")
    assert str(planned(SCALE, ADD, copies=(copy,))).splitlines() == [
        "task         engine  time",
        "outer/scale  opencl  2.5 ms",
        "add          cpu     0.5 ms",
        "copy add.out: 800 bytes, host to opencl",
        "state: chosen",
    ]
    assert str(planned(UNKNOWN)).splitlines() == [
        "task  engine  time",
        "add   cuda    not measured",
        "no copies",
        "state: chosen",
    ]


def test_the_time_of_a_plan_is_known_where_each_task_is_measured() -> None:
    assert planned(SCALE, ADD).seconds == 0.003
    assert planned(SCALE, UNKNOWN).seconds is None
    fixed = PlannedTask(task="total", engine="python", seconds=None, fixed=True)
    assert planned(SCALE, fixed, ADD).seconds == 0.003
    assert planned(fixed).seconds is None


def test_a_call_moves_what_was_not_where_its_engine_has_its_arrays() -> None:
    note = SiteNote(
        size="",
        asked="opencl",
        engine="opencl",
        seconds=0.1,
        home="opencl:0",
        taken=((800, "host"), (400, "opencl:0"), (0, "host")),
        given=((80, "host"), (8, "opencl:0")),
    )
    assert note.moved_bytes == 880
    assert not note.cold
