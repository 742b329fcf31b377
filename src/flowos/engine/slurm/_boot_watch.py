"""Nodes of a job that Slurm boots into another kernel before it starts."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from flowos.drivers.allocators.slurm import job_name
from flowos.drivers.allocators.slurm_kernels import (
    booting_words,
    read_booted,
    read_booting,
    read_down,
    states_words,
)
from flowos.engine.slurm._commands import answered
from flowos.model import Ask, SliceRefused

_ASK_AGAIN_SECONDS, _QUEUED_SECONDS = 0.1, 1.0
"""While nodes are booted; at most, while the job waits for them: each is a question to Slurm."""


class BootWatch:
    """Around the wait for a job: it asks Slurm which of its nodes are booted.

    on_booting: gets them, once. Of an ask without a kernel it does nothing.
    """

    def __init__(self, ask: Ask, on_booting: Callable[[str], None]) -> None:
        self._ask, self._on_booting = ask, on_booting
        self._over = threading.Event()
        self._booted: tuple[str, ...] = ()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        if self._ask.kernel:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raises SliceRefused which names nodes that did not come back, if it ends by that."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        if isinstance(error, SliceRefused) and self._booted:
            why = self._why_down()
            if why:
                raise SliceRefused(why) from None

    def _look(self) -> None:
        name, seconds = job_name(self._ask.id), _ASK_AGAIN_SECONDS
        while not self._over.wait(seconds):
            seconds = min(1.5 * seconds, _QUEUED_SECONDS)
            try:
                nodes = answered(booting_words(name), read_booting)
                booted = answered(states_words(nodes), read_booted) if nodes else ()
            except SliceRefused:  # it may answer again
                continue
            if nodes:
                seconds = _ASK_AGAIN_SECONDS
            if booted:
                self._booted = booted
                self._on_booting(f"{', '.join(booted)} into {self._ask.kernel}")
                return

    def _why_down(self) -> str:
        try:
            down = answered(states_words(self._booted), read_down)
        except SliceRefused:
            return ""
        names = ", ".join(name for name, _ in down)
        whys = ", ".join(dict.fromkeys(why for _, why in down))
        return f"{names} did not come back with kernel {self._ask.kernel!r}: {whys}" if down else ""
