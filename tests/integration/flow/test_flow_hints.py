"""Values with parts between tasks, over threads and over worker processes."""

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import flowos as fo

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")


@dataclass
class Mesh:
    points: NDArray[np.float64]
    names: dict[str, int]
    parent: "Mesh | None" = None


@dataclass
class Fine(Mesh):
    level: int = 0


class Colour(Enum):
    RED = 1


Deep = list[dict[str, Mesh]] | None


@fo.task
def refine(mesh: Mesh, *, times: int = 2, by: complex = 1j) -> Fine:
    return Fine(np.repeat(mesh.points, times), {**mesh.names, str(by): times}, mesh, times)


@fo.task
def gather(mesh: Mesh, colour: Colour, more: Deep = None) -> tuple[list[Mesh], Deep, Colour]:
    return [mesh, *(m for each in more or [] for m in each.values())], more, colour


def small() -> Mesh:
    return Mesh(np.arange(3.0), {"a": 1})


@pytest.mark.parametrize("way", WAYS)
def test_objects_lists_and_keywords_cross(way: Way) -> None:
    mesh, more = fo.flow_input("mesh", Mesh), fo.flow_input("more", Deep)
    flow = fo.flow_output(*gather(refine(mesh, times=3), Colour.RED, more))
    with fo.slice(flow, workers=way) as s:
        large = Mesh(np.arange(100_000.0), {})
        for deep in (None, [{"b": large}, {}]):
            given: Any = s.run(small(), deep)
            (first, *rest), back, colour = given
            assert type(first) is Fine
            assert first.points.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
            assert first.names == {"a": 1, "1j": 3}
            assert type(first.parent) is Mesh
            assert colour is Colour.RED
            assert [m.points.sum() for m in rest] == ([large.points.sum()] if deep else [])
            assert (back is None) is (deep is None)
        with pytest.raises(
            fo.ValueRefused,
            match=r"^run: input 'more': expected list\[dict\[str_, Mesh\]\] \| None; "
            r"at \[1\]\['b'\]: expected Mesh, given 3 \(int\)$",
        ):
            s.run(small(), [{}, {"b": 3}])
        single: Any = np.zeros(2, np.float32)
        with pytest.raises(
            fo.ValueRefused, match=r"'mesh': expected Mesh; at \.points: expected arr"
        ):
            s.run(Mesh(single, {}), None)
        with pytest.raises(fo.ValueRefused, match=r"at \.names\['a'\]: expected int64, given nan"):
            s.run(Mesh(np.zeros(2), {"a": math.nan}), None)  # type: ignore[dict-item]


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_result_names_task_port_and_part(way: Way) -> None:
    @fo.task
    def tally(words: list[str], *, least: int) -> dict[str, int]:
        counts: Any = Counter(words)
        wrong: Any = least + 0.5
        return counts if least < 9 else {**counts, "wrong": wrong}

    words, least = fo.flow_input("words", list[str]), fo.flow_input("least", int)
    with fo.slice(tally(words, least=least), workers=way) as s:
        assert s.run(["a", "b", "a"], 1) == [{"a": 2, "b": 1}]
        with pytest.raises(
            fo.ValueRefused,
            match=r"^task 'tally', output 'out': expected dict\[str_, int64\]; at \['wrong'\]: "
            r"expected int64, given 9\.5 \(float\); its inputs were words = \['a'\] \(list\), "
            r"least = 9 \(int\)$",
        ):
            s.run(["a"], 9)
        with pytest.raises(fo.ValueRefused, match=r"at \[0\]: expected str_, given \[\] \(list\)"):
            s.run([[]], 1)


@pytest.mark.parametrize("way", WAYS)
def test_an_error_behind_a_keyword_names_the_tasks_own_line(way: Way) -> None:
    @fo.task
    def fails(x: int, *, y: int | None = None) -> int:
        raise KeyError(y) if x else AssertionError

    with (
        fo.slice(fails(fo.flow_input("x", int), y=3), workers=way) as s,
        pytest.raises(
            fo.TaskFailed,
            match=r"raised KeyError: 3 \(test_flow_hints\.py:\d+\); given x = 1.*y = 3",
        ),
    ):
        s.run(1)


