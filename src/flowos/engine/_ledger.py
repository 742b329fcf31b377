"""What of the node is free: one ledger for all slices of this process, and one for each slice.

A request for more than is free waits in a line. Later requests may overtake the first one, but only
while it could not be granted even if all that overtook it were released: so cores do not lie idle
while a large task waits, and it begins once the tasks that ran before it came, and the last that
overtook it, have ended.
"""

import threading
from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Protocol

from flowos._dataclasses import dataclass, field, replace
from flowos.model import Counts, DeviceNumbers, Needs, counted

_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Resources:
    """What a node lets us use: the numbers of its cores, memory, which GPUs ("gpu") and devices."""

    cpus: tuple[int, ...]
    memory_bytes: int
    devices: DeviceNumbers = ()

    @property
    def gpus(self) -> int:
        """How many."""
        return len(dict(self.devices).get("gpu", ()))


def lacking_devices(asked: Counts, has: DeviceNumbers) -> str:
    """The name of the first device of which there are fewer, or ""."""
    known = dict(has)
    return next((name for name, count in asked if count > len(known.get(name, ()))), "")


class Asker(Protocol):
    """A thread that requests resources; any thread calls `wake` when some were released."""

    def wake(self) -> None: ...


@dataclass(slots=True, eq=False)
class Grant:
    """What was acquired: cores and devices by their numbers.

    is_empty: nothing of what is needed, by a task that runs all the same.
    """

    needs: Needs
    cores: tuple[int, ...]
    overtook: "tuple[Claim, ...]"
    devices: DeviceNumbers = ()
    is_empty: bool = False


@dataclass(slots=True, eq=False)
class Claim:
    """A waiting request: its asker, its needs, and the grants that overtook it."""

    asker: Asker
    needs: Needs
    past: list[Grant] = field(default_factory=list)


