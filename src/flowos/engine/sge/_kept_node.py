"""The keeper of one node, and qrsh, which carries its lines. See `node_keeper`."""

import base64
import json
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

from flowos.drivers._allocators import KeptNode
from flowos.drivers.allocators.sge import read_complaint
from flowos.engine.launch._keeper import HELLO, start_keeper
from flowos.engine.launch._session import LaunchSession
from flowos.engine.sge import node_keeper
from flowos.engine.sge._node_commands import NodeCommands
from flowos.model import Argv, Pairs

_START = "import base64, zlib; exec(zlib.decompress(base64.b64decode({!r})))"


def keeper_words(proof: Path, silence_seconds: float) -> Argv:
    """The keeper, as qrsh starts it: a node may not see our folders, and qrsh passes on no line
    breaks."""
    source = Path(node_keeper.__file__).read_bytes()
    packed = base64.b64encode(zlib.compress(source)).decode()
    python = (sys.executable, "-I", "-S", "-c", _START.format(packed))
    return (*python, str(proof), str(silence_seconds))


class NodeKeeper:
    """words: what qrsh is started by. changed: notified when there is something new."""

    def __init__(
        self, session: LaunchSession, words: Argv, variables: Pairs, changed: threading.Condition
    ) -> None:
        self._changed = changed
        self.greeting: dict[str, Any] = {}
        self._said: list[str] = []
        self._beats = self._answers = 0
        self.commands = NodeCommands(self._say)
        self.qrsh, self.lifeline = start_keeper(
            session, words, variables, self._line, self._complaint
        )

    def kept(self, name: str, cores: int | None) -> KeptNode:
        """What it said of its node. cores: so many of them are ours."""
        return KeptNode(
            name=name,
            our_address=self.greeting["our_address"],
            cpus=tuple(self.greeting["cpus"][:cores]),
            memory_bytes=self.greeting["memory_bytes"],
            gpus=(),
            proof=self.greeting["proof"],
        )

    @property
    def has_spoken(self) -> bool:
        with self._changed:
            return bool(self.greeting or self._said)

    def beat(self) -> int:
        """Say that we are there. How often it was said, and not answered."""
        unanswered = self._beats - self._answers
        self._beats += self.lifeline.beat()
        return unanswered

    def stop(self) -> None:
        """It and what it started are over."""
        self.commands.close()
        self.lifeline.close()
        self.qrsh.stop(0.0)

    def complaint(self) -> str:
        with self._changed:
            return read_complaint("\n".join(self._said)).text

    def _say(self, line: str) -> bool:
        return self.lifeline.say(line)

    def _line(self, line: str) -> None:
        if line == ".":
            self._answers += 1
        elif line.startswith(HELLO):
            with self._changed:
                self.greeting = json.loads(line.removeprefix(HELLO))
                self._changed.notify_all()
        elif line.startswith(("out ", "err ", "exit ")):
            self.commands.obeyed(line)

    def _complaint(self, line: str) -> None:
        with self._changed:
            self._said.append(line)
            self._changed.notify_all()