@pytest.mark.parametrize("way", WAYS)
def test_a_map_over_optional_values(way: Way) -> None:
    @fo.task
    def length(x: list[float] | None) -> int:
        return -1 if x is None else len(x)

    with fo.slice(length(fo.flow_input("x", list[float] | None)), workers=way) as s:
        assert list(s.map([None, [], [1.0], [2, math.nan]] * 50)) == [[-1], [0], [1], [2]] * 50
        results = list(s.map([[1.0], ["a"], None], on_error="return"))
        assert [r.ok for r in results] == [True, False, True]


FLOW = """
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Optional

import numpy as np
from numpy.typing import NDArray

import flowos as fo


class Kind(Enum):
    SUM = 1
    MEAN = 2


@dataclass
class Job:
    name: str
    values: NDArray[np.float64]
    kind: Kind = Kind.SUM
    limits: Optional[tuple[float, float]] = None


@dataclass
class Answer:
    name: str
    value: complex
    seen: set[int]


@fo.task
def work(job: Job, *, times: int | None = None, by: complex = 1) -> Answer:
    low, high = job.limits or (-1e9, 1e9)
    kept = job.values[(job.values >= low) & (job.values <= high)]
    value = kept.sum() if job.kind is Kind.SUM else kept.mean()
    return Answer(job.name, complex(value) * (times or 1) * by, {len(kept)})


@fo.task
def kind_of(job: Job) -> Literal[Kind.SUM, Kind.MEAN]:
    return job.kind


job = fo.flow_input("job", Job)
times, by = fo.flow_input("times", int | None), fo.flow_input("by", complex)
flow = fo.flow_output(work(job, times=times, by=by), kind_of(job))

if __name__ == "__main__":
    with fo.slice(flow, workers="process") as s:
        answer, kind = s.run(Job("script", np.ones(5)), None, 2j)
        print(answer, kind is Kind.SUM)
"""


def test_a_flow_file_reads_such_values_from_the_command_line(
    flowos: Any, flowos_process: Any, tmp_path: Path
) -> None:
    (tmp_path / "jobs.py").write_text(FLOW)
    job = '{"name": "a", "values": [1, 2, 30.5], "kind": "MEAN", "limits": [0, 10]}'
    words = ("run", "--json", "jobs.py", f"job={job}", "times=3", "by=2j")
    for workers in ("thread", "process"):
        said = flowos_process(*words, "--workers", workers).stdout
        work = {"name": "a", "value": "9j", "seen": [2]}
        assert json.loads(said) == {"work": work, "kind_of": "MEAN"}
    said = flowos("run", "--dry-run", "jobs.py").stdout
    assert "  input   job: Job\n  input   times: int64 | None\n  input   by: complex128\n" in said
    assert flowos(*words[:4], "times=null", "by=1").returncode == 0
    wrong = job.replace("30.5", '"x"')
    assert "expected Job; at .values: expected array(float64, any), given" in (
        flowos("run", "jobs.py", f"job={wrong}", "times=1", "by=1", code=2).stderr
    )
    for given, words_ in (
        ("times=a", "input 'times': expected int64 | None, given 'a' (str)"),
        ("times=1.5", "input 'times': expected int64 | None, given 1.5 (float)"),
    ):
        assert words_ in flowos("run", "jobs.py", f"job={job}", given, "by=1", code=2).stderr
    bad = flowos("run", "jobs.py", f"job={job}", "times=1", "by=x", code=2).stderr
    assert "input 'by': expected complex128, given 'x' (str)" in bad


def test_classes_of_a_script_cross_to_its_workers(tmp_path: Path) -> None:
    script = tmp_path / "jobs.py"
    script.write_text(FLOW)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (
        "Answer(name='script', value=10j, seen={5}) True\n",
        "",
    )
