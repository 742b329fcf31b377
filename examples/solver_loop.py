"""Heat in a plate: its two halves are relaxed side by side, round after round, until they agree.

The halves overlap (Schwarz's method). Each round is two tasks at once, one that joins what they
give, and one that says whether it changed; the loop is a task like all others.
"""

import numpy as np
from numpy.typing import NDArray

import flowos as fo

Plate = NDArray[np.float64]
SIZE, OVERLAP, SWEEPS = 96, 16, 50
MAX_CHANGE = 1e-5


@fo.task
def relaxed(plate: Plate, first: fo.int64, last: fo.int64) -> Plate:
    """Rows first..last after some sweeps, in which the rows at their ends stay."""
    rows = np.array(plate[first:last])
    for _ in range(SWEEPS):
        around = rows[:-2, 1:-1] + rows[2:, 1:-1] + rows[1:-1, :-2] + rows[1:-1, 2:]
        rows[1:-1, 1:-1] = around / 4
    return rows


@fo.task
def joined(upper: Plate, lower: Plate) -> Plate:
    half = SIZE // 2
    return np.concatenate([upper[:half], lower[half - SIZE :]])


@fo.task
def change(before: Plate, after: Plate) -> fo.float64:
    return float(np.abs(after - before).max())


@fo.task
def plus_one(count: fo.int64) -> fo.int64:
    return count + 1


@fo.task
def is_small(change: fo.float64) -> fo.bool_:
    return change < MAX_CHANGE


def flow_of_plate(max_rounds: int = 500) -> fo.Flow:
    """From a plate to the one in balance, the rounds that it took, and its last change."""
    plate, rounds = fo.flow_input("plate", Plate), fo.flow_input("rounds", fo.int64)
    upper = relaxed(plate, 0, SIZE // 2 + OVERLAP)
    lower = relaxed(plate, SIZE // 2 - OVERLAP, SIZE)
    after = joined(upper, lower)
    one_round = fo.flow_output(after, plus_one(rounds), change(plate, after), name="round")
    return fo.flow_output(
        fo.loop(
            one_round,
            fo.flow_input("start", Plate),
            0,
            until=lambda _plate, _rounds, last: is_small(last),
            max_rounds=max_rounds,
        )
    )


def cold_plate() -> Plate:
    """Its upper edge is hot."""
    plate = np.zeros((SIZE, SIZE))
    plate[0] = 100.0
    return plate


if __name__ == "__main__":
    with fo.slice(flow_of_plate()) as s:
        plate, rounds, _ = s.run(cold_plate())
    middle = np.asarray(plate)[SIZE // 2, SIZE // 2]
    print(f"{rounds} rounds; {middle:.2f} degrees in the middle")
    with fo.slice(flow_of_plate(max_rounds=3)) as s:
        try:
            s.run(cold_plate())
        except fo.RoundLimitExceeded as error:
            print(type(error).__name__, "after 3 rounds")
