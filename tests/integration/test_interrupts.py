"""A signal ends a command wherever its main thread is at that moment."""

import signal
import subprocess
import sys

import pytest

FINALIZED = """\
import os, sys, time
from flowos.cli._interrupts import how_ended, raise_on_signals, wake_for_interrupts

class Ended:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(0)  # the signal is seen here

wake_for_interrupts()
raise_on_signals()
try:
    Ended()
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(how_ended()[0])
"""
OTHERS = """\
from flowos.cli._interrupts import wake_for_interrupts

class Fails:
    def __del__(self):
        raise ValueError("of a library's own")

wake_for_interrupts()
Fails()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_in_a_finalizer_is_raised_after_it(number: int) -> None:
    script = FINALIZED.format(number=int(number))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + number, "")


def test_other_errors_of_finalizers_are_printed_as_python_does() -> None:
    done = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, text=True)
    assert done.returncode == 0
    assert "ValueError: of a library's own" in done.stderr
