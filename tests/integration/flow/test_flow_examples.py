"""Every example runs as it stands, and prints what its comments say."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.engines.languages import needs_julia

EXAMPLES = Path(__file__).parents[3] / "examples"

PRINTED = {
    "commands.py": "[5050, 0]\n",
    "decorated.py": "[6, 4]\n[14, 7]\n",
    "engines.py": (
        "cpu\n[4995000]\n"
        "task      engine  time\n"
        "triple    cpu     not measured\n"
        "triple#2  cpu     not measured\n"
        "add       hdl     not measured\n"
        "total     python  not measured\n"
        "no copies\n"
        "state: chosen\n"
        "opencl\n[4995000]\n"
        "task      engine  time\n"
        "triple    opencl  not measured\n"
        "triple#2  opencl  not measured\n"
        "add       hdl     not measured\n"
        "total     python  not measured\n"
        "copy triple.x: 4000 bytes, host to opencl\n"
        "copy triple#2.y: 4000 bytes, opencl to host\n"
        "state: chosen\n"
        "chosen [4995000]\n"
    ),
    "engines_cxx.py": (
        "[ 1.  6. 11.]\ntask 'saxpy', input 'y': extent 'n' is 4, and 3 in input 'x'\n"
    ),
    "engines_hdl.py": "[10 12 14 16]\n",
    "engines_julia.py": "[ 1.964 -1.051] 0.997\n",
    "engines_r.py": "[ 1.964 -1.051] 0.997\n",
    "engines_opencl.py": "[ 1.  6. 11.]\n",
    "flow_in_flow.py": "[42.0]\n",
    "many_runs.py": "[0.0]\n[1.0]\n[3.0]\n[6.0]\n[10.0]\n[15.0]\n[21.0]\n",
    "paper.py": "[0]\n",
    "solver_loop.py": (
        "426 rounds; 24.56 degrees in the middle\nRoundLimitExceeded after 3 rounds\n"
    ),
    "some_fail.py": (
        "plain [1.5] attempts: 1\n"
        "shy [3.0] attempts: 2\n"
        "empty TaskFailed attempts: 1\n"
        "slow TimeLimitExceeded attempts: 3\n"
        "last [5.5] attempts: 1\n"
        "['plain', 'shy']\n"
    ),
}


NEEDS = {"engines_julia.py": needs_julia}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=NEEDS.get(name, ())) for name in sorted(PRINTED)]
)
def test_an_example_prints_what_it_says(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(PRINTED[name])


def prepared(folder: Path) -> list[str]:
    words = [sys.executable, str(EXAMPLES / "preprocess.py"), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_logs_are_made_ready_and_only_new_ones_the_next_time(tmp_path: Path) -> None:
    lines = prepared(tmp_path)
    assert lines[:2] == [
        "log00.csv.gz: 1959 rows, mean 61.949",
        "log01.csv: 1959 rows, mean 61.866",
    ]
    assert lines[12:] == [""]
    ready = sorted(tmp_path.glob("ready/*"))
    assert [path.name for path in ready] == [f"log{i:02}.csv" for i in range(12)]
    rows = ready[0].read_text().splitlines()
    assert rows == sorted(set(rows))
    assert len(rows) == 1959
    (tmp_path / "raw/log01.csv").write_text("a,1,2.5\nb,2\na,1,2.5\n")
    (tmp_path / "raw/log12.csv.gz").write_bytes(b"\x1f\x8b no gzip")
    again = prepared(tmp_path)
    assert again[:3] == [lines[0], "log01.csv: 1 rows, mean 2.500", lines[2]]
    assert again[12].startswith(
        "log12.csv.gz: item 12: task 'cond[true]/unpack': the command exited"
    )
    assert again[13].startswith("48 results were taken from journal")


def test_the_example_of_environments_tells_how_it_is_called() -> None:
    words = [sys.executable, str(EXAMPLES / "in_an_image.py"), "--help"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "python examples/in_an_image.py IMAGE[@RUNTIME]" in done.stdout


def test_the_papers_program_is_there_word_for_word() -> None:
    assert PAPER in (EXAMPLES / "paper.py").read_text()


PAPER = """\
import flowos as fo
add_scalar_def = {'task_name': "add_scalar",
                  'iport_nametypes': (fo.int64, fo.int64),
                  'oport_nametypes': fo.int64,
                  'fun': add_scalar_fun}
sub_scalar_def = {'task_name': "sub_scalar",
                  'iport_nametypes': (fo.int64, fo.int64),
                  'oport_nametypes': fo.int64,
                  'fun': sub_scalar_fun}
add_scalar = fo.task(add_scalar_def)
sub_scalar = fo.task(sub_scalar_def)
a = fo.flow_input('a', fo.int64)
b = fo.flow_input('b', fo.int64)
c = fo.flow_input('c', fo.int64)
d = sub_scalar(add_scalar(a, b), c)
o = fo.flow_output(d)
s = fo.slice(o)
vs = s.run(1, 2, 3)
print(vs)  # [0]
s.free()
"""
