"""What the launches of one node share: their run folders, flowos-init, the servers of images."""

import os
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Protocol

from flowos._dataclasses import dataclass
from flowos.engine.launch._init_program import find_init, link_or_copy
from flowos.engine.launch._run_folders import RunFolders
from flowos.engine.launch._running import RunningProcess
from flowos.model import Argv, Image


class Starter(Protocol):
    """Starts commands on another machine, where no launcher's command does."""

    def start(
        self, argv: Argv, variables: dict[str, str], folder: Path, streams: tuple[int, int, int]
    ) -> int:
        """Start it. Its standard input ends as that of ours does; outputs are sent on to ours.

        The descriptor of a pipe in which the code of its end stands, once it has ended. That its
        reader is gone kills it. Called in the watch's thread alone. Raises LaunchFailed if it
        cannot start.
        """
        ...


def _nothing() -> None:
    """Default callback."""


@dataclass(frozen=True)
class Elsewhere:
    """base: makes the folder, which this machine and the other see, of run folders.

    cpus: how many launches may use there. starter: None if the launcher's command starts them.
    on_launch: called once one has begun.
    """

    base: Callable[[], Path]
    cpus: int
    starter: Starter | None = None
    on_launch: Callable[[], None] = _nothing


class LaunchSession:
    """Methods may be called from any thread.

    servers: by the folder that they show, what gives the launches without which what enters it has
    no root. sources: by the path by which an image is entered, that of what was asked for.
    elsewhere: they run on another machine, which sees their run folders but no FIFO of ours.
    """

    def __init__(self, elsewhere: Elsewhere | None = None) -> None:
        self.elsewhere = elsewhere
        self.folders = RunFolders(elsewhere.base if elsewhere else None)
        self.servers: dict[PurePath, Callable[[], RunningProcess]] = {}
        self.sources: dict[PurePath, PurePath] = {}
        self._init: Path | None = None

    def folder(self) -> Path:
        """For files of this process: every rank and container of its launches sees it."""
        return self.folders.session()

    def run_folder(self) -> Path:
        """A fresh one."""
        return self.folders.make()

    def new_name(self) -> Path:
        """Of a run folder that is not there yet."""
        return self.folders.new_name()

    def cpu_count(self) -> int:
        """How many launches may use."""
        return self.elsewhere.cpus if self.elsewhere else len(os.sched_getaffinity(0))

    def init_program(self) -> Path:
        """A flowos-init that runs on the node. Raises LaunchFailed if there is none."""
        if self._init is None or not self._init.exists():  # caches may be emptied at any time
            self._init = find_init(self.folder)
        return self._init

    def init_on_node(self) -> Path:
        """Its name on the machine on which launches run."""
        return self.init_seen_inside() if self.elsewhere else self.init_program()

    def init_seen_inside(self) -> Path:
        """Another name for it that every environment of ours shows; made once."""
        place = self.folder() / "init"
        if not place.exists():
            link_or_copy(self.init_program(), place)
        return place

    def server_of(self, image: Image | None) -> RunningProcess | None:
        """What shows this image as a folder; an overlay names the folder that it lies over."""
        if image is None or not self.servers:
            return None
        link = Path(image.source).with_name("image")
        server = self.servers.get(image.source) or (
            self.servers.get(link.readlink()) if link.is_symlink() else None
        )
        return server() if server else None
