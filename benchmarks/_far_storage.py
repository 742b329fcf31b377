"""A Slurm of this benchmark's own, with a second folder that all nodes see, as far as is asked.

Each node reads it by a link of its own (benchmarks/feed/slowfs.cpp), which is what all nodes of a
cluster have to its storage. What FlowOS itself shares stays as near as it was.
"""

import json
import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "feed"), str(HERE.parent)]

from places import default_folder, program  # noqa: E402

from tests.cluster.box import Box, which  # noqa: E402

BINDFS = """\
#!/bin/sh
# Mounts the shared folder as tests/cluster/inside.py asks, on a node the one that is far, too.
[ -n "$NODE" ] || exec {bindfs} "$@"
{bindfs} "$@" &
exec <>"$FOLDER/$NODE/questions" >"$FOLDER/$NODE/answers" 2>&1
exec "$FOLDER/bin/slowfs" {link} --writable 1 "$FOLDER/far" "$FOLDER/far"
"""
"""Comes before bindfs in PATH. Open for writing, too, the questions never end."""


class FarStorage(Box):
    """A running Slurm whose nodes are apart. far: the folder; here, on the controller, it is near.

    Raises NotHere without a compiler or FUSE, SystemExit if it is not mounted on a node.
    """

    def __init__(self, nodes: int, round_trip_ms: float, mbit: float) -> None:
        slowfs = program("slowfs", default_folder())
        super().__init__(nodes, apart=True)
        self.far, self._programs = self.folder / "far", self.folder / "bin"
        self._link = f"--round-trip-ms {round_trip_ms:g} --mbit {mbit:g}"
        for folder in (self.far, self._programs):
            folder.mkdir()
        shutil.copy(slowfs, self._programs / "slowfs")
        self._links: list[tuple[IO[str], IO[str]]] = []
        self._pipes = ExitStack()

    def __enter__(self) -> "FarStorage":
        super().__enter__()
        try:
            for node in self.nodes:
                self._reach(node)
        except BaseException:
            self.close()
            raise
        return self

    def _reach(self, node: str) -> None:
        place = self.folder / node
        answers = self._pipes.enter_context((place / "answers").open())
        if "mounted" not in (said := answers.readline()):
            raise SystemExit(f"no link for {node}: {said.strip() or 'slowfs has ended'}")
        questions = self._pipes.enter_context((place / "questions").open("w"))
        self._links.append((questions, answers))

    @property
    def _of_daemons(self) -> dict[str, str]:
        others = super()._of_daemons
        return {**others, "PATH": f"{self._programs}:{others['PATH']}", "NODE": ""}

    def _write(self) -> None:
        super()._write()
        bindfs = self._programs / "bindfs"
        bindfs.write_text(BINDFS.format(bindfs=which("bindfs"), link=self._link))
        bindfs.chmod(0o755)
        for node in self.nodes:
            for name in ("questions", "answers"):
                os.mkfifo(self.folder / node / name)

    def traffic(self) -> list[dict[str, Any]]:
        """Of each node's link so far."""
        found = []
        for questions, answers in self._links:
            questions.write("?\n")
            questions.flush()
            found.append(json.loads(answers.readline()))
        return found

    def close(self) -> None:
        self._pipes.close()
        super().close()
