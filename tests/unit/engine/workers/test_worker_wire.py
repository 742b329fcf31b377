"""The wire of worker processes, and the memory that arrays cross in."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowos.engine.workers._blobs import Unpackable, pack
from flowos.engine.workers._functions import by_value, facts_of, named
from flowos.engine.workers._values import (
    OUT_OF_BAND,
    MappingGone,
    Parcel,
    Slab,
    SlabPool,
    TooLarge,
    unpack,
)
from flowos.engine.workers.worker import AWAKE_SECONDS, FDS_PER_PACKET, PACKET, Channel

Pair = tuple[Channel, Channel]


@pytest.fixture
def ends() -> Iterator[Pair]:
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    yield Channel(a), Channel(b)
    a.close()
    b.close()


@pytest.mark.parametrize("size", [0, 1, PACKET - 50, PACKET, PACKET + 1, 5_000_000])
def test_messages_of_any_size_arrive_whole(ends: Pair, size: int) -> None:
    message = ("kind", "x" * size)
    ends[0].send(message)
    assert ends[1].receive() == (message, [])


@pytest.mark.parametrize("size", [0, 1_000_000])
@pytest.mark.parametrize("count", [1, FDS_PER_PACKET, FDS_PER_PACKET + 1, 3 * FDS_PER_PACKET])
def test_descriptors_arrive_in_order_and_are_not_inherited(
    ends: Pair, count: int, size: int
) -> None:
    fd = os.memfd_create("test")
    other = os.memfd_create("other")
    files = [(other, 0), *[(fd, 0)] * (count - 1)]
    sender = threading.Thread(target=ends[0].send, args=("x" * size, files))
    sender.start()
    message, fds = ends[1].receive()
    sender.join()
    try:
        assert message == "x" * size
        assert len(fds) == count
        assert os.path.sameopenfile(fds[0], other)
        assert all(os.path.sameopenfile(f, fd) for f in fds[1:])
        assert not any(map(os.get_inheritable, fds))
    finally:
        for each in (fd, other, *fds):
            os.close(each)


def test_an_end_that_is_gone_is_an_end_of_file(ends: Pair) -> None:
    ends[0].close()
    with pytest.raises(EOFError):
        ends[1].receive()


@pytest.mark.parametrize("seconds", [0.0, 20 * AWAKE_SECONDS])
def test_an_end_that_goes_is_seen_awake_and_asleep(ends: Pair, seconds: float) -> None:
    timer = threading.Timer(seconds, ends[0].sock.shutdown, [socket.SHUT_RDWR])
    timer.start()
    with pytest.raises(EOFError):
        ends[1].receive()
    timer.join()


def test_messages_that_come_soon_or_late_arrive_in_order(ends: Pair) -> None:
    pauses = [0.0, AWAKE_SECONDS / 2, AWAKE_SECONDS, 20 * AWAKE_SECONDS] * 5

    def send() -> None:
        for number, pause in enumerate(pauses):
            time.sleep(pause)
            ends[0].send((number,))

    sender = threading.Thread(target=send)
    sender.start()
    assert [ends[1].receive()[0] for _ in pauses] == [(n,) for n in range(len(pauses))]
    sender.join()


def test_a_signal_that_does_not_raise_interrupts_no_message(ends: Pair) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    sender = threading.Timer(0.1, ends[0].send, ["late"])
    try:
        sender.start()
        assert ends[1].receive() == ("late", [])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sender.join()


def test_a_signal_that_raises_leaves_and_the_next_message_is_whole(ends: Pair) -> None:
    class LeavesError(Exception):
        pass

    def leave(*_: object) -> None:
        raise LeavesError

    def wait() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        ends[1].receive()

    before = signal.signal(signal.SIGALRM, leave)
    try:
        with pytest.raises(LeavesError):
            wait()
        ends[0].send("next")
        assert ends[1].receive() == ("next", [])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_closed_channel_is_an_error_at_once(ends: Pair) -> None:
    ends[1].close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        ends[1].receive()


def test_a_default_timeout_of_sockets_is_not_ours() -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.01)
    try:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    finally:
        socket.setdefaulttimeout(before)
    one, other = Channel(a), Channel(b)
    sender = threading.Timer(0.1, one.send, ["late"])
    sender.start()
    assert other.receive() == ("late", [])
    sender.join()
    one.close()
    other.close()


class Large:
    """Gives its bytes out of band, as arrays do."""

    def __init__(self, content: bytearray) -> None:
        self.content = content

    def __reduce_ex__(self, _: Any) -> Any:
        import pickle

        return Large, (pickle.PickleBuffer(self.content),)


def test_buffers_lie_aligned_in_one_file_and_small_ones_stay_in_the_pickle() -> None:
    parcel, pool = Parcel(), SlabPool(0, 1 << 20, 8)
    wired = [parcel.add(Large(bytearray(n))) for n in (OUT_OF_BAND + 1, 10, OUT_OF_BAND)]
    spans = [s for _, spans in wired for s in spans]
    assert [end - start for start, end in spans] == [OUT_OF_BAND + 1, OUT_OF_BAND]
    assert all(start % 64 == 0 for start, _ in spans)
    assert parcel.size == spans[-1][1]
    _, slab = pool.take(parcel.size)
    parcel.fill(slab)
    back = unpack(wired[2][0], wired[2][1], slab.fd, parcel.size, None)
    assert bytes(back.content) == bytes(OUT_OF_BAND)
    pool.close()


def test_a_value_that_pickles_only_by_value_leaves_nothing_of_the_first_try() -> None:
    class Local(Large):
        def __reduce_ex__(self, _: Any) -> Any:
            import pickle

            return (lambda b: bytes(b)), (pickle.PickleBuffer(self.content),)

    parcel = Parcel()
    _, spans = parcel.add(Local(bytearray(OUT_OF_BAND)))
    assert spans == ((0, OUT_OF_BAND),)


def test_plain_and_short_values_stand_for_themselves() -> None:
    parcel = Parcel()
    for value in (1, -(2**100), 1.5, True, None, "text", b"bytes"):
        assert parcel.add(value) is value
    assert type(parcel.add("x" * 5000)) is tuple


def test_what_is_written_to_a_mapping_is_seen_by_nobody_else() -> None:
    parcel, pool = Parcel(), SlabPool(0, 1 << 20, 8)
    wired = parcel.add(Large(bytearray(OUT_OF_BAND)))
    number, slab = pool.take(parcel.size)
    parcel.fill(slab)
    gone: list[int] = []
    first = unpack(wired[0], wired[1], slab.fd, parcel.size, MappingGone(number, gone))
    second = unpack(wired[0], wired[1], slab.fd, parcel.size, MappingGone(number, gone))
    first.content[0] = 7
    assert second.content[0] == 0
    assert slab.memory[0] == 0
    assert not gone
    del first
    assert gone == [number]
    del second
    assert gone == [number] * 2
    pool.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_mapping_that_a_forked_child_may_read_is_told_with_the_other_sign() -> None:
    gone: list[int] = []
    held = MappingGone(5, gone)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    del held
    assert gone == [-5]


def test_a_pool_uses_again_what_came_back_and_only_that() -> None:
    pool = SlabPool(100, 1 << 30, 8)
    (a, first), (b, second) = pool.take(100_000), pool.take(100_000)
    assert first is not second
    pool.returned.append(a)
    c, third = pool.take(120_000)
    assert third is first
    assert len({a, b, c}) == 3
    pool.returned.append(-b)
    _, fourth = pool.take(100_000)
    assert fourth is not second
    pool.close()


def test_a_pool_keeps_no_more_idle_than_it_may() -> None:
    pool = SlabPool(0, 1 << 20, 8)
    before = open_files()
    taken = [pool.take(1 << 19) for _ in range(8)]
    pool.returned.extend(number for number, _ in taken)
    number, _ = pool.take(1 << 16)
    kept = len(open_files() - before)
    assert kept == 2 * 3  # two idle, one lent; each mapped, which takes a descriptor too
    pool.returned.append(number)
    pool.close()
    assert open_files() == before


def test_memory_that_is_not_to_be_had_is_said_and_leaves_no_file() -> None:
    pool, before = SlabPool(0, 1 << 20, 8), open_files()
    with pytest.raises(MemoryError, match=f"no memory for {1 << 47} bytes"):
        pool.take(1 << 47)
    assert open_files() == before

    def take(_: int) -> tuple[int, Slab]:
        return pool.take(1 << 47)

    with pytest.raises(Unpackable) as refused:
        pack([1, Large(bytearray(OUT_OF_BAND))], pool.parcel, take, pool)
    assert refused.value.args == (1, f"no memory for {1 << 47} bytes")


def test_a_value_over_the_limit_leaves_the_parcel_as_it_was() -> None:
    parcel = Parcel(limit=(OUT_OF_BAND, "the memory of n1"))
    kept = parcel.add(Large(bytearray(OUT_OF_BAND - 1000)))
    size = parcel.size
    for large in (Large(bytearray(OUT_OF_BAND)), "x" * (OUT_OF_BAND + 1)):
        with pytest.raises(TooLarge, match=r"its 65\d+ bytes are more than the memory of n1"):
            parcel.add(large)
    assert parcel.size == size
    assert kept


def test_a_value_that_no_memory_is_left_to_copy_is_said_to_be_too_large() -> None:
    parcel = Parcel()
    with pytest.raises(TooLarge, match=r"^there is no memory for a copy of it; give parts of it, "):
        parcel.add(Copied())
    assert parcel.size == 0


class Copied:
    """Pickled as arrays of other classes are, by a copy of their bytes."""

    def __reduce__(self) -> tuple[type, tuple[bytes]]:
        return bytes, (bytes(1 << 47),)


def open_files() -> set[str]:
    return {p.name for p in Path("/proc/self/fd").iterdir()}


def made(source: str, name: str = "f") -> Any:
    space: dict[str, Any] = {"__name__": "somewhere"}
    exec(source, space)
    return space[name]


@pytest.mark.parametrize(
    "changed",
    [
        "K = 1\ndef g(x): return x + 1\ndef f(x, y=2): return g(x) + K * 3",
        "K = 2\ndef g(x): return x + 1\ndef f(x, y=2): return g(x) + K * 2",
        "K = 1\ndef g(x): return x + 2\ndef f(x, y=2): return g(x) + K * 2",
        "K = 1\ndef g(x): return x + 1\ndef f(x, y=3): return g(x) + K * 2",
        "K = 1.0\ndef g(x): return x + 1\ndef f(x, y=2): return g(x) + K * 2",
        "K = 1\ndef g(x): return x + 1\ndef f(x, y=2): return (lambda: g(x) + K * 4)()",
    ],
)
def test_facts_differ_where_code_helpers_constants_or_defaults_do(changed: str) -> None:
    original = "K = 1\ndef g(x): return x + 1\ndef f(x, y=2): return g(x) + K * 2"
    assert facts_of(made(original)) == facts_of(made("\n\n# moved\n" + original))
    assert facts_of(made(original)) != facts_of(made(changed))


def test_facts_know_closures_recursion_and_sets_in_any_order() -> None:
    closed = "def outer(n):\n  def f(x): return x in {'a', 'b', 'c'} or f(x) or n\n  return f\n"
    one, same, two = (made(closed + f"f = outer({n})") for n in (1, 1, 2))
    assert facts_of(one) == facts_of(same)
    assert facts_of(one) != facts_of(two)


def test_only_what_a_module_holds_under_its_name_has_a_name() -> None:
    assert named(made("def f(): pass")) is None
    assert named(lambda: 1) is None
    assert named(len) is None
    found = named(facts_of)
    assert found is not None
    assert found[:3] == ("name", "flowos.engine.workers._functions", "facts_of")
    assert by_value(facts_of) is None
    assert by_value(len) is not None
