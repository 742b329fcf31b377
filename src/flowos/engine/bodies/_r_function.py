"""A function in R, called with the values of a task."""

from collections.abc import Callable
from itertools import count
from typing import Any

from flowos.engine.bodies._kept import CompileFailed
from flowos.engine.bodies._prepared import BodyError, PreparedBody
from flowos.engine.bodies._r_channel import RAnswer
from flowos.engine.bodies._r_process import OneProcess, RProcess
from flowos.engine.bodies._r_values import as_texts, received, sent, texts_at, wanted, write
from flowos.model import NativePorts, PortIncompatible, SourceCode

__flowos_frames__ = True
_TEACH, _CALL = 1, 2
_GOOD, _ERROR = 0, 1
_numbers = count(1)


class RFunction(PreparedBody):
    """Each process of R is taught it once."""

    __slots__ = ("_number", "code", "entry", "ports")

    def __init__(self, code: SourceCode, entry: str, ports: NativePorts) -> None:
        super().__init__()
        self.code, self.entry, self.ports = code, entry, ports
        self._number = 0

    def __reduce__(self) -> tuple[object, ...]:
        return RFunction, (self.code, self.entry, self.ports)

    def _prepared(self) -> Callable[..., Any]:
        self._number = next(_numbers)
        return self._run

    def _run(self, *values: Any) -> Any:
        ports = self.ports
        shapes = ports.shapes(ports.sizes(values))
        given = [sent(port, value) for port, value in zip(ports.inputs, values, strict=True)]
        told = [number for numbers, _, _ in given for number in numbers]
        with OneProcess() as process:
            if self._number not in process.taught:
                self._teach(process)
            try:
                write(process.channel.room(sum(size for _, size, _ in given)), given)
                answer = process.ask(_CALL, (self._number, *told, *wanted(ports, shapes)))
                if answer.status != _GOOD:
                    raise self._complaint(answer, BodyError)
                return received(ports, shapes, answer.numbers, answer.values)
            finally:
                process.channel.give_back()

    def _teach(self, process: RProcess) -> None:
        code, ports = self.code, self.ports
        names = [[port.name for port in each] for each in (ports.inputs, ports.outputs)]
        texts = [self.entry, code.name, code.text, *names[0], *names[1]]
        size, content = as_texts(code.name, texts)
        process.channel.room(size)[:] = content
        answer = process.ask(_TEACH, (self._number, len(names[0]), len(texts), size))
        if answer.status != _GOOD:
            raise self._complaint(answer, CompileFailed)
        process.taught.add(self._number)

    def _complaint(self, answer: RAnswer, kind: type[Exception]) -> Exception:
        if answer.status == _ERROR:
            (what, file, line, function), _ = texts_at(answer.values, 0, 4, "replace")
            return kind(_said(what, file, line, function))
        (name, why), _ = texts_at(answer.values, 0, 2, "replace")
        return PortIncompatible(f"output {name!r}: {why}" if name else why)


def _said(what: str, file: str, line: str, function: str) -> str:
    """As compilers say it, on one line."""
    if not file:  # the parser names it, and shows its lines below
        return what.partition("\n")[0]
    within = f"{function}: " if function else ""
    return f"{file}:{line}: {within}{' '.join(what.split())}"
