"""Environments on another node, made ready there by `_agent`, which is one launch on that node."""

import json
import math
import shutil
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Unpack

import flowos
from flowos._dataclasses import dataclass, field, replace
from flowos.drivers import BOOTING, RUNTIMES, MpiSaid, Runtime, path_inside
from flowos.engine._ready import Ready
from flowos.engine.environments import _agent
from flowos.engine.environments._image_server import end
from flowos.engine.environments._images import image_at
from flowos.engine.environments._shared_copies import SharedCopies
from flowos.engine.launch._capture import Capture, LineCapture
from flowos.engine.launch._prepared import (
    MAX_OUTPUT_BYTES,
    LaunchKeywords,
    PreparedLaunch,
)
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._same_flowos import mend_words, sizes_here, unlike_words
from flowos.model import (
    BARE,
    Argv,
    Environment,
    EnvironmentRefused,
    Facts,
    Image,
    Launch,
    LaunchFailed,
    NotStarted,
    Pairs,
    from_plain,
    to_plain,
)

_TICK_SECONDS = 0.01
_LOADED = ("drivers", "drivers/runtimes", "engine/environments", "engine/launch")
"""Folders of FlowOS from which the agent loads something."""
_START = "import sys; sys.path.insert(0, sys.argv[1]); from {} import main; main(sys.argv[2])"


class StartsLaunches(Protocol):
    """What is asked here of a node."""

    @property
    def name(self) -> str: ...
    def variables(self, env: Environment) -> Pairs: ...
    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch: ...


@dataclass(frozen=True, slots=True)
class _Container:
    """Which ranks join. enter: what that file says of it. ends: of `_Said`, as it was made."""

    enter: str
    holder: RunningProcess
    ends: int


class _Said:
    """The lines of an agent. After the answer they tell of what shows the image.

    ends: how often it has ended. away_until: when the image was shown again; infinite until then.
    """

    def __init__(self) -> None:
        self.answer = ""
        self.ends, self.away_until = 0, 0.0

    def add(self, line: str) -> None:
        if not self.answer:
            self.answer = line
        elif "ended" in line:
            self.ends, self.away_until = self.ends + 1, math.inf
        else:
            self.away_until = time.monotonic()


@dataclass(slots=True)
class _Opened:
    """An environment that is ready on the node.

    said: by its agent. users: how many have not closed it: of this node, and of others for their
    gangs. mpis: by PATH. neighbours: the same on other nodes, by name.
    """

    asked: Environment
    env: Environment
    runtime: Runtime
    notes: tuple[str, ...]
    facts: Facts
    holder: RunningProcess
    said: _Said
    users: list[int] = field(default_factory=lambda: [0, 0])
    container: _Container | None = None
    mpis: dict[str, tuple[MpiSaid, ...]] = field(default_factory=dict)
    neighbours: "dict[str, _Neighbour]" = field(default_factory=dict)

    def is_of(self, env: Environment) -> bool:
        """Each runtime has the image shown for itself. A launch may have binds of its own."""
        return (self.env.image, self.env.runtime) == (env.image, env.runtime)


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """An environment that is ready on another node, and those of that node."""

    ready: Ready
    of: "EnvironmentsElsewhere"


