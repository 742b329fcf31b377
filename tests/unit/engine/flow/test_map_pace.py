"""How many items of a `map` go into a batch, from how long the last ones took."""

import pytest

from flowos.engine.flow._pace import BatchPace, Items


def learned(pace: BatchPace, *times: tuple[int, float, float]) -> BatchPace:
    for items, seconds, worked in times:
        pace.learn(items, seconds, worked)
    return pace


QUICK = (1, 2e-6, 2e-6)


def test_batches_begin_once_two_items_a_place_did_not_wait() -> None:
    pace = BatchPace(places=2)
    assert learned(pace, QUICK, QUICK, QUICK).size == 1
    assert learned(pace, QUICK).size == 4
    assert learned(pace, (4, 8e-6, 8e-6)).size == 16


@pytest.mark.parametrize(
    ("each", "size"),
    [(2e-6, 500), (1e-7, 1024), (1e-5, 100), (1e-4, 10), (6e-4, 1), (1e-3, 1), (1.0, 1)],
)
def test_a_batch_takes_about_a_millisecond(each: float, size: int) -> None:
    assert learned(BatchPace(places=1), *[(256, 256 * each, 256 * each)] * 3).size == size


def test_items_that_wait_run_alone_until_many_did_not() -> None:
    pace = learned(BatchPace(places=2), *[QUICK] * 4, (4, 1e-2, 1e-5))
    assert pace.size == 1
    assert learned(pace, *[QUICK] * 63).size == 1
    assert learned(pace, QUICK).size == 4


@pytest.mark.parametrize(("ahead", "most"), [(0, 1), (3, 1), (9, 2), (1000, 200)])
def test_batches_leave_room_for_as_many_as_may_be_in_flight(ahead: int, most: int) -> None:
    pace = learned(BatchPace(places=2, ahead=ahead), *[QUICK] * 4, *[(256, 2.6e-4, 2.6e-4)] * 4)
    assert pace.size == most
    assert pace.limit == ahead + 1


def test_quick_items_of_threads_are_run_by_the_caller_alone() -> None:
    slow, quick = BatchPace(places=2, threads=True), BatchPace(places=2, threads=True)
    learned(slow, *[(1, 1.7e-5, 1.7e-5)] * 4)
    learned(quick, *[(1, 1.5e-5, 1.5e-5)] * 4)
    assert (slow.size, slow.limit) == (4, 5 * 4)
    assert (quick.size, quick.limit) == (4, 4)
    assert learned(BatchPace(places=2), *[QUICK] * 4).limit == 5 * 4


def test_what_is_left_of_a_block_after_a_refused_item_comes_before_the_next_block() -> None:
    asked: list[int] = []

    def more(count: int) -> list[object]:
        asked.append(count)
        return [1, "two", 3, 4][:count] if len(asked) == 1 else []

    def checked(item: object) -> list[object]:
        if isinstance(item, str):
            raise TypeError(item)
        return [item]

    items = Items(iter(()), checked, more)
    assert (items.take(4), items.refused) == ([[1]], True)
    items.go_on()
    assert [items.take(1), items.take(8)] == [[[3]], [[4]]]
    assert (items.take(8), items.error) == ([], None)
    assert asked == [4, 8]
