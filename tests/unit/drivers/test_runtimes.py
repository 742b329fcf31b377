"""What the runtimes build and refuse."""

from pathlib import PurePath

import pytest

from flowos.drivers import Gang, Reason, runtime_named
from flowos.model import Environment, Facts, Image, Launch, LaunchFailed

AT = PurePath("/tmp/flowos-7/abc/0")
IMAGE = Image(form="squashfs", digest="sha256:0", source=PurePath("/images/a.sqfs"))
FACTS = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
)


def test_bare_is_usable_everywhere_and_adds_nothing() -> None:
    bare = runtime_named("bare")
    assert bare.usable(FACTS) == ()
    assert bare.ways(FACTS) == (bare,)
    assert bare.wrap(("a", "b"), Launch(argv=("b",)), AT, Gang(name="g", ranks=2)) == ("a", "b")


def test_bare_refuses_an_image_and_names_it() -> None:
    bare = runtime_named("bare")
    launch = Launch(argv=("b",), env=Environment(image=IMAGE))
    with pytest.raises(LaunchFailed, match=r"/images/a\.sqfs: the bare runtime enters no image"):
        bare.wrap(("a",), launch, AT, None)
    assert bare.forms(FACTS) == ()
    for meet in (bare.setup, bare.entered, bare.teardown):
        with pytest.raises(
            LaunchFailed, match=r"/images/a\.sqfs: the bare runtime enters no image"
        ):
            meet(IMAGE, AT)


def test_bare_refuses_a_bind_and_names_it() -> None:
    launch = Launch(argv=("b",), env=Environment(binds=(("/data", "/mnt"),)))
    with pytest.raises(LaunchFailed, match=r"bind /data at /mnt: .* leave out binds"):
        runtime_named("bare").wrap(("a",), launch, AT, None)


def test_an_unknown_runtime_is_one_line_that_names_the_known() -> None:
    with pytest.raises(LaunchFailed) as told:
        runtime_named("docker")
    assert str(told.value) == "unknown runtime 'docker'; known are bare"


def test_a_reason_may_come_without_a_remedy() -> None:
    assert Reason(code="no-fuse", text="no /dev/fuse").remedy == ""


def test_an_environment_is_told_apart_by_image_and_runtime() -> None:
    assert Environment().label == "bare"
    assert Environment(image=IMAGE, runtime="ch-run").label == "a.sqfs@ch-run"
