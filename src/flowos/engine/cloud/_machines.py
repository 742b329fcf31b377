"""What a cloud is asked for. What it refuses is a value, never an exception.

`Machines` asks once. `PatientMachines` asks again while the cloud is busy or gone, gives up in
time, and never makes a second machine by that.
"""

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from flowos.engine._clock import now
from flowos.model import CloudRefusal, Vm, VmOrder
from flowos.plan import next_try

_T = TypeVar("_T")


class Machines(Protocol):
    """A cloud, as one account sees it."""

    def existing(self, cluster: str) -> tuple[Vm, ...] | CloudRefusal:
        """Machines that were made for a cluster and are not ended."""
        ...

    def create(self, order: VmOrder) -> Vm | CloudRefusal:
        """Start a machine, with its tags from its first moment on."""
        ...

    def end(self, vm: Vm) -> CloudRefusal | None:
        """End it for good. One that is gone already is no refusal."""
        ...


class PatientMachines:
    """See `Machines`. seconds: how long each question may take, with all that is tried."""

    def __init__(self, machines: Machines, seconds: float) -> None:
        self._machines = machines
        self._seconds = seconds

    def existing(self, cluster: str) -> tuple[Vm, ...] | CloudRefusal:
        return self._ask(lambda _: self._machines.existing(cluster))

    def create(self, order: VmOrder) -> Vm | CloudRefusal:
        """The machine of this order, made once: a call without an answer may have made it."""

        def once(tries: int) -> Vm | CloudRefusal:
            found = self._machines.existing(order.cluster) if tries else ()
            if isinstance(found, CloudRefusal):
                return found
            same = [vm for vm in found if (vm.node, vm.nonce) == (order.node, order.nonce)]
            return same[0] if same else self._machines.create(order)

        return self._ask(once)

    def end(self, vm: Vm) -> CloudRefusal | None:
        return self._ask(lambda _: self._machines.end(vm))

    def _ask(self, call: Callable[[int], _T | CloudRefusal]) -> _T | CloudRefusal:
        """call: gets how often it was tried before."""
        until = now() + self._seconds
        tries = 0
        while True:
            answer = _within(until - now(), call, tries)
            if not isinstance(answer, CloudRefusal):
                return answer
            tries += 1
            wait = next_try(answer, tries, until - now())
            if wait is None:
                return answer
            threading.Event().wait(wait)


def _within(
    seconds: float, call: Callable[[int], _T | CloudRefusal], tries: int
) -> _T | CloudRefusal:
    """What it answers in time. A call that hangs is left alone: it ends with this process."""
    answers: list[_T | CloudRefusal] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call(tries))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    for error in errors:
        raise error
    if answers:
        return answers[0]
    return CloudRefusal("unreachable", f"no answer within {seconds:.0f} s")
