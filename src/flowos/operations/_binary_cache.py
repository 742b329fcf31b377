"""Programs for several environments: compiled once, put where all of them see them."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from flowos.operations._bundle import Bundle, bundle
from flowos.operations._sampling import run_flow
from flowos.probes import Build, flow_of_builds


class BinaryCache:
    """A folder of bundles and binaries."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built: dict[str, Path] = {}
        self._bundles: dict[str, Bundle] = {}

    def build(self, builds: Iterable[Build]) -> None:
        """Compile on the host, those that were compiled before from the cache. FlowosError."""
        new = {b.key: b for b in builds if b.key not in self._built}
        flow = flow_of_builds(new.values())
        if flow is not None:
            self._built.update(zip(new, map(Path, run_flow(flow)), strict=True))

    def built(self, build: Build) -> Path:
        self.build([build])
        return self._built[build.key]

    def bundled(self, program: Path, also: tuple[Path, ...] = ()) -> Bundle:
        """The same bundle for the same files. MeasureError."""
        key = "\0".join(map(str, (program, *also)))
        if key not in self._bundles:
            folder = self._folder / f"bundle-{len(self._bundles)}"
            self._bundles[key] = bundle(program, folder, also)
        return self._bundles[key]

    def alone(self, program: Path) -> Path:
        """A copy without libraries, for a program that is to take those of the environment."""
        copy = self._folder / f"{program.parent.name}-{program.name}"
        if not copy.exists():
            shutil.copy2(program, copy)
        return copy
