"""What an image costs on a node: its bytes are read once, and one agent says all of it."""

import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Unpack

import pytest

from flowos.drivers import RUNTIMES
from flowos.engine import PreparedLaunch, Ready, here
from flowos.engine.environments import _agent, _images
from flowos.engine.environments._digest import file_digest
from flowos.engine.environments._elsewhere import EnvironmentsElsewhere
from flowos.engine.environments._runtimes import Runtimes
from flowos.engine.environments._shared_copies import SharedCopies
from flowos.engine.launch._prepared import LaunchKeywords
from flowos.engine.launch._session import LaunchSession
from flowos.engine.local._here import Here
from flowos.model import Environment, Facts, Launch, MeasurementRequest, to_plain
from flowos.operations.measure._environments import bare_on, places
from flowos.probes.facts import read_facts

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def test_an_image_that_is_copied_to_scratch_is_hashed_once_on_its_way(
    squashfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []

    def counted(path: Path) -> str:
        hashed.append(path)
        return file_digest(path)

    env = Environment(image=here().image_at(squashfs), runtime="auto")
    monkeypatch.setattr(_images, "file_digest", counted)
    asked = {"env": to_plain(env), "copy": "", "scratch": str(tmp_path / "scratch")}
    for start in (1, 2):
        runtimes = Runtimes(LaunchSession())
        with ExitStack() as held:
            held.callback(runtimes.session.folders.remove)
            answer = _agent._ready(held, runtimes, **asked)
        assert sum("is copied once to" in note for note in answer["notes"]) == (start == 1)
        assert len(hashed) == start - 1, "at first while it is copied, later where it lies"


class NodeElsewhere(Here):
    """This machine as a node of a cluster, where what makes an image ready is started."""

    def __init__(self, folder: Path) -> None:
        super().__init__("n1")
        folder.chmod(0o755)
        self.started: list[str] = []
        made = lambda: folder  # noqa: E731
        self._elsewhere = EnvironmentsElsewhere(self, made, SharedCopies(made), "")

    def ready(self, env: Environment, *, seen: bool = False) -> Ready:
        return super().ready(env, seen=seen) if env.image is None else self._elsewhere.ready(env)

    def facts(self) -> Facts:
        return self._elsewhere.facts()

    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        self.started.append(launch.argv[0])
        return super().prepare(launch, **options)

    def close(self) -> None:
        self._runtimes.session.folders.remove()


def test_an_environment_to_measure_in_is_described_by_the_agent_that_made_it_ready(
    squashfs: Path, tmp_path: Path
) -> None:
    env = Environment(image=here().image_at(squashfs), runtime="auto")
    with closing(NodeElsewhere(tmp_path)) as node:
        bare = bare_on(node, read_facts({}), tmp_path, tmp_path)
        with places([("small", env)], bare, MeasurementRequest(), None) as (place,):
            assert node.started == [sys.executable]
    known = here().facts().tool(RUNTIMES[place.env.runtime].traits.program or place.env.runtime)
    assert known
    assert place.entered.version == known.version != ""
