"""When a process has ended: from what the kernel says of it."""

import pytest

from flowos.engine.launch._end_reasons import runs

STAT = b"71 (a ) b) %s 1 71 71 0 -1 %d 100 0 0 0 1 2 0 0 20 0 1 0 99 0 0"


@pytest.mark.parametrize(
    ("state", "flags", "expected"),
    [
        (b"S", 0x400000, True),
        (b"R", 0x400040, True),
        (b"R", 0x400004, False),  # it is being ended: its files are closed, its memory goes
        (b"D", 0x400144, False),
        (b"Z", 0x40000C, False),
        (b"X", 0x400000, False),
    ],
)
def test_a_process_that_the_kernel_is_ending_runs_no_more(
    state: bytes, flags: int, expected: bool
) -> None:
    assert runs(STAT % (state, flags)) is expected
