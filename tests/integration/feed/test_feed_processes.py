"""Several processes over one cache, and processes that are killed while they feed."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import flowos as fo

from .shared import content, flat, make_folder

PROGRAM = """
import json, sys, time
import flowos as fo
data, cache, rank, world, pause = sys.argv[1:]
feed = fo.Feed(data, cache, batch_size=8, rank=int(rank), world_size=int(world))
taken = []
for samples, _ in feed.epoch(0):
    taken += samples.indices.tolist()
    time.sleep(float(pause))
    print(json.dumps(feed.state_dict()), flush=True)
feed.close()  # until then it reads ahead into the next epoch, also what others want in this one
stats = feed.stats()
print(json.dumps({"taken": taken, "source_bytes": stats.source_bytes, "stolen": stats.stolen}))
"""


def start(*words: object) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-W", "error", "-c", PROGRAM, *map(str, words)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def answer(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def test_four_processes_of_a_node_read_every_byte_once(tmp_path: Path) -> None:
    names = make_folder(tmp_path / "data", each=100)
    size = sum(len(content(name)) for name in names)
    cache = tmp_path / "cache"
    ranks = [start(tmp_path / "data", cache, rank, 4, 0) for rank in range(4)]
    found = [answer(rank) for rank in ranks]
    assert sorted(flat(each["taken"] for each in found)) == list(range(400))
    assert sum(each["source_bytes"] for each in found) == size
    everyone = [start(tmp_path / "data", cache, 0, 1, 0) for _ in range(4)]
    assert [answer(each)["source_bytes"] for each in everyone] == [0, 0, 0, 0]


def test_four_processes_that_want_the_same_fetch_it_once(tmp_path: Path) -> None:
    names = make_folder(tmp_path / "data", each=100)
    same = [start(tmp_path / "data", tmp_path / "cache", 0, 1, 0) for _ in range(4)]
    found = [answer(each) for each in same]
    assert sum(each["source_bytes"] for each in found) == sum(len(content(n)) for n in names)
    assert len({json.dumps(each["taken"]) for each in found}) == 1


@pytest.mark.parametrize("batches", [1, 4, 9])
def test_a_killed_process_is_resumed_where_it_was(tmp_path: Path, batches: int) -> None:
    names = make_folder(tmp_path / "data")
    cache = tmp_path / "cache"
    with fo.Feed(tmp_path / "data", batch_size=8) as plain:
        whole = [samples.indices.tolist() for samples, _ in plain.epoch(0)]
    process = start(tmp_path / "data", cache, 0, 1, 0.01)
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(batches)]
    process.kill()
    process.wait()
    process.stdout.close()
    with fo.Feed(tmp_path / "data", cache, batch_size=8) as feed:
        feed.load_state_dict(json.loads(lines[-1]))
        rest = []
        for samples, _ in feed.epoch(0):
            rest.append(samples.indices.tolist())
            for sample, data in zip(rest[-1], samples, strict=True):
                assert bytes(data) == content(names[sample])
        assert rest == whole[batches:]


def test_processes_that_are_killed_at_any_moment_leave_the_others_unharmed(tmp_path: Path) -> None:
    make_folder(tmp_path / "data", each=100)
    cache = tmp_path / "cache"
    chance = random.Random(4)
    until = time.monotonic() + 4.0
    while time.monotonic() < until:
        doomed = [start(tmp_path / "data", cache, 0, 1, 0.001) for _ in range(2)]
        living = start(tmp_path / "data", cache, 0, 1, 0)
        time.sleep(chance.uniform(0.1, 0.6))
        for process in doomed:
            process.kill()
        assert sorted(answer(living)["taken"]) == list(range(400))
        for process in doomed:
            process.communicate()
        (samples,) = cache.glob("*/samples")
        for segment in list(samples.glob("*.seg")) if chance.random() < 0.5 else []:
            os.utime(segment)


def test_a_flipped_byte_in_the_cache_is_fetched_again_and_counted(tmp_path: Path) -> None:
    names = make_folder(tmp_path / "data")
    cache = tmp_path / "cache"
    answer(start(tmp_path / "data", cache, 0, 1, 0))
    wanted = content(names[31])[:64]
    (segment,) = cache.glob("*/samples/*.seg")
    at = segment.read_bytes().index(wanted)
    with segment.open("r+b") as file:
        file.seek(at + 5)
        file.write(bytes([wanted[5] ^ 1]))
    with fo.Feed(tmp_path / "data", cache, batch_size=8) as feed:
        for samples, _ in feed.epoch(0):
            for sample, data in zip(samples.indices.tolist(), samples, strict=True):
                assert bytes(data) == content(names[sample])
        stats = feed.stats()
        assert (stats.damaged, stats.source_samples) == (1, 1)