class ResourceLedger:
    """Cores, memory, GPUs and devices. A task that is to be alone takes all cores; one whose ranks
    are on several nodes takes nothing by itself (see flow._spread_ranks).

    idle: the cores that are free. One core may be taken from it and put back without asking, as
    long as the `line` is empty; a thread that puts some back calls `wake_askers` if it is not.
    """

    def __init__(self, whole: Resources) -> None:
        self.whole = whole
        self.reset()

    def reset(self) -> None:
        """As when it was made: in a forked child nothing of what its parent runs is running."""
        cores = self.whole.cpus
        self._memory = self.whole.memory_bytes
        self._devices = {name: set(numbers) for name, numbers in self.whole.devices}
        self.idle = deque(cores)
        self.line: list[Claim] = []
        self._all = len(cores)
        self._alone = self._empty = 0
        self._lock = threading.Lock()

    def widen(self, now: Resources) -> None:
        """Take in what has come since it was made: a wider affinity mask, a GPU.

        Else a slice that was promised it would wait for ever. What has gone stays counted.
        """
        with self._lock:
            known = self.whole
            new = tuple(core for core in now.cpus if core not in known.cpus)
            more_memory = max(0, now.memory_bytes - known.memory_bytes)
            devices = dict(known.devices)
            for name, numbers in now.devices:
                before = devices.get(name, ())
                more = tuple(number for number in numbers if number not in before)
                devices[name] = (*before, *more)
                self._devices.setdefault(name, set()).update(more)
            memory = known.memory_bytes + more_memory
            self.whole = Resources((*known.cpus, *new), memory, tuple(devices.items()))
            self._all += len(new)
            self.idle.extend(new)
            self._memory += more_memory

    def retire(self, name: str, numbers: Container[int | str]) -> None:
        """These devices are no longer ours; no task has one."""
        with self._lock:
            kept = {
                known: tuple(each for each in those if known != name or each not in numbers)
                for known, those in self.whole.devices
            }
            self.whole = replace(self.whole, devices=tuple((n, t) for n, t in kept.items() if t))
            self._devices = {known: self._devices[known] & {*kept[known]} for known in kept}

    def acquire(self, needs: Needs, asker: Asker, *, wait: bool = True) -> Grant | None:
        """What is needed; None if it cannot be had now: then `asker` stands in the line for it.

        Without `wait` only those in `granted` that are to be alone are before it.
        """
        with self._lock:
            mine = self._claim(needs, asker) if wait else None
            if mine is None and wait:  # first: a thread that releases after this sees it
                mine = Claim(asker, needs)
                self.line.append(mine)
            ahead = tuple(takewhile(lambda c: c is not mine, self.line))
            first = ahead if wait else self._waiters_for_all()
            if any(map(self._is_next, first)) or not self._fits(needs):
                return None
            cores = tuple(self._cores(needs))
            if needs.alone and len(cores) < self._many(needs):
                self.idle.extend(cores)
                return None
            grant = Grant(needs, cores, ahead, self._taken(needs))
            self._count(needs, -1)
            for claim in ahead:
                claim.past.append(grant)
            if mine is not None:
                self.line.remove(mine)
            return grant

    def can(self, needs: Needs, asker: Asker) -> bool:
        """Whether it can be had now; else `asker` stands in the line for it."""
        with self._lock:
            mine = self._claim(needs, asker)
            ahead = takewhile(lambda c: c is not mine, self.line)
            if self._fits(needs) and not any(map(self._is_next, ahead)):
                return True
            if mine is None:
                self.line.append(Claim(asker, needs))
            return self._fits(needs) and self.line[0].asker is asker

    def short_of(self, needs: Needs) -> tuple[str, int, int] | None:
        """The first of which too little is free: asked in words, free, of how many; else None."""
        whole, cores, memory = self.whole, self._many(needs), _memory(needs)
        with self._lock:
            counts = [
                (cores, counted(cores, "core"), len(self.idle), len(whole.cpus)),
                (memory, f"{counted(memory, 'byte')} of memory", self._memory, whole.memory_bytes),
            ]
            for name, count in _devices(needs):
                free, numbers = self._devices.get(name, ()), dict(whole.devices).get(name, ())
                asked = counted(count, "GPU") if name == "gpu" else f"{count} {name}"
                counts.append((count, asked, len(free), len(numbers)))
        return next((each[1:] for each in counts if each[0] > each[2]), None)

    def is_for_one(self) -> bool:
        """Whether something has the whole node, or takes it at once in `granted`."""
        with self._lock:
            return self._alone > 0 or any(map(self._is_next, self._waiters_for_all()))

    def count_in(self, needs: Needs) -> Grant:
        """Of a task that runs without what it needs: nothing is alone next to it."""
        with self._lock:
            self._empty += 1
        return Grant(needs, (), (), is_empty=True)

    def release(self, grant: Grant) -> None:
        with self._lock:
            if grant.is_empty:
                self._empty -= 1
                return
            for claim in grant.overtook:
                claim.past.remove(grant)
            self._count(grant.needs, 1)
            self.idle.extend(grant.cores)
            for name, numbers in grant.devices:
                self._devices[name].update(numbers)

    def withdraw(self, asker: Asker, still: Container[Needs] = ()) -> bool:
        """It wants no more of what it stood in the line for than `still`; whether that is less."""
        with self._lock:
            before = len(self.line)
            self.line = [c for c in self.line if c.asker is not asker or c.needs in still]
            return len(self.line) < before

    def wake_askers(self, released_by: Asker | None = None) -> None:
        """Wake all askers in the line; not to be called under a lock of theirs."""
        with self._lock:
            waiting = dict.fromkeys(c.asker for c in self.line)
        for asker in waiting:
            if asker is not released_by:
                asker.wake()

    def _waiters_for_all(self) -> list[Claim]:
        """Of threads that do nothing but wait: one of a slice may be about other things yet."""
        return [c for c in self.line if c.needs.alone and isinstance(c.asker, _Waiter)]

    def _claim(self, needs: Needs, asker: Asker) -> Claim | None:
        return next((c for c in self.line if c.asker is asker and c.needs == needs), None)

    def _is_next(self, claim: Claim) -> bool:
        """Whether it could begin if all grants that overtook it were released."""
        needs, past = claim.needs, claim.past
        if needs.alone and self._empty:
            return False
        return (
            self._many(needs) <= len(self.idle) + sum(len(g.cores) for g in past)
            and _memory(needs) <= self._memory + sum(_memory(g.needs) for g in past)
            and all(
                count <= len(self._devices.get(name, ())) + sum(_many(g, name) for g in past)
                for name, count in _devices(needs)
            )
        )

    def _fits(self, needs: Needs) -> bool:
        return (
            not (needs.alone and self._empty)
            and self._many(needs) <= len(self.idle)
            and _memory(needs) <= self._memory
            and all(count <= len(self._devices.get(n, ())) for n, count in _devices(needs))
        )

    def _many(self, needs: Needs) -> int:
        if _is_spread(needs):
            return 0
        return self._all if needs.alone else min(self._all, needs.cores * needs.ranks)

    def _cores(self, needs: Needs) -> Iterator[int]:
        """Fewer where another took one without asking meanwhile."""
        for _ in range(self._many(needs)):
            if self.idle:
                yield self.idle.pop()

    def _taken(self, needs: Needs) -> DeviceNumbers:
        """The first of its devices that are free."""
        asked = _devices(needs)
        if not asked:
            return ()
        free, every = self._devices, dict(self.whole.devices)
        taken = tuple(
            (name, tuple([one for one in every[name] if one in free[name]][:count]))
            for name, count in asked
        )
        for name, numbers in taken:
            self._devices[name].difference_update(numbers)
        return taken

    def _count(self, needs: Needs, sign: int) -> None:
        self._memory += sign * _memory(needs)
        self._alone -= sign * needs.alone


@contextmanager
def granted(ledger: ResourceLedger, needs: Needs, check: Callable[[], None]) -> Iterator[Grant]:
    """What is needed, acquired until the end of the `with`, once it can be had.

    check: called again and again meanwhile; what it raises ends the wait.
    """
    asker = _Waiter()
    try:
        while (grant := ledger.acquire(needs, asker)) is None:
            check()
            asker.woken.wait(_LOOK_SECONDS)
            asker.woken.clear()
    except BaseException:
        ledger.withdraw(asker)
        ledger.wake_askers()
        raise
    try:
        yield grant
    finally:
        ledger.release(grant)
        ledger.wake_askers()


class _Waiter:
    def __init__(self) -> None:
        self.woken = threading.Event()

    def wake(self) -> None:
        self.woken.set()


def _is_spread(needs: Needs) -> bool:
    return needs.nodes is not None and needs.nodes > 1


def _memory(needs: Needs) -> int:
    return 0 if _is_spread(needs) else needs.memory_bytes


def _devices(needs: Needs) -> Counts:
    return () if _is_spread(needs) else needs.generic_resources


def _many(grant: Grant, device: str) -> int:
    return len(dict(grant.devices).get(device, ()))
