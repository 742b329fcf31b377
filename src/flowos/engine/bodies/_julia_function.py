"""A function in Julia, called with the values of a task."""

from typing import Any

from flowos.engine.bodies._julia_values import received, sent, taken, wanted
from flowos.engine.bodies._language_channel import LanguageAnswer
from flowos.engine.bodies._language_function import LanguageFunction, Shapes
from flowos.engine.bodies._language_process import LanguageProgram
from flowos.engine.bodies._language_values import Sent
from flowos.model import PortSpec

__flowos_frames__ = True
DOWNLOADS = "https://julialang.org/downloads"
_OPTIONS = ("--startup-file=no", "--history-file=no", "--color=no")
JULIA = LanguageProgram("Julia", "julia", _OPTIONS, "julia/julia_process.jl", f"see {DOWNLOADS}")


class JuliaFunction(LanguageFunction):
    """Runs in processes of Julia."""

    __slots__ = ()
    program = JULIA

    def _sent(self, port: PortSpec, value: Any) -> Sent:
        return sent(port, value)

    def _wanted(self, shapes: Shapes) -> list[float]:
        return wanted(self.ports, shapes)

    def _received(self, shapes: Shapes, answer: LanguageAnswer) -> Any:
        return received(self.ports, shapes, answer.numbers, answer.values)

    def _taken(self) -> list[float]:
        return [number for port in self.ports.inputs for number in taken(port)]
