"""What starts in an image after its FUSE server was killed: it is mounted anew, once for all."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import SliceOptions, here, open_slice
from flowos.engine.environments._elsewhere import EnvironmentsElsewhere
from flowos.engine.environments._shared_copies import SharedCopies
from flowos.engine.workers._worker_files import worker_file
from flowos.model import Environment, Exited, Launch, RuntimeFailed, TaskFailed
from tests.waiting import PATIENCE_SECONDS, comes, in_a_thread

from .conftest import INSIDE, Images, all_gone, mounts, ready_or_skip
from .test_ends import BY_FUSE, fuse_servers

pytestmark = pytest.mark.usefixtures("session_folders", "nothing_is_left")

SAID = "squashfuse, which showed the image, has ended"
HANGS = 'echo x >> "$0"; while :; do :; done'
HANGS_FIRST = f'test -e "$0" && echo well && exit; {HANGS}'


@pytest.fixture
def session_folders(images: Images) -> None:
    """Which the session makes once, and keeps."""
    here().variables(bwrap(images.squashfs))
    worker_file(here())


def bwrap(image: Path) -> Environment:
    return Environment(image=here().image_at(image), runtime="bwrap")


def true(env: Environment) -> Launch:
    return Launch(argv=("/bin/true",), env=env, variables=INSIDE)


def killed(before: set[int]) -> None:
    """The one that is new."""
    (server,) = fuse_servers() - before
    os.kill(server, signal.SIGKILL)
    assert all_gone([server])


@pytest.mark.parametrize("bound", [False, True], ids=["as it is", "overlaid"])
@pytest.mark.parametrize("runtime", BY_FUSE)
def test_a_launch_after_the_fuse_server_was_killed_finds_the_image(
    images: Images, runtime: str, tmp_path: Path, *, bound: bool
) -> None:
    binds = ((str(tmp_path), "/mnt/new"),) * bound
    env = Environment(image=here().image_at(images.squashfs), runtime=runtime, binds=binds)
    before = fuse_servers()
    with ready_or_skip(env) as ready:
        for _ in range(2):
            killed(before)
            assert here().run(true(ready.env)).end == Exited(0)
        assert len(fuse_servers() - before) == 1
    assert str(ready.env.image and ready.env.image.source) not in mounts()


def test_one_of_several_launches_mounts_it_anew(images: Images) -> None:
    before = fuse_servers()
    with here().ready(bwrap(images.squashfs)) as ready, ThreadPoolExecutor(8) as pool:
        killed(before)
        together = threading.Barrier(8)

        def launched(_: int) -> object:
            together.wait()
            return here().run(true(ready.env)).end

        assert {*pool.map(launched, range(8))} == {Exited(0)}
        assert len(fuse_servers() - before) == 1
        image = ready.env.image
        assert image
        assert mounts().count(f" {image.source} ") == 1


def test_an_image_that_cannot_be_mounted_any_more_is_told_until_it_can_be(squashfs: Path) -> None:
    before = fuse_servers()
    with here().ready(bwrap(squashfs)) as ready:
        killed(before)
        away = squashfs.rename(squashfs.with_name("away"))
        for _ in range(2):
            end = here().run(true(ready.env)).end
            assert isinstance(end, RuntimeFailed)
            assert SAID in end.reason
        assert not fuse_servers() - before
        away.rename(squashfs)
        assert here().run(true(ready.env)).ok


@contextmanager
def killed_once(comes_first: Callable[[], object], before: set[int]) -> Iterator[None]:
    def kill() -> None:
        assert comes(comes_first)
        killed(before)

    thread, answers = in_a_thread(kill)
    yield
    thread.join(PATIENCE_SECONDS)
    assert answers == [None]


@pytest.mark.parametrize("runtime", BY_FUSE)
def test_the_second_attempt_of_a_task_has_its_image(
    images: Images, runtime: str, tmp_path: Path
) -> None:
    file = tmp_path / "x"
    env = Environment(image=here().image_at(images.squashfs), runtime=runtime)
    ready_or_skip(env).close()
    task = fo.command(["sh", "-c", HANGS_FIRST, str(file)], stdout="said", retries=1)
    before = fuse_servers()
    with (
        open_slice(fo.flow_output(task()), here(), SliceOptions(env=env)) as held,
        killed_once(file.exists, before),
    ):
        assert held.run() == ["well\n"]


def test_each_attempt_under_way_fails_where_each_server_is_killed(
    images: Images, tmp_path: Path
) -> None:
    file = tmp_path / "x"
    env = bwrap(images.squashfs)
    task = fo.command(["sh", "-c", HANGS, str(file)], retries=1)
    before = fuse_servers()

    def kill_each() -> None:
        for attempt in (1, 2):
            assert comes(lambda: file.exists() and file.read_text().count("x") == attempt)  # noqa: B023
            killed(before)

    with open_slice(fo.flow_output(task()), here(), SliceOptions(env=env)) as held:
        thread, answers = in_a_thread(kill_each)
        with pytest.raises(TaskFailed, match=rf"{SAID}.*attempt 2") as failed:
            held.run()
        thread.join(PATIENCE_SECONDS)
    assert answers == [None]
    assert "\n" not in str(failed.value)
    assert file.read_text() == "x\nx\n"


def test_the_next_item_of_a_map_has_its_image(images: Images, tmp_path: Path) -> None:
    file = tmp_path / "x"
    env = bwrap(images.squashfs)
    number = fo.flow_input("number", fo.int64)
    script = f'test "$1" != 1 && echo well && exit; {HANGS}'
    words = ["sh", "-c", script, str(file), fo.In("number")]
    task = fo.command(words, inputs={"number": fo.int64}, stdout="said")
    before = fuse_servers()
    with (
        open_slice(fo.flow_output(task(number)), here(), SliceOptions(env=env, cores=1)) as held,
        killed_once(file.exists, before),
    ):
        results = list(held.map(range(4), on_error="return"))
    assert [result.ok for result in results] == [True, False, True, True]


def elsewhere(tmp_path: Path) -> EnvironmentsElsewhere:
    """As of a node of a cluster, which is this machine."""
    tmp_path.chmod(0o755)
    made = lambda: tmp_path  # noqa: E731
    return EnvironmentsElsewhere(here(), made, SharedCopies(made), "")


def test_the_agent_of_a_node_mounts_the_image_anew(images: Images, tmp_path: Path) -> None:
    before = fuse_servers()
    with elsewhere(tmp_path).ready(bwrap(images.squashfs)) as ready:
        for _ in range(2):
            killed(before)
            assert comes(lambda: here().run(true(ready.env)).ok)
            assert len(fuse_servers() - before) == 1


def test_what_ran_in_the_image_of_a_node_names_it_where_the_image_was_gone_meanwhile(
    images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, node, file = fuse_servers(), elsewhere(tmp_path), tmp_path / "x"
    monkeypatch.setattr(here()._session.folders, "lost_image", node.lost_image)
    monkeypatch.setattr(here()._session.folders, "elsewhere", True)
    with node.ready(bwrap(images.squashfs)) as ready:
        script = 'echo x > "$0"; while /bin/true; do :; done; exit 3'
        words = ("/bin/sh", "-c", script, str(file))
        running = here().start(Launch(argv=words, env=ready.env, variables=INSIDE))
        assert comes(file.exists)
        killed(before)
        end = running.wait(PATIENCE_SECONDS).end
        assert isinstance(end, RuntimeFailed), running.wait()
        assert f"image on node {here().name}, has ended, and so '/bin/sh' lost" in end.reason
        assert "\n" not in end.reason
        assert comes(lambda: here().run(true(ready.env)).ok)
        failed = Launch(argv=("/bin/false",), env=ready.env, variables=INSIDE)
        assert comes(lambda: here().run(failed).end == Exited(1)), "the image is shown again"


def test_ranks_on_a_node_join_a_container_of_the_image_that_is_mounted_anew(
    images: Images, tmp_path: Path
) -> None:
    before = fuse_servers()
    node = elsewhere(tmp_path)
    with node.ready(bwrap(images.squashfs)) as ready:
        first, _ = node.container(ready.env)
        assert node.container(ready.env)[0] == first
        killed(before)
        assert comes(lambda: here().run(true(ready.env)).ok)
        assert comes(lambda: node.container(ready.env)[0] != first)
        pid = node.container(ready.env)[0].split()[0]
        assert Path(f"/proc/{pid}/root/bin/busybox").exists()


@fo.task(retries=1)
def hangs_first(file: fo.str_) -> fo.str_:
    if (there := Path(file)).exists():
        return "well"
    there.touch()
    while True:
        pass


def test_the_second_attempt_of_a_python_task_has_its_image(debian: Path, tmp_path: Path) -> None:
    flow, file = fo.flow_output(hangs_first(fo.flow_input("file", fo.str_))), tmp_path / "x"
    before = fuse_servers()
    with (
        open_slice(flow, here(), SliceOptions(env=bwrap(debian), cores=1)) as held,
        killed_once(file.exists, before),
    ):
        assert held.run(str(file)) == ["well"]


@pytest.mark.parametrize("runtime", BY_FUSE)
def test_the_second_attempt_of_ranks_has_its_image(
    debian: Path, runtime: str, tmp_path: Path
) -> None:
    mpirun = shutil.which("mpirun.openmpi") or pytest.skip("no mpirun.openmpi on this machine")
    env, file = Environment(image=here().image_at(debian), runtime=runtime), tmp_path / "x"
    ready_or_skip(env).close()
    command = fo.command(
        ["sh", "-c", HANGS_FIRST, str(file)],
        stdout="said",
        retries=1,
        needs=fo.Needs(ranks=2),
    )
    task = fo.gang(command, mpi="openmpi", mpirun=mpirun)
    before = fuse_servers()
    with (
        open_slice(fo.flow_output(task()), here(), SliceOptions(env=env)) as held,
        killed_once(file.exists, before),
    ):
        assert held.run() == ["well\nwell\n"]
