"""CPU time of the Python thread that takes a batch that is ready.

`python python_cost.py FOLDER`: prints one line of JSON. Batches are ready before they are taken, so
that waiting and waking up are not counted.
"""

import json
import statistics
import sys
import time
from itertools import islice

import flowos as fo

BATCH_SIZE, TAKEN, READY, TURNS = 32, 50, 52, 20
PATIENCE_SECONDS = 10.0


def main(folder: str) -> None:
    costs: list[float] = []
    feed = fo.Feed(folder, batch_size=BATCH_SIZE)
    for number in range(TURNS):
        batches = feed.epoch(number)
        next(batches)
        wait_for(feed, READY)
        began = time.thread_time_ns()
        taken = 0
        for _, _ in islice(batches, TAKEN):
            taken += 1
        costs.append((time.thread_time_ns() - began) * 1e-9 / taken)
    print(json.dumps({"seconds_per_batch": statistics.median(costs), "turns": sorted(costs)}))


def wait_for(feed: fo.Feed, ready: int) -> None:
    late = time.monotonic() + PATIENCE_SECONDS
    while feed.stats().ready < ready:
        if time.monotonic() > late:
            raise SystemExit(f"only {feed.stats().ready} batches were ready after 10 s")
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1])
