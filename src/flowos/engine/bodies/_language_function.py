"""A function in a language whose program runs it, called with the values of a task."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, ClassVar

from flowos.engine.bodies._kept import CompileFailed
from flowos.engine.bodies._language_channel import LanguageAnswer
from flowos.engine.bodies._language_process import LanguageProcess, LanguageProgram, OneProcess
from flowos.engine.bodies._language_values import Sent, as_texts, texts_at, write
from flowos.engine.bodies._prepared import BodyError, PreparedBody
from flowos.model import NativePorts, PortIncompatible, PortSpec, SourceCode

__flowos_frames__ = True
_TEACH, _CALL = 1, 2
_GOOD, _ERROR = 0, 1
Shapes = Sequence[Sequence[int]]
_numbers = count(1)


class LanguageFunction(PreparedBody):
    """Each process is taught it once."""

    __slots__ = ("_number", "code", "entry", "ports")
    program: ClassVar[LanguageProgram]

    def __init__(self, code: SourceCode, entry: str, ports: NativePorts) -> None:
        super().__init__()
        self.code, self.entry, self.ports = code, entry, ports
        self._number = 0

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.entry, self.ports)

    def _sent(self, port: PortSpec, value: Any) -> Sent:
        """PortIncompatible for a value that the language would not have as it is."""
        raise NotImplementedError

    def _wanted(self, shapes: Shapes) -> Sequence[float]:
        """What the language has to know of the outputs."""
        raise NotImplementedError

    def _received(self, shapes: Shapes, answer: LanguageAnswer) -> Any:
        """What a task gives. PortIncompatible if it has no such value."""
        raise NotImplementedError

    def _taken(self) -> Sequence[float]:
        """What the language has to know of the inputs before a call."""
        return ()

    def _prepared(self) -> Callable[..., Any]:
        self._number = next(_numbers)
        return self._run

    def _run(self, *values: Any) -> Any:
        ports = self.ports
        shapes = ports.shapes(ports.sizes(values))
        given = [self._sent(port, value) for port, value in zip(ports.inputs, values, strict=True)]
        about = [number for numbers, _, _ in given for number in numbers]
        with OneProcess(self.program) as process:
            if self._number not in process.taught:
                self._teach(process)
            try:
                write(process.channel.room(sum(size for _, size, _ in given)), given)
                answer = process.ask(_CALL, (self._number, *about, *self._wanted(shapes)))
                if answer.status != _GOOD:
                    raise self._complaint(answer, BodyError)
                return self._received(shapes, answer)
            finally:
                process.channel.give_back()

    def _teach(self, process: LanguageProcess) -> None:
        code, ports = self.code, self.ports
        names = [[port.name for port in each] for each in (ports.inputs, ports.outputs)]
        texts = [self.entry, code.name, code.text, *names[0], *names[1]]
        size, content = as_texts(code.name, texts)
        process.channel.room(size)[:] = content
        about = (self._number, len(names[0]), len(texts), size, *self._taken())
        answer = process.ask(_TEACH, about)
        if answer.status != _GOOD:
            raise self._complaint(answer, CompileFailed)
        process.taught.add(self._number)

    def _complaint(self, answer: LanguageAnswer, kind: type[Exception]) -> Exception:
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
