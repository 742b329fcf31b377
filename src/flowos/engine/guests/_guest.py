"""A guest: another framework's own cluster on the nodes of a slice, until it is freed."""

import os
import re
import secrets
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

from flowos._collected import when_collected
from flowos._dataclasses import dataclass, replace
from flowos.drivers import Connection, GuestDriver, GuestPlan, GuestWords, guest_named
from flowos.engine._later import Later
from flowos.engine._node import Node
from flowos.engine._ready import Ready
from flowos.engine.flow._freed import Freed
from flowos.engine.flow._inside import Surroundings
from flowos.engine.guests import guest_program
from flowos.engine.launch._capture import LineCapture
from flowos.engine.launch._end_reasons import how_ended
from flowos.engine.launch._running import RunningProcess
from flowos.engine.local._here import here
from flowos.engine.workers._listeners import certificate
from flowos.engine.workers.stream_worker import context_of
from flowos.model import (
    BARE,
    Environment,
    FlowosError,
    Killed,
    Launch,
    LaunchFailed,
    NotStarted,
    SliceRefused,
)

if TYPE_CHECKING:
    from flowos.engine.guests._relay import Relay

START_SECONDS = 600.0
"""On a busy machine a Ray takes minutes, and several tries."""

_AGAIN_SECONDS = 90.0
"""With less left than this no other try begins."""
_TICK_SECONDS = 0.02
_KEPT_BYTES, _KEPT_LINES = 1 << 16, 12
_END_SECONDS = 10.0
_FOLDER = re.compile(rf"{re.escape(guest_program.FOLDER_IS)}(/tmp/flowos-guest-[a-z0-9_]+)")


