"""How much of the node is free for the tasks of one slice."""

from flowos.model import Needs


class Room:
    """Counts cores, memory and GPUs; a task that is to be alone has all of it."""

    __slots__ = ("_alone", "_cores", "_gpus", "_memory", "_running")

    def __init__(self, cores: int, memory_bytes: int, gpus: int) -> None:
        self._cores, self._memory, self._gpus = cores, memory_bytes, gpus
        self._running = 0
        self._alone = False

    def fits(self, needs: Needs) -> bool:
        if self._alone or (needs.alone and self._running):
            return False
        return (
            needs.cores * needs.ranks <= self._cores
            and needs.memory_bytes <= self._memory
            and needs.gpus <= self._gpus
        )

    def enter(self, needs: Needs) -> None:
        self._count(needs, -1)
        self._alone = needs.alone

    def leave(self, needs: Needs) -> None:
        self._count(needs, 1)
        self._alone = False

    def _count(self, needs: Needs, sign: int) -> None:
        self._running -= sign
        self._cores += sign * needs.cores * needs.ranks
        self._memory += sign * needs.memory_bytes
        self._gpus += sign * needs.gpus
