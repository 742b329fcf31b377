"""The node-local worker: one file, standard library only, run by any Python from 3.11 on.

It runs stages that it was taught, and answers each message with one; it ends when its socket does.
What else it needs of FlowOS comes as code with the first message: FlowOS itself need not be
installed where it runs. The engine imports this file for `Channel`, the wire of both ends.
"""

import marshal
import mmap
import os
import pickle
import select
import signal
import socket
import sys
import time
import types
from array import array
from collections.abc import Callable, Sequence
from typing import Any

PACKET = 96 * 1024
"""Longest message sent as such, bytes; a socket's buffer holds two of them by default."""
FDS_PER_PACKET = 250  # the kernel takes 253
AWAKE_SECONDS = 5e-5
"""How long a reader looks for a message before it sleeps."""
MAX_POLL_MILLISECONDS = 2**31 - 1
OWN_PATH = [path for path in sys.path if path != os.path.dirname(__file__)]  # noqa: PTH120
"""Where this Python finds modules by itself: without the folder of this file."""


class Channel:
    """Messages, each with file descriptors if wished, over a unix SOCK_SEQPACKET socket.

    A packet is one byte, the number of packets with descriptors that follow it, and a pickle. A
    pickle longer than PACKET crosses in a memory file, the first descriptor; its packet then
    holds the length.
    """

    passes_descriptors = True

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(True)  # whatever socket.setdefaulttimeout was given
        self.sock = sock
        self._buffer = memoryview(bytearray(PACKET + 1))

    def send(self, message: object, files: Sequence[tuple[int, int]] = ()) -> None:
        """files: (descriptor, bytes) of each."""
        body = pickle.dumps(message, 5)
        if len(body) <= PACKET and not files:
            self.sock.send(b"\0" + body)
            return
        large, fds = None, [fd for fd, _ in files]
        if len(body) > PACKET:
            large = _memory_file(body)
            fds.insert(0, large)
            body = pickle.dumps(len(body), 5)
        starts = range(0, len(fds), FDS_PER_PACKET)
        try:
            self.sock.send(bytes((len(starts),)) + body)
            for start in starts:
                socket.send_fds(self.sock, [b"\0"], fds[start : start + FDS_PER_PACKET])
        finally:
            if large is not None:
                os.close(large)

    def receive(self, seconds: float | None = None) -> tuple[Any, list[int]]:
        """The next message and its descriptors; EOFError when the other end is gone, TimeoutError
        if neither comes within so many seconds."""
        if seconds is not None:
            self._await(seconds)
        size = self._arrived()
        if not size:
            raise EOFError
        message = pickle.loads(self._buffer[1:size])
        fds: list[int] = []
        for _ in range(self._buffer[0]):
            whole = self._receive_fds(fds)
            if not whole:
                for fd in fds:
                    os.close(fd)
                raise OSError("too many open files: raise the limit (ulimit -n)")
        if type(message) is int:
            with mmap.mmap(fds[0], message) as body:
                message = pickle.loads(body)
            os.close(fds.pop(0))
        return message, fds

    def _await(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        if not poll.poll(min(seconds * 1000, MAX_POLL_MILLISECONDS)):
            raise TimeoutError

    def _arrived(self) -> int:
        """The size of the next packet, met awake if it comes soon: to be woken on another cpu takes
        longer than most messages are apart."""
        asleep = time.perf_counter() + AWAKE_SECONDS
        while time.perf_counter() < asleep:
            try:
                return self.sock.recv_into(self._buffer, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                os.sched_yield()
        return self.sock.recv_into(self._buffer)

    def _receive_fds(self, fds: list[int]) -> bool:
        """As socket.recv_fds, which leaves out the flag that keeps them from our children."""
        room = socket.CMSG_SPACE(FDS_PER_PACKET * 4)
        _, ancillary, flags, _ = self.sock.recvmsg(1, room, socket.MSG_CMSG_CLOEXEC)
        for _, _, data in ancillary:
            fds += array("i", data[: len(data) // 4 * 4])
        return bool(ancillary) and not flags & socket.MSG_CTRUNC

    def close(self) -> None:
        self.sock.close()


def _memory_file(content: bytes | memoryview) -> int:
    fd = os.memfd_create("flowos-message")
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    return fd


class Failed(Exception):  # noqa: N818 - reads as what happened
    """A stage failed: its place in the batch, the step, the kind, and details for the engine."""


class Refused(Exception):  # noqa: N818
    """A result is not what its port promises: the port's index or None, the complaint."""


class Worker:
    """Runs stages that it was taught. channel: a `Channel`, or what keeps its promise."""

    def __init__(self, channel: Any, hello: dict[str, Any], page: int) -> None:
        """Become the engine's: its page of progress, its modules."""
        self.channel = channel
        self.functions: dict[int, Callable[..., Any]] = {}
        self.stages: dict[int, tuple[int, list[Any], Sequence[int], bool]] = {}
        self.gone: list[int] = []
        self.progress = memoryview(mmap.mmap(page, mmap.PAGESIZE)).cast("Q")
        os.close(page)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
        for name, code in hello["modules"].items():
            module = sys.modules[name] = types.ModuleType(name)
            exec(marshal.loads(code), module.__dict__)
        self.ports: Any = sys.modules["flowos.model._ports"]
        self.errors: Any = sys.modules["flowos.engine.flow._errors"]
        self.files: Any = sys.modules["flowos.engine.flow._files"]
        self.crossing: Any = sys.modules["flowos.engine.workers._functions"]
        self.values: Any = sys.modules["flowos.engine.workers._values"]
        inside: Any = sys.modules["flowos.engine.workers._worker_control"]
        self.bind, self.stand_in_for = inside.WorkerBinding(), inside.stand_in_for
        self.inside = inside.WorkerControl(self._operation, self._run_steps, self.progress, Failed)
        self.pool, self.flowos = self.values.SlabPool(*hello["pool"]), hello["flowos"]
        if not channel.passes_descriptors:
            _, channel.arrivals.keep_bytes, *_ = hello["pool"]
        if hello["in_image"]:
            sys.modules["flowos.engine.workers._old_numpy"].meet_new_names()

    def serve(self) -> None:
        """Answer each message until the engine is gone.

        ("bind", cores, variables): run on these CPUs, or all of ours for (), with these variables
        ("teach", path, functions, types, stages) -> {function: why it cannot be loaded}
            Where another FlowOS is found, how it is unlike the engine's, see `_same_flowos`.
        ("run", returned, files, batch, seconds) -> (gone, file, results, failed, times)
        failed: () or (place, step, rounds, kind, ...). Results: of the stages before it, no more
        than could be started in so many seconds. times: as in RowTimes.
        """
        while True:
            (kind, *message), fds = self.channel.receive()
            if kind == "teach":
                self.channel.send(self._learn(*message))
            elif kind == "bind":
                self.bind(*message)
            else:
                self.channel.send(*self._run(fds, *message))
            del message

    def _learn(
        self, path: list[str | None], functions: dict[int, Any], types: bytes, new: dict[int, Any]
    ) -> dict[int, str] | tuple[str, str]:
        sys.path[:] = [p for word in path for p in (OWN_PATH if word is None else [word])]
        same: Any = sys.modules.pop("flowos.engine.launch._same_flowos", None)
        if same and (there := same.unlike(self.flowos)):
            return there  # type: ignore[no-any-return]
        self.stand_in_for("flowos", ".model", ".engine", ".engine.flow", ".engine.workers")
        problems: dict[int, str] = {}
        for number, source in functions.items():
            try:
                self.functions[number] = self.crossing.load(*source)
            except BaseException as error:
                problems[number] = self.errors.line(error)
        if not problems:
            types_ = pickle.loads(types)
            for number, (empty, steps, *rest) in new.items():
                program = [self._operation(types_, step, i) for i, step in enumerate(steps)]
                self.stages[number] = (empty, program, *rest)
        return problems

    def _operation(self, known: Any, step: Sequence[Any], number: int) -> tuple[Any, ...]:
        fun, inputs, outputs, types, calling = step
        kinds = [known[i] for i in types]
        plain = len(kinds) == 1 and not isinstance(kinds[0], self.ports.FilePath)
        good = kinds[0].quick() if plain else (lambda _: False)
        if isinstance(fun, tuple):
            call = self.inside.function(known, number, *fun)
        else:
            call = self.errors.as_called(self.functions[fun], calling)
        return call, inputs, outputs[0], good, outputs, kinds

    def _run(
        self,
        fds: list[Any],
        returned: Sequence[int],
        files: list[tuple[int, int]],
        batch: list[Any],
        seconds: float | None,
    ) -> tuple[object, Sequence[tuple[Any, int]]]:
        """Run stages one after the other.

        files: (number, size) of those that values lie in; fds are of those that are not ours.
        """
        self.progress[0], self.progress[1] = 0, self.progress[1] + 1
        self.pool.returned.extend(returned)
        if files:
            self._hold(batch, files, fds)
        parcel = self.pool.parcel()
        results: list[list[Any]] = []
        worked, began = time.thread_time(), time.perf_counter()
        until = began + (sys.maxsize if seconds is None else seconds)
        failed, before = self._run_stages(parcel, batch, results, until)
        ended = time.perf_counter()
        times = ended - began, ended - before, time.thread_time() - worked
        stays = parcel.size > 0 and any(self.stages[number][-1] for number, _ in batch)
        number, sent = self.pool.lay(parcel, stays, self.channel.passes_descriptors)
        answer = ((number, parcel.size), results, failed, times)
        for fd in fds:
            if type(fd) is int:
                os.close(fd)
        fds.clear()
        batch.clear()
        del parcel
        gone = [self.gone.pop() for _ in range(len(self.gone))] if self.gone else ()
        return (gone, *answer), sent

    def _run_stages(
        self, parcel: Any, batch: list[Any], results: list[list[Any]], until: float
    ) -> tuple[tuple[Any, ...], float]:
        """Append results until all have run, one fails or the time is over.

        Returns how one failed, and when the last one began.
        """
        began = now = time.perf_counter()
        try:
            for at, stage in enumerate(batch):
                began = now
                results.append(self._run_stage(parcel, at << 32, *stage))
                if (now := time.perf_counter()) > until:
                    break
        except Failed as failure:
            return (*failure.args[:2], self.inside.rounds, *failure.args[2:]), began
        return (), began

    def _hold(self, batch: list[Any], files: list[tuple[int, int]], fds: list[Any]) -> None:
        """Give each value that lies in a file what it needs to be mapped, and to tell its end."""
        others = iter(fds[:])
        used = [v[2] for _, values in batch for v in values if type(v) is tuple and v[1]]
        opened = []
        for place, (number, size) in enumerate(files):
            fd = slab.fd if (slab := self.pool.lent.get(number)) else next(others)
            came = type(fd) is not int  # as bytes, for it alone
            if came and used.count(place) > 1:  # each maps its own
                fd = _memory_file(memoryview(fd)[:size])
                fds.append(fd)
            opened.append((fd, size, 0 if came else number))
        for _, values in batch:
            for i, value in enumerate(values):
                if type(value) is tuple and value[1]:
                    body, spans, file = value
                    fd, size, number = opened[file]
                    gone = self.values.MappingGone(number, self.gone) if number else None
                    values[i] = (body, spans, fd, size, gone)

    def _run_stage(self, parcel: Any, place: int, number: int, values: list[Any]) -> list[Any]:
        empty, program, returns, _ = self.stages[number]
        self.progress[0] = place + 1
        try:
            unpack = self.values.unpack
            registers = [unpack(*v) if type(v) is tuple else v for v in values]
        except BaseException as error:
            raise Failed(place >> 32, 0, "unreadable", self.errors.line(error)) from None
        values.clear()
        registers += [None] * empty
        self._run_steps(place, program, registers)
        results: list[Any] = []
        for register in returns:
            try:
                results.append(parcel.add(registers[register]))
            except BaseException as error:
                step = max(i for i, s in enumerate(program) if register in s[4])
                port = program[step][4].index(register)
                large = isinstance(error, self.values.TooLarge)
                text = str(error) if large else self.errors.line(error)
                raise Failed(place >> 32, step, "unsendable", port, text) from None
        return results

    def _run_steps(self, place: int, program: list[Any], registers: list[Any]) -> None:
        progress, step = self.progress, 0
        inputs: Sequence[int] = ()
        try:
            for step, (fun, inputs, give, good, outputs, kinds) in enumerate(program):
                progress[0] = place + step + 1
                result = fun(*[registers[i] for i in inputs])
                if good(result):
                    registers[give] = result
                else:
                    self._settle(result, outputs, kinds, registers)
        except Failed:  # within a cond or a loop
            raise
        except BaseException as error:
            given = [self.ports.brief_repr(registers[i]) for i in inputs]
            raise Failed(*divmod(place + step, 1 << 32), *self._described(error, given)) from None

    def _described(self, error: BaseException, given: list[str]) -> tuple[Any, ...]:
        """Of an exception: itself or None where it cannot cross, one line, place, traceback."""
        if isinstance(error, Refused):
            return "refused", given, *error.args
        if self.errors.is_incompatible(error):
            return "incompatible", str(error)
        import traceback  # only a failure pays for it

        trace = self.errors.trace_of_task(error)
        text = "".join(traceback.format_exception(error.with_traceback(trace)))
        try:
            wired = self.values.Parcel(sys.maxsize).add(error)
            self.values.unpack(*wired)
        except BaseException:
            wired = None
        return "raised", given, wired, self.errors.line(error), self.errors.where(trace), text

    def _settle(
        self, result: Any, outputs: Sequence[int], kinds: Sequence[Any], registers: list[Any]
    ) -> None:
        """Check and keep what a step gave, the long way: several outputs, files, wrong values."""
        values = (result,) if len(outputs) == 1 else result
        if not isinstance(values, (tuple, list)) or len(values) != len(outputs):
            many = isinstance(values, (tuple, list))
            raise Refused(None, f"{len(values)} values" if many else type(values).__name__)
        good = []
        for port, kind in enumerate(kinds):
            value = values[port]
            complaint = kind.check(value)
            if complaint is None and isinstance(kind, self.ports.FilePath):
                value = self.files.present(value)
                complaint = value if isinstance(value, str) else None
            if complaint is not None:
                raise Refused(port, complaint)
            good.append(value)
        for give, value in zip(outputs, good, strict=True):  # the place of an input may be reused
            registers[give] = value


def main() -> None:
    """Connect to the engine's socket, given as its path, and serve."""
    signal.signal(signal.SIGINT, lambda *_: None)  # the engine ends us, not the terminal
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect(sys.argv[1])
    os.register_at_fork(after_in_child=sock.close)
    channel = Channel(sock)
    try:
        channel.send(sys.version_info[:2])
        hello, (page, *pipes) = channel.receive()
        for stream, pipe in enumerate(pipes, 1):
            os.dup2(pipe, stream)
            os.close(pipe)
        Worker(channel, hello, page).serve()
    except (EOFError, ConnectionError):
        return
    except MemoryError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
