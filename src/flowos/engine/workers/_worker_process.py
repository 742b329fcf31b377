"""The conversation with one worker process: what it is taught, what it runs, what it holds."""

import contextlib
import itertools
import marshal
import mmap
import os
import socket
from collections import deque
from collections.abc import Sequence
from functools import cache, partial
from importlib.util import find_spec
from types import CodeType
from typing import Any

from flowos.engine.launch._orphans import answers_in
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._same_flowos import sizes_here
from flowos.engine.workers._blobs import Blob, Packed
from flowos.engine.workers._functions import dumps
from flowos.engine.workers._limits import limit_back
from flowos.engine.workers._listeners import AnyChannel
from flowos.engine.workers._worker_control import FIRST_WORD
from flowos.engine.workers._worker_program import WorkerProgram
from flowos.engine.workers._worker_start import KILL_SECONDS, Start, other_flowos
from flowos.engine.workers.stream_worker import STDOUT, Arrived, StreamChannel
from flowos.model import LaunchFailed, Pairs

owners = itertools.count(1)
"""Numbers of those that fill memory files, this process and its workers."""
OWNER_SHIFT = 40
"""A memory file's number, shifted right by this, is the number of the process that fills it."""

Times = tuple[float, float, float]
"""What a `RowTimes` is made of."""

_MODULES = (
    ("flowos", "_dataclasses"),
    ("flowos.model", "_ports"),
    ("flowos.model", "_composite_ports"),
    ("flowos.model", "_extents"),
    ("flowos.engine.flow", "_errors"),
    ("flowos.engine.flow", "_files"),
    ("flowos.engine.flow", "_control"),
    ("flowos.engine.workers", "_functions"),
    ("flowos.engine.workers", "_values"),
    ("flowos.engine.workers", "_worker_control"),
)
"""What a worker needs of FlowOS, which need not be installed where it runs."""
_IN_IMAGES = ("flowos.engine.workers", "_old_numpy")
_ELSEWHERE = ("flowos.engine.launch", "_same_flowos")
"""For one whose FlowOS may be another one."""


_END_SECONDS = 0.5
"""How long a worker of another node has to tell how it ended."""


def _print_to(pipes: Sequence[int], stream: int, data: bytes) -> None:
    os.write(pipes[stream - STDOUT], data)


@cache
def _modules(*more: tuple[str, str]) -> dict[str, bytes]:
    """Module -> marshalled code: the same Python version runs at the other end."""
    codes = {}
    for package, name in (*_MODULES, *more):
        full = f"{package}.{name}"
        codes[full] = marshal.dumps(_of_file(full, _code_of(full)))
    return codes


def _code_of(module: str) -> CodeType:
    """As it is kept in `__pycache__`: to compile all of them takes 12 ms."""
    spec = find_spec(module)
    assert spec is not None
    loader: Any = spec.loader
    code: CodeType = loader.get_code(module)
    return code


def _of_file(name: str, code: CodeType) -> CodeType:
    """The same code: tracebacks at the other end, where our files may not be, say this name."""
    inner = (
        _of_file(name, each) if isinstance(each, CodeType) else each for each in code.co_consts
    )
    return code.replace(co_filename=name, co_consts=tuple(inner))


