"""Times copies between a process and a device: its own, and that of a process on another node.

usage: python torch_remote_copy.py --seconds S --sizes BYTES,... [--nodes 2] [--patience S]

The first process has the bytes and the clock. local: it copies them to its device, from locked
pages. remote: it sends them in parts over the network (Gloo, so TCP); the second process copies
each to its device as it comes, and answers when the device has all of them. The way back likewise.
A device is the first GPU that PyTorch sees, else memory in place of one (cpu). What comes back is
compared with what was sent, before anything is timed.
With --nodes 2, mpirun or srun starts this on two of them, in a folder that both see; otherwise both
processes are here. --patience: how long one waits for the other.
Prints the JSON that probes read, on the first node; exits with 1 and a line if bytes come back as
others, or the other process is lost. Larger sizes that would take too long are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from node_links import NodeLinks, NodeLinksError, linked
from rank_processes import first_failure, forked

try:
    import torch
    from torch import distributed
except (ImportError, OSError) as why:  # or a library of it is not there
    NO_TORCH = f"{socket.gethostname()}: PyTorch cannot be imported: {why}"
else:
    NO_TORCH = ""

PART_BYTES = 4 << 20
MIN_SAMPLES, MAX_SAMPLES = 3, 20
TOO_LONG = 6
"""Shares of its time that one copy of a size may take."""
TO_DEVICE, TO_HOST, END = range(3)
FIRST, SECOND = 0, 1


# --- bytes and devices -------------------------------------------------------------------------


def own_device() -> str:
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def described(device: str) -> dict[str, str]:
    """The level of the axis device, and words."""
    of = "no GPU" if device == "cpu" else torch.cuda.get_device_name(device)
    level = device if device == "cpu" else device.split(":")[1]
    return {"device": level, "words": f"{socket.gethostname()} ({of})"}


def has_all(device: str) -> None:
    """Returns when all copies are done."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def on_host(size: int, device: str) -> Any:
    """Bytes of the host, in locked pages where they are copied to a GPU."""
    return torch.empty(size, dtype=torch.uint8, pin_memory=device != "cpu")


def on_device(size: int, device: str) -> Any:
    return torch.empty(size, dtype=torch.uint8, device=device)


def parts(whole: Any) -> list[tuple[int, Any]]:
    """With their numbers, by which a part is sent and received: 0 is that of orders."""
    return list(enumerate(whole.split(PART_BYTES), start=1))


class LocalCopies:
    """Between memory of this process and its own device."""

    def __init__(self, size: int, device: str) -> None:
        self.sent, self.back = on_host(size, device), on_host(size, device)
        self._there, self._device = on_device(size, device), device

    def to_device(self) -> None:
        self._there.copy_(self.sent, non_blocking=True)
        has_all(self._device)

    def to_host(self) -> None:
        self.back.copy_(self._there, non_blocking=True)
        has_all(self._device)


class RemoteCopies:
    """Between memory of this process and the device of the second one, which serves."""

    def __init__(self, size: int) -> None:
        self.sent, self.back = on_host(size, "cpu"), on_host(size, "cpu")

    def to_device(self) -> None:
        order(TO_DEVICE, len(self.sent))
        going = [distributed.isend(part, SECOND, tag=n) for n, part in parts(self.sent)]
        for each in going:
            each.wait()
        distributed.recv(torch.empty(1, dtype=torch.int64), SECOND)

    def to_host(self) -> None:
        order(TO_HOST, len(self.back))
        coming = [distributed.irecv(part, SECOND, tag=n) for n, part in parts(self.back)]
        for each in coming:
            each.wait()


Copies = LocalCopies | RemoteCopies


# --- the second process ------------------------------------------------------------------------


def order(what: int, size: int = 0) -> None:
    distributed.send(torch.tensor([what, size]), SECOND)


def next_order() -> tuple[int, int]:
    """What, and how many bytes. Its loss is said by the first process."""
    words = torch.empty(2, dtype=torch.int64)
    try:
        distributed.recv(words, FIRST)
    except RuntimeError:
        sys.exit(1)
    what, size = words.tolist()
    return what, size


def serve(device: str) -> None:
    near, there = on_host(0, "cpu"), on_device(0, "cpu")
    while True:
        what, size = next_order()
        if what == END:
            return
        if size != len(near):
            near, there = on_host(size, device), on_device(size, device)
        if what == TO_DEVICE:
            pass_to_device(near, there, device)
        else:
            pass_to_host(near, there, device)


def pass_to_device(near: Any, there: Any, device: str) -> None:
    coming = [(distributed.irecv(part, FIRST, tag=n), part) for n, part in parts(near)]
    for (each, part), (_, target) in zip(coming, parts(there), strict=True):
        each.wait()
        target.copy_(part, non_blocking=True)
    has_all(device)
    distributed.send(torch.zeros(1, dtype=torch.int64), FIRST)


