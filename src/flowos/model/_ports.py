"""What may cross between tasks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortType:
    """A type of port. `check` answers with a complaint or None; files are checked by the engine."""

    name: str

    def check(self, value: object) -> str | None:
        """Say what is wrong with `value`, or None."""
        return None


any_ = PortType("any_")
File = PortType("File")
str_ = PortType("str_")
int64 = PortType("int64")
