"""A signal ends a command wherever its main thread is at that moment."""

import signal
import subprocess
import sys

import pytest

FINALIZED = """\
import os, signal, sys, time
from flowos.cli._interrupts import how_ended, raise_on_signals, wake_for_interrupts

class Ended:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(0)  # the signal is seen here

signal.signal({number}, signal.default_int_handler)  # it may be ignored, as under nohup
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

AT_EXIT = """\
import atexit, os, signal, threading, time
from flowos.cli._interrupts import wake_for_interrupts

def clean():
    time.sleep(0.3)
    print("cleaned")

def interrupts():
    while threading.main_thread().is_alive():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
    left.wait()

wake_for_interrupts()
left = threading.Event()
atexit.register(left.set)
atexit.register(clean)
threading.Thread(target=interrupts).start()
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


def test_an_interrupt_at_the_exit_ends_the_wait_for_threads_and_no_cleaning() -> None:
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "cleaned\n")
