"""How long is waited before a source is tried again."""

import email.utils
import logging
import random
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace

import pytest

from flowos.feeder._retry import Retry, _pause_after
from flowos.feeder._retry_after import LONGEST_SECONDS, asked_pause


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(7)


@pytest.mark.parametrize("tries", [*range(12), 100, 1023, 1024, 10**6])
def test_pauses_are_spread_around_a_time_that_doubles_up_to_a_quarter_of_a_minute(
    tries: int,
) -> None:
    middle = min(0.1 * 2 ** min(tries, 20), 15.0)
    pauses = [_pause_after(tries) for _ in range(400)]
    assert all(0.5 * middle <= pause <= 1.5 * middle for pause in pauses)
    in_tenths = {int(10 * (pause / middle - 0.5)) for pause in pauses}
    assert in_tenths >= set(range(10)), "some of the range is never drawn"


def test_callers_that_failed_together_do_not_come_back_together() -> None:
    pauses = sorted(_pause_after(5) for _ in range(100))
    assert len(set(pauses)) == 100
    assert max(b - a for a, b in pairwise(pauses)) < 0.2 * 3.2


class Clock:
    """Seconds that pass when a call is made, or a pause."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.calls = 1000.0, 0
        monkeypatch.setattr("flowos.feeder._retry.time.monotonic", lambda: self.now)
        monkeypatch.setattr(threading.Event, "wait", lambda _, seconds: self.sleep(seconds))

    def sleep(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def call(self, *seconds: float) -> Callable[[], None]:
        """Each call takes so long, and fails; the last of them from there on."""

        def call() -> None:
            self.now += seconds[min(self.calls, len(seconds) - 1)]
            self.calls += 1
            raise TimeoutError("http://me:p@ss@host/x?sign=y said 503")

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "70")
    return Clock(monkeypatch)


def tried(call: Callable[[], None]) -> None:
    with pytest.raises(TimeoutError):
        Retry("s3://b")._again(call, lambda _: 70.0, lambda: False)


def test_what_says_nothing_is_logged_when_it_first_fails_and_ends_in_time(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        tried(clock.call(30))
    assert 70 <= clock.now - 1000 <= 100
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        "s3://b: tried without success for 30 seconds (TimeoutError: http://host/x said 503); "
        "trying again for up to 70 seconds (FLOWOS_FEED_RETRY_SECONDS)"
    )


def test_a_call_that_went_well_for_long_is_tried_again(clock: Clock) -> None:
    tried(clock.call(4000, 0))
    assert clock.calls > 3
    assert 4035 <= clock.now - 1000 <= 4036


class BusyError(OSError):
    """As of the packages that read over HTTP."""

    def __init__(self, **headers: str) -> None:
        super().__init__("503")
        named = {name.replace("_", "-"): said for name, said in headers.items()}
        self.response = SimpleNamespace(status_code=503, headers=named)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("99999999999999999999", LONGEST_SECONDS),
        ("-5", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 9999 07:28:00 GMT", LONGEST_SECONDS),
    ],
)
def test_what_a_server_asks_for_is_read_up_to_a_limit(said: str, seconds: float) -> None:
    assert asked_pause(BusyError(Retry_After=said)) == seconds
    assert asked_pause(BusyError()) == asked_pause(OSError("no answer")) == 0.0


def test_a_date_is_so_many_seconds_from_now() -> None:
    said = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert 50 < asked_pause(BusyError(retry_after=said)) <= 60


def test_no_call_is_made_before_the_server_asks_for_it(clock: Clock) -> None:
    calls: list[float] = []

    def call() -> float:
        calls.append(clock.now)
        if len(calls) < 3:
            raise BusyError(Retry_After="20")
        return clock.now

    assert Retry("hf://d")._again(call, lambda _: 70.0, lambda: False) == calls[-1]
    assert all(20 <= later - earlier < 21 for earlier, later in pairwise(calls))


def test_a_server_that_asks_for_more_than_there_is_left_is_not_called_again(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[float] = []

    def call() -> None:
        calls.append(clock.now)
        clock.now += 5
        raise BusyError(Retry_After="60" if len(calls) == 1 else "3600")

    with pytest.raises(BusyError):
        Retry("hf://d")._again(call, lambda _: 70.0, lambda: False)
    assert calls == [1000.0, pytest.approx(1065.0, abs=0.3)]
    assert len(caplog.messages) == 1, "nothing is said of trying again where it is not"
