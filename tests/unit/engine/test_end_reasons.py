"""When a process has ended: from what the kernel says of it."""

import math
from dataclasses import replace
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flowos.drivers import runtime_named
from flowos.engine._ready import Ready
from flowos.engine.environments._elsewhere import (
    EnvironmentsElsewhere,
    StartsLaunches,
    _Neighbour,
    _Opened,
    _Said,
)
from flowos.engine.environments._shared_copies import SharedCopies
from flowos.engine.launch._capture import Capture
from flowos.engine.launch._end_reasons import may_lack_root, runs, without_root
from flowos.model import Environment, Exited, Image, Killed, Launch, RuntimeFailed

STAT = b"71 (a ) b) %s 1 71 71 0 -1 %d 100 0 0 0 1 2 0 0 20 0 1 0 99 0 0"


@pytest.mark.parametrize(
    ("state", "flags", "expected"),
    [
        (b"S", 0x400000, True),
        (b"R", 0x400040, True),
        (b"R", 0x400004, False),  # it is being ended: its files are closed, its memory goes
        (b"D", 0x400144, False),
        (b"Z", 0x40000C, False),
        (b"X", 0x400000, False),
    ],
)
def test_a_process_that_the_kernel_is_ending_runs_no_more(
    state: bytes, flags: int, expected: bool
) -> None:
    assert runs(STAT % (state, flags)) is expected


HELD = cast("Any", None)
"""What is not asked here."""
IMAGE = Image(form="folder", digest="", source=PurePath("/a"))
IN_IMAGE = Launch(argv=("sh", "-c", "x"), env=Environment(image=IMAGE, runtime="bwrap"))


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (0, "Bus error", False),
        (3, "", False),
        (3, "no such file", False),
        (3, "cat: /etc/x: Transport endpoint is not connected", True),
        (3, "sh: true: Socket not connected", True),
        (3, "Bus error (core dumped)", True),
        (-7, "", True),
        (135, "", True),
    ],
)
def test_which_ends_may_be_those_of_a_command_without_its_image(
    code: int, said: str, expected: bool
) -> None:
    stderr = Capture(1 << 10)
    stderr.add(said.encode())
    assert may_lack_root(IN_IMAGE, code, stderr) is expected
    assert not may_lack_root(Launch(argv=("sh",)), code, stderr), "it has no image"


def test_a_lost_image_names_its_node_unless_all_went_well() -> None:
    assert without_root(IN_IMAGE, Exited(code=0), "n1") == Exited(code=0)
    end = without_root(IN_IMAGE, Killed(signal=7), "n1")
    assert isinstance(end, RuntimeFailed)
    assert end.reason == (
        f"{IN_IMAGE.env.label}: squashfuse, which showed the image on node n1, has ended, and so "
        "'sh' lost its root; start it again (dmesg there shows whether memory ran out)"
    )
    assert "on node" not in str(without_root(IN_IMAGE, Exited(code=1)))


def environments_on(node: str) -> EnvironmentsElsewhere:
    """The same image, shown by two runtimes."""
    name = cast("StartsLaunches", SimpleNamespace(name=node))
    environments = EnvironmentsElsewhere(name, Path, SharedCopies(Path), "")
    for runtime in ("bwrap", "ch-run"):
        env = Environment(image=IMAGE, runtime=runtime)
        opened = _Opened(env, env, runtime_named(runtime), (), HELD, HELD, _Said())
        environments._opened[env] = opened
    return environments


def lose(environments: EnvironmentsElsewhere) -> None:
    for line in ('{"stays": true}', '{"ended": true}'):
        environments._opened[IN_IMAGE.env].said.add(line)


def test_an_image_that_one_runtime_has_lost_is_there_for_launches_of_another() -> None:
    environments = environments_on("n1")
    lose(environments)
    bound = replace(IN_IMAGE.env, binds=(("/a", "/a"),))
    other = replace(IN_IMAGE.env, runtime="ch-run")
    asked = [replace(IN_IMAGE, env=env) for env in (IN_IMAGE.env, bound, other, Environment())]
    assert [environments.lost_image(each, 1.0) for each in asked] == ["n1", "n1", "", ""]


def test_of_a_launch_on_several_nodes_the_one_that_lost_its_image_is_named() -> None:
    first, second = environments_on("n1"), environments_on("n2")
    env = IN_IMAGE.env
    first._opened[env].neighbours["n2"] = _Neighbour(Ready(env, (), lambda: None), second)
    both, alone = replace(IN_IMAGE, nodes=("n1", "n2")), replace(IN_IMAGE, nodes=("n1",))
    assert first.lost_image(both, 1.0) == ""
    lose(second)
    assert [first.lost_image(each, 1.0) for each in (both, alone, IN_IMAGE)] == ["n2", "", ""]
    lose(first)
    assert first.lost_image(replace(both, nodes=("n2", "n3")), 1.0) == "n2"


def test_an_image_is_away_from_its_end_until_it_is_shown_again() -> None:
    said = _Said()
    said.add('{"stays": true}')
    assert (said.answer, said.ends, said.away_until) == ('{"stays": true}', 0, 0.0)
    said.add('{"ended": true}')
    assert (said.ends, said.away_until) == (1, math.inf)
    said.add('{"shown": true}')
    assert said.ends == 1
    assert 0.0 < said.away_until < math.inf
