"""A thread that finds the lock of an executor taken."""

import threading

from flowos.engine.flow._roster import yield_to_holder


def test_it_stands_in_line_in_the_end_for_a_lock_that_is_not_released() -> None:
    lock = threading.Lock()
    with lock:
        yield_to_holder(lock)
        assert lock.locked()


def test_it_lets_the_holder_go_on() -> None:
    lock, begun = threading.Lock(), threading.Event()
    turns = 0

    def hold() -> None:
        nonlocal turns
        with lock:
            begun.set()
            while turns < 5:
                turns += 1

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    while lock.locked():
        yield_to_holder(lock)
    thread.join()
    assert turns == 5
