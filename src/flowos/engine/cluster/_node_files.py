"""Files of tasks on a node: used where they lie if the node sees them there, else copied.

Its worker also says what a node is and has, as far as kept results depend on it.

SHARED/DIGEST/NAME   a copy of what a task takes, read-only, made once for all nodes of a job
       out-*/NAME    of what a task made, on its way to its own path on this machine
"""

import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from flowos.engine._node import Node
from flowos.engine._processor import architecture_and_lines
from flowos.engine.cluster.files_there import (
    OTHER,
    copy_to,
    digest_of,
    digests_of,
    look_at,
    path_of_programs,
)
from flowos.engine.environments._shared_copies import SharedCopies
from flowos.engine.flow._folders import why_of
from flowos.engine.flow._inside import Surroundings
from flowos.engine.results._file_digest import copy_file, file_digest
from flowos.engine.results._value_digest import NoDigest
from flowos.engine.workers._process_lanes import ProcessLanes
from flowos.model import (
    LaunchFailed,
    TaskFailed,
    WorkerLost,
    flow_input,
    flow_output,
    str_,
    task,
)
from flowos.plan import compile_flow

_KEPT_BITS = 0o555
_path, _to = flow_input("path", str_), flow_input("to", str_)
_looks = task(look_at, name="look at a file")
_copies = task(copy_to, name="copy a file")
_digests = task(digests_of, name="digest files of a command")
_machine = task(architecture_and_lines, name="look at the processor")
_reads = task(digest_of, name="read a file")


class StagedFiles:
    """Those that were copied for nodes of one job. Methods may be called from any thread.

    root: the folder that this machine and all its nodes see.
    """

    def __init__(self, root: Path, copies: SharedCopies) -> None:
        self.root, self.copies = root, copies
        self._origins: dict[Path, Path] = {}
        self._notes: dict[Path, str] = {}

    def is_shared(self, path: Path) -> bool:
        """Whether all see it without being asked: it lies in the shared folder, links followed."""
        if not path.is_relative_to(self.root):
            return False
        real = path.resolve()
        return (
            real.is_relative_to(self.root.resolve())
            and real.exists()
            and real.stat().st_dev == self.root.stat().st_dev
        )

    def copy_for(self, path: Path, node: str) -> Path:
        """A copy that all see, for this node, which does not see the file.

        Raises TaskFailed if it cannot be read or copied.
        """

        def copy(folder: Path) -> None:
            folder.mkdir()
            try:
                copy_file(path, folder / path.name)
                _make_read_only(folder / path.name)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise

        try:
            digest = file_digest(path).hex()
            folder = self.copies.once(node, f"{digest}-{path.name}"[:255], copy)
        except NoDigest as error:
            raise TaskFailed(f"node {node} does not see {path}: {error}") from None
        except (OSError, shutil.Error) as error:
            raise TaskFailed(
                f"node {node} does not see {path}, and it cannot be copied to shared folder "
                f"{self.root}: {why_of(error)}"
            ) from error
        self._origins[folder / path.name] = path
        self._notes.setdefault(
            path, f"{path} is copied to {self.root}: node {node} does not see it"
        )
        return folder / path.name

    def origin(self, path: Path) -> Path | None:
        """What this is a copy of."""
        return self._origins.get(path)

    @property
    def notes(self) -> tuple[str, ...]:
        first, *more = tuple(self._notes.values()) or ("",)
        return (first + f"; so are {len(more)} more files" * bool(more),) if first else ()


