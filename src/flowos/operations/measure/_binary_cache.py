"""Programs of a run: compiled once, for the node or in an image, into a folder that all see."""

import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path, PurePath
from threading import Lock

from flowos._dataclasses import replace
from flowos.engine import Event, OnStage, processor_lines
from flowos.model import FlowosError, OnProgress, Progress
from flowos.operations._slice import slice_
from flowos.operations.measure._bundle import Bundle, bundle
from flowos.operations.measure._environments import PreparedEnvironment
from flowos.operations.measure._own_binary import compile_in
from flowos.probes import Build, flow_of_builds, program_of_task

_SCRIPTS = (("probes/programs", "*.py"), ("kernels", "array_kernels.py"))
"""Folders of the package, and what of them our Python programs are and use."""


class BinaryCache:
    """Bundles and binaries in the folder of `bare`, for its node.

    What this machine compiles is kept for later runs, which another node is not asked for.
    """

    def __init__(self, bare: PreparedEnvironment) -> None:
        self._bare, self._folder = bare, bare.folder
        self._built: dict[str, Path] = {}
        self._failed: dict[str, FlowosError] = {}
        self._bundles: dict[str, Bundle] = {}

    def build_ahead(self, builds: Iterable[Build], on_progress: OnProgress) -> None:
        """Compile them now, so that no compiler runs later; errors are raised by `built`."""
        if self._bare.node.is_here:
            with suppress(FlowosError, OSError):
                self._build_here({build.key: build for build in builds}, on_progress)
            return
        several = list(builds)
        for number, build in enumerate(several, 1):
            name = PurePath(build.source).stem
            on_progress(Progress(doing=f"building {number} of {len(several)}: {name}"))
            with suppress(FlowosError, OSError):
                self.built(build)

    def _build_here(
        self, builds: Mapping[str, Build], on_progress: OnProgress | None = None
    ) -> None:
        """Compile on the host, or take from the cache. Raises FlowosError if that fails.

        builds: by their keys, which are others once someone edits a source meanwhile.
        """
        processor = processor_lines()
        new = {
            key: replace(build, processor=processor)
            for key, build in builds.items()
            if key not in self._built
        }
        flow = flow_of_builds(new.values())
        if flow is not None:
            on_stage = on_progress and _build_progress(len(new), on_progress)
            with slice_(flow, on_stage=on_stage) as held:
                self._built.update(
                    (key, Path(str(file))) for key, file in zip(new, held.run(), strict=True)
                )

    def built(self, build: Build) -> Path:
        """The binary. Raises FlowosError if it cannot be compiled, which is tried once."""
        if not self._bare.node.is_here:
            return self._compiled_in(self._bare, build)
        key = build.key
        self._try_once(key, lambda: self._build_here({key: build}))
        return self._built[key]

    def built_in(self, place: PreparedEnvironment, build: Build) -> Path:
        """The binary as the environment's own compiler makes it. Raises as `built`."""
        return self.built(build) if place.env.image is None else self._compiled_in(place, build)

    def _compiled_in(self, place: PreparedEnvironment, build: Build) -> Path:
        made = place.folder / build.key
        self._try_once(str(made), lambda: compile_in(place, build, made))
        return made

    def _try_once(self, name: str, act: Callable[[], object]) -> None:
        """Do it, unless it has failed before. Raises the same FlowosError if it has."""
        if error := self._failed.get(name):
            raise error
        try:
            act()
        except FlowosError as error:
            self._failed[name] = error
            raise

    def bundled(self, program: Path, also: tuple[Path, ...] = ()) -> Bundle:
        """The bundle of these files, made once. Raises MeasureError if a library is missing."""
        key = "\0".join(map(str, (program, *also)))
        if key not in self._bundles:
            folder = self._folder / f"bundle-{len(self._bundles)}"
            self._bundles[key] = bundle(self._bare.node, program, folder, also)
        return self._bundles[key]

    def alone(self, program: Path) -> Path:
        """A copy without libraries, for a program that uses those of the environment."""
        copy = self._folder / f"{program.parent.name}-{program.name}"
        if not copy.exists():
            shutil.copy2(program, copy)
        return copy

    def script(self, name: str) -> Path:
        """A copy of a Python program of ours and its siblings, where all environments see it."""
        copies = self._folder / "scripts"
        if not copies.exists():
            copies.mkdir()
            for room, pattern in _SCRIPTS:
                with as_file(files("flowos").joinpath(room)) as folder:
                    for script in folder.rglob(pattern):
                        copy = copies / script.relative_to(folder)
                        copy.parent.mkdir(exist_ok=True)
                        shutil.copy2(script, copy)
        return copies / name


def _build_progress(programs: int, on_progress: OnProgress) -> OnStage:
    """Says how many programs are begun, and of which one a task is started."""
    begun: set[str] = set()
    said: set[str] = set()
    lock = Lock()

    def on_stage(event: Event) -> None:
        if event.what != "started":
            return
        program = program_of_task(event.label)
        with lock:
            begun.add(program)
            doing = f"building {len(begun)} of {programs}: {program.rpartition('-')[0]}"
            if doing not in said:
                said.add(doing)
                on_progress(Progress(doing=doing))

    return on_stage
