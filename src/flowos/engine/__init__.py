"""The only room with processes, sockets, sleep and clock."""

from flowos.engine._state import Look, look, state_between

__all__ = ["Look", "look", "state_between"]