class NodeFiles:
    """Those of one node, where a worker of ours looks at files. It is started when it has to.

    Methods may be called from any thread.
    """

    def __init__(self, node: Node, staged: StagedFiles) -> None:
        self._node, self._staged = node, staged
        asked = _looks(_path), _copies(_path, _to), _digests(_path, _to), _machine(), _reads(_path)
        self._schedule = compile_flow(flow_output(*asked), fuse="none")
        self._lock = threading.Lock()
        self._lanes: ProcessLanes | None = None
        self._seen: dict[tuple[Path, str], bool] = {}
        self._processor = ""

    def stage_in(self, path: Path, others: Sequence["NodeFiles"]) -> Path:
        """See `Node.stage_in`. others: of nodes that have to see it under the same name."""
        here = look_at(str(path))
        if here in ("", OTHER) or self._staged.is_shared(path):
            return path
        blind = next((each for each in (self, *others) if not each._sees(path, here)), None)
        return path if blind is None else self._staged.copy_for(path, blind._node.name)

    def stage_out(self, path: Path) -> Path | None:
        """See `Node.stage_out`."""
        if origin := self._staged.origin(path):
            return origin
        if self._staged.is_shared(path):
            return path
        there = self._ask(0, str(path))
        if not there:
            return None
        if not self._is_same(path, look_at(str(path)), there):
            self._bring(path)
        return path

    def processor(self) -> tuple[str, str]:
        """The architecture, and what -march=native depends on."""
        self._processor = self._processor or self._ask(3)
        architecture, _, lines = self._processor.partition("\n")
        return architecture, lines

    def command_file_digests(self, argv: Sequence[str], path: str | None) -> tuple[bytes, ...]:
        """See `Node.command_file_digests`."""
        asked = path_of_programs(path)
        said = self._ask(2, "\0".join(argv), asked) if argv else ""
        if said.startswith("!"):
            raise OSError(said[1:])
        return tuple(map(bytes.fromhex, said.split()))

    def close(self) -> None:
        with self._lock:
            lanes, self._lanes = self._lanes, None
        if lanes is not None:
            lanes.close()

    def _sees(self, path: Path, here: str) -> bool:
        if (path, here) not in self._seen:
            self._seen[path, here] = self._is_same(path, here, self._ask(0, str(path)))
        return self._seen[path, here]

    def _is_same(self, path: Path, here: str, there: str) -> bool:
        """Whether what the node sees is this. Of a file in another place the content counts: tools
        that copy and unpack set times, and may give equal ones to files that differ."""
        mark, is_file, place = here.partition("|")
        if there == here and (place or not is_file):
            return True
        if there.partition("|")[0] != mark:
            return False
        try:
            return file_digest(path).hex() == self._ask(4, str(path))
        except (NoDigest, OSError):  # it is gone, or may not be read: a copy says why
            return False

    def _bring(self, path: Path) -> None:
        """To its own path here, as if the task had run here. Raises TaskFailed if it cannot be."""
        try:
            name = self._node.name
            folder = Path(tempfile.mkdtemp(prefix="out-", dir=self._staged.copies.folder(name)))
            try:
                if why := self._ask(1, str(path), str(folder / path.name)):
                    raise OSError(0, why)
                _put(folder / path.name, path)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        except (OSError, shutil.Error) as error:
            raise TaskFailed(
                f"{path} lies on node {self._node.name} alone and cannot be copied to that path of "
                f"this machine: {why_of(error)}; write to a folder that both see, as "
                f"{self._staged.root}"
            ) from error

    def _ask(self, number: int, *words: str) -> str:
        stage = self._schedule.stages[number]
        with self._lock:
            if self._lanes is None:
                around = Surroundings(node=self._node, folder=Path("/"))
                self._lanes = ProcessLanes(self._schedule, 1, around=around)
            lane = self._lanes.lanes[0]
        try:
            ((answer,),) = lane.run([stage], [words])
        except (WorkerLost, LaunchFailed) as error:
            about = words[0].partition("\0")[0] if words else "its processor"
            said = f"node {self._node.name} cannot be asked about {about}: {error}"
            if isinstance(error, LaunchFailed):
                raise TaskFailed(said) from error
            lost = WorkerLost(said)
            lost.node = self._node.name
            raise lost from error
        return str(answer)


def _put(source: Path, to: Path) -> None:
    """Whole or not at all."""
    to.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{to.name[:200]}-", dir=to.parent))
    try:
        if why := copy_to(str(source), str(temporary / to.name)):
            raise OSError(0, why)
        (temporary / to.name).rename(to)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _make_read_only(path: Path) -> None:
    """A task that wrote to a copy would change what others read."""
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    for each in files:
        if each.is_file() and not each.is_symlink():
            each.chmod(each.stat().st_mode & _KEPT_BITS)
