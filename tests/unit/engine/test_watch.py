"""The thread that watches launches."""

import threading
import time

from flowos.engine.launch._watch import Watch


def test_an_alarm_in_many_days_leaves_the_others() -> None:
    watch, rang = Watch(), threading.Event()

    def set_alarms() -> None:
        watch.at(time.monotonic() + 1e9, lambda: None)
        watch.ask(lambda: watch.at(time.monotonic() + 0.01, rang.set))

    watch.ask(set_alarms)
    assert rang.wait(50)