class Guest(Freed):
    """Made by `slice.guest(...)`; free it, or use it in a `with`.

    address: what a client connects to. options: keywords of its call. variables: of its process;
    inside the `with` they are this process's.
    """

    def __init__(self, of: object, programs: "_Programs", connection: Connection) -> None:
        """of: the slice, which lives as long as its guest."""
        self._of, self._programs = of, programs
        self.address, self.options = connection.address, dict(connection.options)
        self.variables = dict(connection.variables)
        self._before: dict[str, str | None] = {}
        self._why = ""
        self._ending = when_collected(self, programs.end)

    @property
    def folders(self) -> tuple[str, ...]:
        """On their nodes, those of its programs, the head's first: gone when it ends."""
        return tuple(program.folder for program in self._programs.started)

    @property
    def ended(self) -> frozenset[str]:
        """The folders of its programs that have ended."""
        started = self._programs.started
        return frozenset(program.folder for program in started if program.running.done)

    def wait(self, seconds: float | None = None) -> str:
        """How its head ended, "" if well; TimeoutError if it runs on after `seconds`."""
        outcome = self._programs.started[0].running.wait(seconds)
        return self._why or ("" if outcome.ok else how_ended(outcome))

    def has_head_on(self, node: Node) -> bool:
        return self._programs.started[0].around.node is node

    def end(self, why: str) -> None:
        """As it has no nodes any more, by any thread. why: what `wait` returns then."""
        self._why = self._why or why
        if self._ending.detach():
            self._programs.end()

    def free(self) -> None:
        """End it. Twice is once."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if self._before:
            _reload_ray_config()
        self._before = {}
        if self._ending.detach():
            self._programs.end()

    def __enter__(self) -> Self:
        self._before = {name: os.environ.get(name) for name in self.variables}
        os.environ.update(self.variables)
        _reload_ray_config()
        return self

    def __repr__(self) -> str:
        return f"<{self._programs.name} at {self.address.partition('?')[0]}>"


class _Program:
    """One that runs on a node, and what it printed last. answer: what its reader found, or ""."""

    def __init__(self, around: Surroundings, launch: Launch, reader: Callable[[str], str]) -> None:
        self.around, self.launch, self.reader = around, launch, reader
        self.answer = self.folder = ""
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)
        self._answered = threading.Event()
        out, err = (LineCapture(_KEPT_BYTES, hear) for hear in (self._hear_out, self._hear))
        self.running: RunningProcess = around.node.start(launch, captures=(out, err))

    def _hear_out(self, line: str) -> None:
        """Our own line is the first of its kind; the folder is removed, so a later one is text."""
        if not self.folder and (found := _FOLDER.fullmatch(line)):
            self.folder = found[1]
        else:
            self._hear(line)

    def _hear(self, line: str) -> None:
        if line.strip():
            self._last.append(line)
            self.answer = self.answer or self.reader(line)
            if self.answer:
                self._answered.set()

    def awaited(self, until: float) -> str:
        """Its answer. Raises LaunchFailed with what it printed if there is none by then."""
        while not self._answered.wait(_TICK_SECONDS):
            if self.running.done:
                raise LaunchFailed(self._complaint(self._end()))
            if time.monotonic() > until:
                raise LaunchFailed(self._complaint("it does not answer"))
        return self.answer

    def _end(self) -> str:
        outcome, image = self.running.wait(), self.around.named
        if image and isinstance(outcome.end, NotStarted):
            return f"image {image}: guests need a python3 in it: {outcome.end.reason}"
        return how_ended(outcome)

    def _complaint(self, why: str) -> str:
        said = "; it said last:" if self._last else ""
        return "\n  ".join((f"{why} on node {self.around.node.name}{said}", *self._last))

    def end(self) -> None:
        """After `stop`: wait, and remove what one that was killed has left."""
        try:
            ended = self.running.wait(_END_SECONDS)
        except TimeoutError:
            return
        if self.folder and isinstance(ended.end, Killed) and ended.end.by == "request":
            self.around.node.run(Launch(argv=("rm", "-rf", "--", self.folder)))


class _Programs:
    """All of a guest: the head first. files: of the guest, removed at its end.

    undo: what follows then, as images that are given back.
    """

    def __init__(self, name: str, files: Path) -> None:
        self.name, self.files, self.undo = name, files, ExitStack()
        self.started: list[_Program] = []
        self._relay: Relay | None = None

    def begin_anew(self, ended: _Program) -> _Program:
        """In its place."""
        ended.end()
        again = _Program(ended.around, ended.launch, ended.reader)
        self.started[self.started.index(ended)] = again
        return again

    def relayed(self, url: str, pem: str) -> str:
        """The URL on this machine of a page elsewhere."""
        from flowos.engine.guests._relay import Relay

        self._relay = Relay(url, context_of(pem, server=False))
        return self._relay.url

    def end(self) -> None:
        if self._relay is not None:
            self._relay.close()
        self.stop()
        self.undo.close()
        shutil.rmtree(self.files, ignore_errors=True)

    def stop(self) -> None:
        """Workers first: they take their leave of the head."""
        for programs in (self.started[1:], self.started[:1]):
            for program in programs:
                program.running.stop()
            for program in programs:
                program.end()


@dataclass(frozen=True, kw_only=True)
class _Cluster:
    """A guest to be started. places: the nodes of the slice, each in its environment."""

    driver: GuestDriver
    places: Sequence[Surroundings]
    plan: GuestPlan

    def started(self, programs: _Programs, until: float) -> Connection:
        """Raises LaunchFailed if one of its programs does not answer by then."""
        plan, head, workers = self.plan, self.places[0], self.places
        if self.driver.head_is_ours:
            head, workers = Surroundings(node=here()), self.places[plan.head_cores > 0 :]
            plan = replace(plan, python=sys.executable)
        words = self.driver.head(plan)
        address = self._answer(
            programs, self._begun(programs, head, words, self.driver.read_address), until
        )
        joining = self.driver.worker(self.plan, address)
        joined = [
            self._begun(programs, around, joining, self._has_joined)
            for around in workers
            if joining is not None
        ]
        for worker in joined:
            self._answer(programs, worker, until)
        if address.startswith("https:"):
            address = programs.relayed(address, str(self.plan.pem))
        return self.driver.connection(self.plan, address)

    def _answer(self, programs: _Programs, program: _Program, until: float) -> str:
        """One that did not wait long enough for itself, as on a busy machine, is begun anew: of
        several one after the other, so that each has more of the machine."""
        while True:
            try:
                return program.awaited(until)
            except LaunchFailed as error:
                hasty = self.driver.hasty and self.driver.hasty in str(error)
                if not hasty or time.monotonic() > until - _AGAIN_SECONDS:
                    raise
            program = programs.begin_anew(program)

    def _has_joined(self, line: str) -> str:
        return "joined" * self.driver.has_joined(line)

    def _begun(
        self,
        programs: _Programs,
        around: Surroundings,
        words: GuestWords,
        reader: Callable[[str], str],
    ) -> _Program:
        node = around.node
        file = self.plan.files / Path(guest_program.__file__).name
        seen_from = self.plan.ours if node.is_here else node.our_address
        variables = (*words.variables, ("PYTHONUNBUFFERED", "1"))
        launch = Launch(
            argv=(_python(around), str(file), seen_from, *words.argv),
            env=around.env,
            variables=node.variables(around.env, variables),
            cwd=around.cwd,
        )
        program = _Program(around, launch, reader)
        programs.started.append(program)
        return program


def start_guest(
    of: object, name: str, nodes: Sequence[Node], *, cores: int | None, env: Environment = BARE
) -> Guest:
    """A guest on these nodes, in this environment, once it answers.

    of: None if only this program is its client. cores: of each node; by default all.

    Raises SliceRefused if it is not installed, or does not start; EnvironmentRefused.
    """
    driver = _driver(name, env)
    files = _made(nodes[0].folder() / f"guest-{secrets.token_hex(4)}")
    programs = _Programs(name, files)
    places: list[Surroundings] = []
    try:
        places = _entered(driver, nodes, env, programs.undo)
        plan = replace(_plan(driver, places, cores, files), logs=of is not None)
        _write(files, driver.files(plan))
        cluster = _Cluster(driver=driver, places=places, plan=plan)
        connection = cluster.started(programs, time.monotonic() + START_SECONDS)
    except BaseException as error:
        programs.end()
        if isinstance(error, LaunchFailed):
            raise SliceRefused(_words(driver, places, str(error))) from None
        raise
    return Guest(of, programs, connection)


def _entered(
    driver: GuestDriver, nodes: Sequence[Node], env: Environment, undo: ExitStack
) -> list[Surroundings]:
    """The nodes with the environment ready, on all at once. Raises as `Node.ready` does."""
    named = env.image.source.name if env.image else ""
    later = [Later(partial(node.ready, env)) for node in nodes]
    undo.callback(_give_back, later)
    places = [
        Surroundings(node=node, env=each.result().env, named=named)
        for node, each in zip(nodes, later, strict=True)
    ]
    if booted := next((each.env.label for each in places if each.env.boot), ""):
        raise SliceRefused(
            f"guest {driver.name}: {booted} boots a machine of its own, with no way to it; use "
            "another runtime"
        )
    return places


def _give_back(later: Sequence[Later[Ready]]) -> None:
    for each in later:
        with suppress(FlowosError):  # it is not ready, which was said
            each.result().close()


def _plan(
    driver: GuestDriver, places: Sequence[Surroundings], cores: int | None, files: Path
) -> GuestPlan:
    first = places[0]
    has, ours = first.node.resources(), all(each.node.is_here for each in places)
    cores = cores or len(has.cpus)
    return GuestPlan(
        python=_python(first),
        cores=cores,
        memory_bytes=has.memory_bytes,
        head_cores=cores if ours and not first.in_image else 0,
        secret=secrets.token_hex(32),
        files=files,
        pem=certificate(files) if driver.certified else files / "none",
        ours=first.node.our_address,
        here=ours,
        cwd=first.cwd,
    )


def _python(around: Surroundings) -> str:
    return "python3" if around.in_image else sys.executable


def _reload_ray_config() -> None:
    """A Ray that is imported has read its variables once: it has no public word for "again"."""
    raylet = sys.modules.get("ray._raylet")
    if raylet is not None:
        with suppress(AttributeError):  # another version
            raylet.Config.initialize("")
            raylet.AuthenticationTokenLoader.instance().reset_cache()


def _driver(name: str, env: Environment) -> GuestDriver:
    driver = guest_named(name)
    if env.image is not None and not driver.head_is_ours:
        return driver
    for module in driver.modules:
        if find_spec(module) is None:
            raise SliceRefused(f"guest {name}: it is not installed here: {driver.remedy}")
    return driver


def _words(driver: GuestDriver, places: Sequence[Surroundings], why: str) -> str:
    named = next((each.named for each in places if each.in_image), "")
    where = f"in image {named}" if named else "on the node"
    for said, remedy in driver.complaints:
        if said in why:
            return f"guest {driver.name}: {said} {where}: {remedy}"
    if re.search(rf"No module named '?({'|'.join(driver.modules)})\b", why):
        return f"guest {driver.name}: it is not installed {where}: {driver.remedy}"
    return f"guest {driver.name}: it does not start: {why}"


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    shutil.copy(guest_program.__file__, folder)
    return folder


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.touch(0o600)
        path.write_text(content)
