"""For which stage all else waits: decided from what was counted."""

import time

import pytest

from flowos.feeder import Binding, binding
from flowos.feeder._decoding import Wait
from flowos.feeder._stages import CONSUMER, DecodeTimes, FeedTimes, bound

NONE = {"fetch": 0.0, "decode": 0.0, "cache_write": 0.0, "hand_over": 0.0, CONSUMER: 0.0}


def test_the_stage_that_was_waited_for_longest_binds() -> None:
    found = binding({**NONE, "fetch": 6.0, "decode": 1.0, CONSUMER: 1.0})
    assert found == Binding("fetch", 0.75, 0.125)


def test_it_binds_also_where_the_consumer_is_at_work_for_most_of_the_time() -> None:
    found = binding({**NONE, "fetch": 1.0, "decode": 2.0, CONSUMER: 5.0})
    assert found == Binding("decode", 0.25, 0.625)


def test_a_consumer_that_hardly_waits_binds() -> None:
    assert binding({**NONE, "fetch": 0.25, CONSUMER: 7.75}) == Binding(CONSUMER, 0.96875, 0.96875)


def test_what_was_before_does_not_count() -> None:
    before = {**NONE, "list": 8.0, "fetch": 6.0}
    now = {**NONE, "list": 8.0, "fetch": 6.5, "cache_write": 1.5}
    assert binding(now) == Binding("list", 0.5)
    assert binding(now, before) == Binding("cache_write", 0.75)
    assert binding(now, now) is None
    assert binding({}) is None


def test_it_says_so_in_words() -> None:
    assert str(Binding("cache_write", 0.834, 0.1)) == "cache write binds, 83%"
    assert str(Binding("decode", 0.08, 0.9)) == "decode binds, 8%; consumer 90%"
    assert str(Binding(CONSUMER, 0.96, 0.96)) == "consumer binds, 96%"


def test_reads_are_waited_for_where_a_thread_has_nothing_to_do() -> None:
    now = FeedTimes(consumer=1.0, reads=2.0, threads=0.5, working=(0.0, 0.3, 0.1, 0.0))
    found = bound(FeedTimes(), now)
    assert found == pytest.approx(
        {**NONE, CONSUMER: 1.0, "fetch": 2.0, "decode": 0.375} | {"cache_write": 0.125}
    )


def test_where_all_threads_work_it_is_divided_by_their_work_since_the_last_look() -> None:
    early = FeedTimes(consumer=1.0, threads=5.0, working=(9.0, 0.0, 0.0, 0.0))
    late = FeedTimes(consumer=1.0, threads=9.0, working=(10.0, 2.0, 0.0, 1.0))
    found = bound(early, late)
    assert found == pytest.approx({**NONE, "fetch": 1.0, "decode": 2.0, "hand_over": 1.0})


def test_a_decode_function_is_waited_for_by_the_consumer_itself() -> None:
    python = DecodeTimes(began_late=1.0, decoded_late=4.0, put_together=0.5)
    found = bound(
        FeedTimes(),
        FeedTimes(consumer=2.0, reads=6.0, threads=2.0, working=(1.0, 0, 0, 0), python=python),
    )
    assert found == pytest.approx(
        {**NONE, "fetch": 1.0, "decode": 4.0, "hand_over": 0.5, CONSUMER: 4.5}
    )


def test_a_batch_that_the_feeder_had_ready_begins_late_by_its_own_fault() -> None:
    early = FeedTimes(python=DecodeTimes(decoded_late=1.0))
    late = FeedTimes(consumer=3.0, python=DecodeTimes(began_late=0.5, decoded_late=2.0))
    assert bound(early, late) == {**NONE, "fetch": 0.5, "decode": 1.0, CONSUMER: 1.5}


def test_a_wait_that_lasts_counts_already() -> None:
    wait = Wait()
    assert wait.seconds() == 0.0
    with wait:
        time.sleep(0.01)
        during = wait.seconds()
    assert 0.01 <= during <= wait.seconds()
    assert wait.seconds() == wait.seconds()