class EnvironmentsElsewhere:
    """Those of one node. Methods may be called from any thread.

    folder: makes the one that it shares with this machine, which every environment shows.
    scratch: a folder of the node's own storage for images, or "".
    """

    def __init__(
        self, node: StartsLaunches, folder: Callable[[], Path], copies: SharedCopies, scratch: str
    ) -> None:
        self._node, self._folder, self._copies, self._scratch = node, folder, copies, scratch
        self._lock = threading.Lock()
        self._opened: dict[Environment, _Opened] = {}

    def ready(self, env: Environment, *, neighbour: bool = False) -> Ready:
        """See `Node.ready`; one that is ready already is shared.

        neighbour: it is for a gang of another node.
        """
        if env.runtime in BOOTING:
            raise EnvironmentRefused(
                f"environment {env.label}: it boots on this machine alone, not on node "
                f"{self._node.name}; use another runtime there"
            )
        with self._lock:
            opened = self._opened.get(env)
            if opened is None or opened.holder.done:
                opened = self._opened[env] = self._open(env)
            opened.users[neighbour] += 1
        undo = partial(self._leave, opened, neighbour)
        return Ready(opened.env, opened.notes, undo, opened.facts)

    def entering(self, env: Environment) -> Runtime:
        """What enters a ready environment. Raises LaunchFailed if it is not ready (any more)."""
        return self._of(env).runtime

    def lost_image(self, launch: Launch, since: float) -> str:
        """See `RunFolders`. A launch that ended badly meanwhile has missed it."""
        if launch.env.image is None:
            return ""
        names = launch.nodes or (self._node.name,)
        return next((name for name in names if self._was_away(launch.env, name, since)), "")

    def _was_away(self, env: Environment, node: str, since: float) -> bool:
        """Whether this node, or a neighbour, has not shown the image all the time since then."""
        alike = [opened for opened in tuple(self._opened.values()) if opened.is_of(env)]
        if node == self._node.name:
            return any(opened.said.away_until > since for opened in alike)
        there = [opened.neighbours[node] for opened in alike if node in opened.neighbours]
        return any(each.of._was_away(each.ready.env, node, since) for each in there)

    def facts(self) -> Facts:
        return from_plain(Facts, self._asked("facts")["facts"])

    def gpu_devices(self) -> tuple[str, ...]:
        return tuple(self._asked("devices")["devices"])

    def asked(self, env: Environment) -> Environment:
        """What was asked for as this ready environment."""
        return self._of(env).asked

    def on_neighbour(
        self, env: Environment, name: str, other: "EnvironmentsElsewhere"
    ) -> Environment:
        """A ready environment on another node of this name, where it stays as long as here."""
        opened = self._of(env)
        if name not in opened.neighbours:
            ready = other.ready(opened.asked, neighbour=True)
            with self._lock:
                kept = opened.neighbours.setdefault(name, _Neighbour(ready, other))
            if kept.ready is not ready:
                ready.close()
        there = opened.neighbours[name].ready.env
        return replace(there, binds=(*there.binds, *env.binds[len(opened.env.binds) :]))

    def mpis_inside(self, env: Environment, path: str) -> tuple[MpiSaid, ...]:
        """The MPIs of a ready environment. path: PATH of the ranks."""
        opened = self._of(env)
        with self._lock:
            if path not in opened.mpis:
                found = self._asked("mpis", env=to_plain(opened.env), path=path)["mpis"]
                opened.mpis[path] = tuple(MpiSaid(*words) for words in found)
            return opened.mpis[path]

    def container(self, env: Environment) -> tuple[str, tuple[RunningProcess, ...]]:
        """What file `enter` says of one for ranks, and what holds it for this launch alone.

        Launches without binds of their own share one, which stays.
        """
        opened = self._of(env)
        if env != opened.env:
            enter, holder = self._hold(env)
            return enter, (holder,)
        with self._lock:
            held, ends = opened.container, opened.said.ends
            if held is not None and (held.holder.done or held.ends < ends):
                end(held.holder)
                held = opened.container = None
            if held is None:
                held = opened.container = _Container(*self._hold(env), ends)
            return held.enter, ()

    def _hold(self, env: Environment) -> tuple[str, RunningProcess]:
        answer, holder, _ = self._ask("hold", env=to_plain(env))
        return answer["enter"], holder

    def _of(self, env: Environment) -> _Opened:
        for opened in tuple(self._opened.values()):
            if opened.is_of(env):
                if opened.holder.done:
                    break
                return opened
        raise LaunchFailed(f"node {self._node.name}: what showed {env.label} there has ended")

    def _leave(self, opened: _Opened, neighbour: bool) -> None:
        with self._lock:
            opened.users[neighbour] -= 1
            others = () if opened.users[False] else tuple(opened.neighbours.values())
            if others:
                opened.neighbours = {}
            over = not any(opened.users)
            if over and self._opened.get(opened.asked) is opened:
                del self._opened[opened.asked]
        for each in others:
            each.ready.close()
        if over:
            if opened.container is not None:
                end(opened.container.holder)
            end(opened.holder)

    def _open(self, asked: Environment) -> _Opened:
        assert asked.image is not None
        whole = asked.image if asked.image.digest else image_at(Path(asked.image.source))
        env = replace(asked, image=whole)
        shown = self._folder()
        if path_inside(shown, env.binds) != shown:
            env = replace(env, binds=(*env.binds, (str(shown), str(shown))))
        asks = partial(self._ask, "ready", env=to_plain(env), scratch=self._scratch)
        answer, holder, said = asks(copy="")
        if answer.get("unseen"):
            answer, holder, said = asks(copy=str(self._copied(whole)))
        ready = from_plain(Environment, answer["env"])
        facts = from_plain(Facts, answer["facts"])
        way = RUNTIMES[ready.runtime].variants(facts)[answer["way"]]
        notes = tuple(f"node {self._node.name}: {note}" for note in answer["notes"])
        return _Opened(asked, ready, way, notes, facts, holder, said)

    def _copied(self, image: Image) -> Path:
        """For a node that does not see it. Raises EnvironmentRefused if it cannot be copied."""
        if image.form == "folder":
            raise EnvironmentRefused(
                f"image {image.source}: node {self._node.name} does not see this folder; make it a "
                "squashfs (flowos image import), which is copied there"
            )

        def copy(to: Path) -> None:
            try:
                shutil.copyfile(image.source, to)
            except OSError as error:
                to.unlink(missing_ok=True)
                raise EnvironmentRefused(
                    f"image {image.source}: cannot be copied to shared folder {to.parent}: "
                    f"{error.strerror}"
                ) from error

        return self._copies.once(self._node.name, image.digest.rpartition(":")[2], copy)

    def _asked(self, what: str, **more: Any) -> dict[str, Any]:
        answer, holder, _ = self._ask(what, **more)
        holder.wait()
        return answer

    def _ask(self, what: str, **more: Any) -> tuple[dict[str, Any], RunningProcess, _Said]:
        """What the node answers, the process that does, and what it says. EnvironmentRefused.

        Later lines are added as they come.
        """
        said = _Said()
        prepared = self._node.prepare(
            Launch(argv=_words(), variables=self._node.variables(BARE)),
            captures=(LineCapture(MAX_OUTPUT_BYTES, said.add), Capture(MAX_OUTPUT_BYTES)),
        )
        question = prepared.folder / "question"
        question.write_text(json.dumps({"what": what, "flowos": sizes_here(*_LOADED), **more}))
        words = (*prepared.launch.argv, str(question))
        running = replace(prepared, launch=replace(prepared.launch, argv=words)).start()
        try:
            while not said.answer and not running.done:
                time.sleep(_TICK_SECONDS)
            answer = json.loads(said.answer or "null") or {"refused": _why_silent(running)}
            if refusal := _refusal(answer):
                raise EnvironmentRefused(f"node {self._node.name}: {refusal}")
        except BaseException:
            end(running)
            raise
        return answer, running, said


def _refusal(answer: dict[str, Any]) -> str:
    if "unlike" not in answer:
        return str(answer.get("refused", ""))
    theirs, file = answer["unlike"]
    there = (theirs, file)
    return f"it has {unlike_words(there)}: {mend_words(there, sizes_here(*_LOADED))}"


def _words() -> Argv:
    """By this Python, which the node sees too, and FlowOS as it lies here."""
    home = Path(str(flowos.__file__)).parents[1]
    return (sys.executable, "-I", "-c", _START.format(_agent.__name__), str(home))


def _why_silent(running: RunningProcess) -> str:
    outcome = running.wait()
    last = outcome.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    why = last or (end.reason if isinstance(end := outcome.end, NotStarted) else end)
    return f"images need this Python and FlowOS there: {why}"
