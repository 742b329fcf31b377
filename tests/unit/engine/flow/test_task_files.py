"""Which values of a stage are files, that are called otherwise where it runs."""

from pathlib import Path
from typing import Any, cast

import pytest

from flowos.engine import Node
from flowos.engine.flow._inside import Surroundings, TaskFiles
from flowos.model import Flow, ValueRefused, flow_input, flow_output, str_, task
from flowos.plan import Stage, compile_flow


class Elsewhere:
    """What a node says of files."""

    is_here, name = False, "n1"

    def stage_in(self, path: Path) -> Path:
        return Path("/there") / path.name

    def stage_out(self, path: Path) -> Path | None:
        return None if path.name == "gone" else Path("/here") / path.name


@task
def written(text: str) -> Path:
    return Path(text)


@task
def named(path: Path) -> str:
    return path.name


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "a").touch()
    return tmp_path / "a"


def only_stage(flow: Flow) -> tuple[Stage, TaskFiles]:
    schedule = compile_flow(flow)
    (stage,) = schedule.stages
    return stage, TaskFiles(schedule, Surroundings(node=cast(Node, Elsewhere())))


def text() -> Any:
    return flow_input("text", str_)


def test_a_text_stays_one_where_a_file_is_in_its_place_later() -> None:
    stage, files = only_stage(flow_output(named(written(text()))))
    assert stage.steps[1].inputs == (0,)
    assert files.as_inside(stage, ["word"]) == ["word"]
    assert files.as_outside(stage, ["word"]) == ["word"]


def test_a_file_that_the_last_task_gives_comes_back() -> None:
    stage, files = only_stage(flow_output(written(named(written(text())))))
    assert files.as_inside(stage, ["word"]) == ["word"]
    assert files.as_outside(stage, [Path("/its/word")]) == [Path("/here/word")]


def test_an_object_stays_where_a_file_was_in_its_place_before() -> None:
    @task
    def parent(path: Path) -> object:
        return path.parent

    stage, files = only_stage(flow_output(parent(written(text()))))
    assert files.as_outside(stage, [Path("/its/word")]) == [Path("/its/word")]


@task
def merged(files: list[Path], first: int) -> dict[str, Path]:
    return {"all": files[first]}


def test_files_within_values_are_named_as_files_are(made: Path) -> None:
    stage, files = only_stage(flow_output(merged(flow_input("files", list[Path]), 0)))
    assert files.as_inside(stage, [[made, str(made)]]) == [[Path("/there/a"), "/there/a"]]
    assert files.as_outside(stage, [{"all": Path("/b")}]) == [{"all": Path("/here/b")}]


def test_files_within_values_that_are_written_into_a_flow_are_named_as_files_are(
    made: Path,
) -> None:
    stage, files = only_stage(flow_output(merged([made], flow_input("n", int))))
    assert files.may_move(stage)
    assert files.constants_inside(stage, stage.constants) == [[Path("/there/a")]]


def test_a_part_that_is_not_here_is_named(made: Path) -> None:
    """Whatever the node has under its name."""
    stage, files = only_stage(flow_output(merged(flow_input("files", list[Path]), 0)))
    with pytest.raises(ValueRefused) as refused:
        files.as_inside(stage, [[made, made, made, Path("/gone")]])
    said = "task 'merged', input 'files'[3]: expected a file, nothing is at /gone"
    assert str(refused.value) == said


def test_a_part_that_is_gone_is_named() -> None:
    stage, files = only_stage(flow_output(merged(flow_input("files", list[Path]), 0)))
    with pytest.raises(ValueRefused) as refused:
        files.as_outside(stage, [{"all": Path("/gone")}])
    assert str(refused.value).startswith("task 'merged', output 'out'['all']: /gone is gone from")
