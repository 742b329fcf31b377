"""Takes the steps of a driver: the one place where devices are touched."""

import errno
import shutil
import socket
from collections.abc import Callable
from functools import singledispatch
from pathlib import Path

from flowos.drivers import (
    MISSING,
    NOT_ALLOWED,
    TOO_LATE,
    CopyStep,
    DeviceStep,
    DeviceWork,
    FilesStep,
    ScanStep,
    StepAnswer,
    ToolStep,
    WriteStep,
)
from flowos.engine._ask import ask
from flowos.model import NodeDevice

_ATTEMPT_FAILED = 1


def do(work: DeviceWork) -> NodeDevice:
    """Take its steps until one fails. Raises DeviceError as its reader does."""
    answers: list[StepAnswer] = []
    for step in work.steps:
        answers.append(take(step))
        if answers[-1].code:
            break
    return work.read(answers)


@singledispatch
def take(step: DeviceStep) -> StepAnswer:
    raise TypeError(step)


@take.register
def _tool(step: ToolStep) -> StepAnswer:
    def run() -> StepAnswer:
        said = ask(step.argv, seconds=step.seconds)
        text = b"\n".join((said.stdout, said.stderr)).replace(b"\r", b"\n")
        return StepAnswer(said.code, text.decode(errors="replace"))

    return _answered(run)


@take.register
def _files(step: FilesStep) -> StepAnswer:
    lines = []
    for path in sorted(Path(step.folder).glob(step.pattern)):
        try:
            text = path.read_text(errors="replace")
        except OSError:  # it went meanwhile
            continue
        lines.append(f"{path}={(text.splitlines() or [''])[0]}")
    return StepAnswer(0, "\n".join(lines))


@take.register
def _write(step: WriteStep) -> StepAnswer:
    def write() -> StepAnswer:
        with Path(step.path).open("r+") as file:
            file.write(step.text)
        return StepAnswer(0)

    return _answered(write)


@take.register
def _copy(step: CopyStep) -> StepAnswer:
    def copy() -> StepAnswer:
        shutil.copyfile(step.source, step.target)
        return StepAnswer(0)

    return _answered(copy)


@take.register
def _scan(step: ScanStep) -> StepAnswer:
    return _answered(lambda: StepAnswer(0, bits=_clocked(step)))


def _clocked(step: ScanStep) -> int:
    """The request in one piece: in several, each would wait for the last one's acknowledgement."""
    host, _, port = step.address.partition(":")
    size = (step.count + 7) // 8
    words = [step.count.to_bytes(4, "little")]
    words += [value.to_bytes(size, "little") for value in (step.tms, step.tdi)]
    with socket.create_connection((host, int(port)), step.seconds) as wire:
        wire.sendall(b"shift:" + b"".join(words))
        found = b""
        while len(found) < size:
            more = wire.recv(size - len(found))
            if not more:
                raise ConnectionResetError(errno.ECONNRESET, "it was closed by the other side")
            found += more
    return int.from_bytes(found, "little")


def _answered(act: Callable[[], StepAnswer]) -> StepAnswer:
    try:
        return act()
    except FileNotFoundError as error:
        return StepAnswer(MISSING, str(error.strerror))
    except PermissionError as error:
        return StepAnswer(NOT_ALLOWED, str(error.strerror))
    except TimeoutError as error:
        return StepAnswer(TOO_LATE, str(error))
    except OSError as error:
        return StepAnswer(_ATTEMPT_FAILED, error.strerror or str(error))