def pass_to_host(near: Any, there: Any, device: str) -> None:
    going = []
    for (n, part), (_, source) in zip(parts(near), parts(there), strict=True):
        part.copy_(source, non_blocking=True)
        has_all(device)
        going.append(distributed.isend(part, FIRST, tag=n))
    for each in going:
        each.wait()


# --- the first process -------------------------------------------------------------------------


def check(copies: Copies, attachment: str) -> None:
    copies.sent.random_()
    copies.back.copy_(copies.sent).bitwise_not_()
    copies.to_device()
    copies.to_host()
    if not torch.equal(copies.back, copies.sent):
        said = f"{len(copies.sent)} bytes came back from the {attachment} device as others"
        sys.exit(f"torch_remote_copy: {said}")


def once(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def timed(call: Callable[[], None], seconds: float) -> list[float]:
    count = max(MIN_SAMPLES, min(MAX_SAMPLES, int(seconds / max(once(call), 1e-9))))
    return [once(call) for _ in range(count)]


def expected(seen: list[tuple[int, float]], size: int) -> float:
    """Seconds of a copy, by the last two sizes and their times; 0 before there are two."""
    if len(seen) < 2:
        return 0.0
    (smaller, before), (larger, last) = seen[-2:]
    return last + (size - larger) * max(0.0, last - before) / (larger - smaller)


def measured(
    sizes: list[int], seconds: float, device: str, ends: dict[str, dict[str, str]]
) -> Iterator[dict[str, Any]]:
    """Of each size that fits into the time, by each attachment, both ways."""
    each = seconds / len(sizes) / 4
    makers: dict[str, Callable[[int], Copies]] = {
        "local": partial(LocalCopies, device=device),
        "remote": RemoteCopies,
    }
    seen: dict[str, list[tuple[int, float]]] = {attachment: [] for attachment in makers}
    for size in sizes:
        for attachment, make in makers.items():
            if expected(seen[attachment], size) > TOO_LONG * each:
                continue
            copies = make(size)
            check(copies, attachment)
            times = {"device": timed(copies.to_device, each), "host": timed(copies.to_host, each)}
            seen[attachment].append((size, max(map(min, times.values()))))
            for to, found in times.items():
                levels = {"attachment": attachment, "to": to, "bytes": str(size)}
                yield reading([size / took for took in found], levels, ends[attachment])


def reading(rates: list[float], levels: dict[str, str], end: dict[str, str]) -> dict[str, Any]:
    return {
        "metric": "bandwidth",
        "unit": "byte/s",
        "values": rates,
        "levels": {"device": end["device"], **levels},
        "notes": {"torch": torch.__version__, "end": end["words"], "link": link()},
    }


def link() -> str:
    return os.environ.get("GLOO_SOCKET_IFNAME", "")


# --- both --------------------------------------------------------------------------------------


def be_process(number: int, options: argparse.Namespace, meet: str) -> int:
    torch.set_num_threads(1)
    try:
        distributed.init_process_group(
            "gloo",
            init_method=meet,
            rank=number,
            world_size=2,
            timeout=timedelta(seconds=options.patience),
        )
        work(number, options)
        distributed.destroy_process_group()
    except RuntimeError as error:
        said = re.sub(r"^\[\S+\] ", "", str(error).splitlines()[0]).split(". ")[0]
        sys.exit(f"torch_remote_copy: process {number + 1} of 2, {socket.gethostname()}: {said}")
    return 0


def work(number: int, options: argparse.Namespace) -> None:
    device = own_device()
    both: list[Any] = [None, None]
    distributed.all_gather_object(both, described(device))
    if number == SECOND:
        serve(device)
        return
    sizes = [int(word) for word in options.sizes.split(",")]
    ends = {"local": both[FIRST], "remote": both[SECOND]}
    found = list(measured(sizes, options.seconds, device, ends))
    order(END)
    sys.stdout.write(json.dumps({"readings": found}))
    sys.stdout.flush()


def run(options: argparse.Namespace, links: NodeLinks) -> int:
    lacking = [each for each in links.gathered(NO_TORCH) if each]
    if lacking:
        return fail(lacking[0]) if links.number == FIRST else 0
    if links.count > 1:
        os.environ["GLOO_SOCKET_IFNAME"] = links.interface
        return be_process(links.number, options, links.meeting_place())
    with tempfile.TemporaryDirectory() as folder:
        meet = f"file://{folder}/meet"
        started = [forked({}, partial(be_process, n, options, meet)) for n in (FIRST, SECOND)]
        return abs(first_failure(started))


def fail(said: str) -> int:
    print(f"torch_remote_copy: {said}", file=sys.stderr)
    return 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time copies to a device, here and elsewhere.")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--patience", type=float, default=120.0)
    return parser.parse_args()


def main() -> int:
    options = read_options()
    try:
        return run(options, linked(options.nodes, Path("flowos-nodes.json")))
    except NodeLinksError as why:
        return fail(str(why))


if __name__ == "__main__":
    sys.exit(main())
