"""Commands that the keeper of a node starts there, each with a stand-in here. See `node_keeper`."""

import base64
import contextlib
import itertools
import json
import os
import queue
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.engine.launch._watch import the_watch
from flowos.model import Argv

_LOST, _NO_MORE = 255, -1


@dataclass(frozen=True, slots=True)
class _Command:
    """Our ends. lifeline: its end is the command's. code: of a pipe to its stand-in."""

    lifeline: int
    outputs: tuple[int, int]
    code: int


class NodeCommands:
    """A `Starter`. say: sends the keeper a line; False if it takes none.

    All but `close` is called in the watch's thread, which must not block: it reads what another
    thread writes to the pipes of outputs.
    """

    def __init__(self, say: Callable[[str], bool]) -> None:
        self._say = say
        self._numbers = itertools.count()
        self._running: dict[int, _Command] = {}
        self._open = True
        self._to_write: queue.SimpleQueue[tuple[int, bytes | None]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="flowos-outputs", daemon=True).start()

    def start(
        self, argv: Argv, variables: dict[str, str], folder: Path, streams: tuple[int, int, int]
    ) -> int:
        """See `Starter`."""
        (folder / "start").write_text(json.dumps({"argv": argv, "env": variables}))
        reader, code = os.pipe2(os.O_CLOEXEC)
        lifeline, *outputs = map(os.dup, streams)
        number = next(self._numbers)
        self._running[number] = _Command(lifeline, (outputs[0], outputs[1]), code)
        the_watch().on_readable(lifeline, partial(self._heard, lifeline, f"end {number}"))
        the_watch().on_readable(code, partial(self._heard, code, f"kill {number}"))
        if not (self._open and self._say(f"start {number} {folder}")):
            self._end(number, _LOST)
        return reader

    def obeyed(self, line: str) -> None:
        """A line of the keeper."""
        what, number, data = line.split(" ", 2)
        command = self._running.get(int(number))
        if command is None:
            return
        if what == "exit":
            self._end(int(number), int(data))
        else:
            self._to_write.put((command.outputs[what == "err"], base64.b64decode(data)))

    def close(self) -> None:
        """The keeper is gone, and all that it started."""
        the_watch().ask(self._end_all)

    def _end_all(self) -> None:
        self._open = False
        for number in tuple(self._running):
            self._end(number, _LOST)
        self._to_write.put((_NO_MORE, None))

    def _heard(self, descriptor: int, line: str) -> None:
        the_watch().forget(descriptor)
        self._say(line)

    def _end(self, number: int, code: int) -> None:
        command = self._running.pop(number)
        for descriptor in (command.lifeline, command.code):
            with contextlib.suppress(KeyError):  # it was heard
                the_watch().forget(descriptor)
        os.close(command.lifeline)
        for output in command.outputs:
            self._to_write.put((output, None))
        self._to_write.put((command.code, f"{code}\n".encode()))
        self._to_write.put((command.code, None))

    def _write(self) -> None:
        while (written := self._to_write.get())[0] != _NO_MORE:
            descriptor, data = written
            if data is None:
                os.close(descriptor)
                continue
            with contextlib.suppress(BrokenPipeError):  # it is not read any more
                while data:
                    data = data[os.write(descriptor, data) :]
