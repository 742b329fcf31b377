"""A name of nothing ends every command with one line and the same exit code, as the reference says.

Not `exec`, `shell` and `run IMAGE`, whose codes are of the command inside: 125.
"""

import subprocess
from collections.abc import Callable

import pytest

from flowos.model import DeviceError, EnvironmentRefused, StoreError, UnknownName
from flowos.operations.devices import reset
from flowos.operations.environment import environment
from flowos.operations.processes import process

Flowos = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("show nosuch", "no run 'nosuch' in "),
        ("compare nosuch last", "no run 'nosuch' in "),
        ("compare nosuch --axis cores", "no run 'nosuch' in "),
        ("compare nosuch other --axis time", "no run 'nosuch' in "),
        ("report nosuch", "no run 'nosuch' in "),
        ("report nosuch other", "no run 'nosuch' in "),
        ("baseline nosuch", "no run 'nosuch' in "),
        ("rm nosuch", "no run 'nosuch' in "),
        ("show p-2026", "no process 'p-2026' is kept"),
        ("why nosuch", "no slice, program or task 'nosuch' runs"),
        ("slice show nosuch", "no slice 'nosuch'"),
        ("slice attach nosuch", "no slice 'nosuch'"),
        ("pools nosuch", "no pool 'nosuch' in "),
        ("doctor --pool nosuch", "no pool 'nosuch' in "),
        ("notebook --pool nosuch --dry-run", "no pool 'nosuch' in "),
        ("measure --pool nosuch --dry-run", "no pool 'nosuch' in "),
        ("measure --env nosuch --dry-run", "no image is called 'nosuch'"),
        ("image inspect nosuch", "no image is called 'nosuch'"),
        ("image verify nosuch", "no image is called 'nosuch'"),
        ("image rm nosuch", "no image is called 'nosuch'"),
        ("image export nosuch there.tar", "no image is called 'nosuch'"),
        ("kernel rm nosuch", "no kernel 'nosuch'"),
        ("kernel publish nosuch image --out there", "no kernel 'nosuch'"),
        ("device reset nosuch", "no device 'nosuch'"),
    ],
)
def test_a_name_of_nothing_is_one_line_and_one_code_whatever_the_command(
    flowos: Flowos, words: str, why: str
) -> None:
    (line,) = flowos(*words.split(), code=2).stderr.splitlines()
    assert line.startswith(f"flowos {words.split()[0]}: {why}")


@pytest.mark.parametrize(
    ("ask", "kind"),
    [(reset, DeviceError), (environment, EnvironmentRefused), (process, StoreError)],
)
def test_it_is_also_an_error_of_its_kind_in_python(
    ask: Callable[[str], object], kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        ask("p-nosuch")
    assert isinstance(caught.value, UnknownName)
