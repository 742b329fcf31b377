"""A function in R, called with the values of a task."""

from typing import Any

from flowos.engine.bodies._language_channel import LanguageAnswer
from flowos.engine.bodies._language_function import LanguageFunction, Shapes
from flowos.engine.bodies._language_process import LanguageProgram
from flowos.engine.bodies._language_values import Sent
from flowos.engine.bodies._r_values import received, sent, wanted
from flowos.model import PortSpec

__flowos_frames__ = True
PACKAGE = "r-base-core"
R = LanguageProgram("R", "Rscript", (), "r/r_process.R", f"apt-get install {PACKAGE}")


class RFunction(LanguageFunction):
    """Runs in processes of R."""

    __slots__ = ()
    program = R

    def _sent(self, port: PortSpec, value: Any) -> Sent:
        return sent(port, value)

    def _wanted(self, shapes: Shapes) -> list[float]:
        return wanted(self.ports, shapes)

    def _received(self, shapes: Shapes, answer: LanguageAnswer) -> Any:
        return received(self.ports, shapes, answer.numbers, answer.values)