class WorkerProcess:
    """A worker, from its first word to its end. One conversation at a time, on any thread."""

    def __init__(self, running: RunningProcess, channel: AnyChannel, start: Start) -> None:
        self.running = running
        self._runs = 0
        self._is_here = start.around.node.is_here
        self.why_unreachable = ""
        """Of a node that was lost with it, see `Node.why_unreachable`."""
        self._start = start
        self._number = next(owners)
        self._channel = channel
        self._bound: tuple[tuple[int, ...], Pairs] = ((), ())
        self._returned: deque[int] = deque()
        self._held: dict[int, tuple[Blob, int]] = {}
        self._progress: memoryview | list[int] = [0]
        """A page that a worker of this machine writes to, from `greet` to `forget`."""

    def greet(self, pipes: Sequence[int], keep_bytes: int, max_files: int) -> None:
        """Make it ours: it prints to `pipes`. Raises EOFError or OSError if it is gone."""
        first, limit = self._number << OWNER_SHIFT, limit_back(self._start.around.node)
        in_image = self._start.around.in_image
        elsewhere = in_image or not self._is_here
        hello = {
            "pool": (first, keep_bytes, max_files, limit),
            "modules": _modules(*[_ELSEWHERE] * elsewhere, *[_IN_IMAGES] * in_image),
            "flowos": sizes_here() if elsewhere else None,
            "in_image": in_image,
        }
        if isinstance(self._channel, StreamChannel):
            self._channel.on_output = partial(_print_to, pipes)
            self._channel.arrivals.keep_bytes = keep_bytes
            self._channel.send(hello)
            return
        page = os.memfd_create("flowos-progress")
        try:
            os.ftruncate(page, mmap.PAGESIZE)
            self._progress = memoryview(mmap.mmap(page, mmap.PAGESIZE)).cast("Q")
            self._channel.send(hello, [(fd, 0) for fd in (page, *pipes)])
        finally:
            os.close(page)

    @property
    def place(self) -> tuple[int, int] | None:
        """Which stage of the batch, and which of its steps, the worker began last.

        On another node that is known once it has ended; not if the node is gone too.
        """
        begun = self._progress[0] if self._is_here else self._begun_there()
        return divmod(begun - 1, 1 << 32) if begun else None

    @property
    def at(self) -> tuple[int, int] | None:
        """The same while it runs, for other threads; None on another node, which does not say."""
        if not self._is_here:
            return None
        begun = 0
        with contextlib.suppress(ValueError):  # `forget` gives the page back
            begun = self._progress[0]
        return divmod(max(0, begun - 1), 1 << 32)

    @property
    def stage(self) -> int:
        """Which stage of the batch the worker began last, or is to begin first."""
        return self.place[0] if self.place else 0

    def _begun_there(self) -> int:
        """1 where it cannot be known: the first one may have begun."""
        for _ in range(2):  # a node whose power fails may answer for a moment
            self.why_unreachable = self._start.around.node.why_unreachable()
            if self.why_unreachable:
                return 1
            with contextlib.suppress(TimeoutError):
                self.running.wait(_END_SECONDS)
                begun, runs = self.running.progress
                return begun if runs == self._runs else 0
        return 1

    def round_of(self, loop: int) -> int:
        """Which round the loop is in that is step `loop` of the stage; 0 if that is not known."""
        word = loop + FIRST_WORD
        return self._progress[word] if word < len(self._progress) else 0

    def teach(self, program: WorkerProgram) -> None:
        """Raises TaskFailed if a function cannot be sent, LaunchFailed if another FlowOS is there,
        EOFError or OSError if it is gone."""
        types = dumps(program.types)
        sources = program.sources({}, {})
        while True:
            self._channel.send(("teach", self._start.path, sources, types, program.stages))
            problems, _ = self._channel.receive()
            if type(problems) is tuple:
                raise LaunchFailed(other_flowos(self._start, problems))
            if not problems:
                return
            sources = program.sources(problems, sources)

    def bind(self, cores: tuple[int, ...], variables: Pairs) -> None:
        """Have it run on these CPUs from now on, with these variables; () is all CPUs.

        Raises EOFError or OSError if it is gone.
        """
        if (cores, variables) != self._bound:
            self._channel.send(("bind", cores, variables))
            self._bound = cores, variables

    def run(
        self,
        batch: Sequence[tuple[int, Sequence[Any]]],
        seconds: float | None,
        limit: float | None = None,
    ) -> tuple[list[list[Any]], Sequence[Any], Times]:
        """Results, plain or packed; what the worker said of the stage that then failed; times.

        seconds: fewer results come where this is over before the last stage. Raises TimeoutError if
        no answer comes within `limit` seconds, EOFError or OSError if the worker is gone.
        """
        files: list[tuple[int, int]] = []
        sent: list[Any] = []
        rows: list[tuple[int, list[Any]]] = []
        places: dict[int, int] = {}
        for number, values in batch:
            row = [self._wired(v, places, files, sent) if type(v) is Packed else v for v in values]
            rows.append((number, row))
        back = self._returned
        returned = [back.popleft() for _ in range(len(back))] if back else ()
        self._progress[0] = 0
        self._runs += 1
        self._channel.send(("run", returned, files, rows, seconds), sent)
        (gone, file, results, failed, times), fds = self._channel.receive(limit)
        for number in gone:
            self._let_go(number)
        return self._results(fds, file, results), failed, times

    def _wired(
        self,
        value: Packed,
        places: dict[int, int],
        files: list[tuple[int, int]],
        sent: list[Any],
    ) -> tuple[Any, ...]:
        blob = value.blob
        if blob is None:
            return value.body, ()
        place = places.get(blob.number)
        if place is None:
            place = places[blob.number] = len(files)
            files.append((blob.number, blob.size))
            if blob.number >> OWNER_SHIFT != self._number:
                sent.append((blob.fd, blob.size))
        if self._is_here or blob.number >> OWNER_SHIFT == self._number:  # else it has bytes
            self._held[blob.number] = (blob, self._held.get(blob.number, (blob, 0))[1] + 1)
        return value.body, value.spans, place

    def _let_go(self, number: int) -> None:
        blob, count = self._held.pop(abs(number))
        blob.spoiled |= number < 0
        if count > 1:
            self._held[abs(number)] = (blob, count - 1)

    def _results(
        self, fds: Sequence[int | Arrived], file: tuple[int, int], results: list[list[Any]]
    ) -> list[list[Any]]:
        blob = None
        if fds:
            blob = Blob(fds[0], file[1], file[0], self._returned.append, mine=False)
        for row in results:
            for i, value in enumerate(row):
                if type(value) is tuple:
                    body, spans = value
                    row[i] = Packed(body, spans, blob)
        return results

    @property
    def step(self) -> str:
        """Of Slurm, JOB.STEP; "" where it is none."""
        return self.running.step or answers_in(self.running.folder).step

    def kill(self) -> None:
        """End it now; from any thread."""
        self.running.stop(KILL_SECONDS)

    def leave(self) -> None:
        """Let it end by itself, as Python processes do."""
        with contextlib.suppress(OSError):  # it is gone already
            self._channel.sock.shutdown(socket.SHUT_RDWR)

    def forget(self) -> None:
        """It is gone or going: nothing that it may still read is written again.

        Whoever keeps an error keeps us, by its traceback: only where it was is left to know.
        """
        page = self._progress
        if isinstance(page, memoryview):
            self._progress = page.tolist()
            page.release()
        for blob, _ in self._held.values():
            blob.spoiled = True
        self._held.clear()
        self._channel.close()
