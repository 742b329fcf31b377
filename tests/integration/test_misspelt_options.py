"""An option that there is not is named, wherever it stands, with the nearest that there is."""

import subprocess
from collections.abc import Callable

import pytest

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "run flow.py n=1 --wrokers process",
            "run: error: unrecognized arguments: --wrokers process; did you mean '--workers'? See"
            " flowos run --help",
        ),
        (
            "run flow.py n=1 --xyzzy",
            "run: error: unrecognized arguments: --xyzzy; see flowos run --help",
        ),
        (
            "feed warm folder --cahce there",
            "feed warm: error: unrecognized arguments: --cahce; did you mean '--cache'? See flowos"
            " feed warm --help",
        ),
        (
            "kernel publish --uot=there",
            "kernel publish: error: unrecognized arguments: --uot; did you mean '--out'? See flowos"
            " kernel publish --help",
        ),
        (
            "completion --nmaes pools",
            "completion: error: unrecognized arguments: --nmaes; did you mean '--names'? See flowos"
            " completion --help",
        ),
        (
            "feed --cahce there warm folder",
            "feed: error: unrecognized arguments: --cahce; did you mean '--cache'? See flowos feed"
            " --help",
        ),
        (
            "feed --cache there warm folder",
            "feed: error: unrecognized arguments: --cache; it goes behind the command: flowos feed"
            " COMMAND --cache; see flowos feed --help",
        ),
    ],
)
def test_the_nearest_option_is_named(flowos: Flowos, words: str, says: str) -> None:
    done = flowos(*words.split(), code=2)
    assert (done.stdout, done.stderr) == ("", f"flowos {says}\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("feed warm folder", "the following arguments are required: --cache"),
        ("feed warm folder --cach", "argument --cache: expected one argument"),
        ("feed warm -- --cahce", "the following arguments are required: --cache"),
        ("measure --minutes x -- ls --color", "argument --minutes: x: expected a number"),
        ("measure --minutes x ls --color", "argument --minutes: x: expected a number"),
    ],
)
def test_other_faults_are_said_as_they_are(flowos: Flowos, words: str, says: str) -> None:
    said = flowos(*words.split(), code=2).stderr
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("words", ["flow.py --help", "flow.py n=1 -h", "flow.py --workers=ray -h"])
def test_help_behind_a_flow_file_is_that_of_run(flowos: Flowos, words: str) -> None:
    assert flowos("run", *words.split()).stdout == flowos("run", "--help").stdout
