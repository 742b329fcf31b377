"""Values that Slurm prints: states of jobs, node names, times, trackable and generic resources.

What a scheduler says comes from outside: a name that could be taken for an option or a path is
refused, and so is a list that is larger than any cluster.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from flowos.drivers._allocators import JobPhase, is_node_name, phase_table, read_amount
from flowos.model import SliceRefused

MAX_NODES = 65536
_MAX_CHARACTERS = 1 << 20
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_PARTS = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)")
_ENTRY = re.compile(r"(?:\[[^\[\]]*\]|[^\[\],])+")
_FIGURE = r"(\d{1,12})"
_DURATION = re.compile(rf"(?:{_FIGURE}-)?(?:(?:{_FIGURE}:)?{_FIGURE}:)?{_FIGURE}(?:\.\d+)?")
_NONE = ("", "(null)", "None", "None assigned", "N/A")

_PHASE_OF = phase_table(
    {
        "waiting": (
            "PENDING CONFIGURING EXPEDITING POWER_UP_NODE REQUEUED REQUEUE_FED REQUEUE_HOLD"
            " RESV_DEL_HOLD SPECIAL_EXIT"
        ),
        "running": "RUNNING RESIZING SIGNALING STOPPED SUSPENDED",
        "ending": "COMPLETING STAGE_OUT",
        "over": (
            "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY"
            " PREEMPTED RECONFIG_FAIL REVOKED TIMEOUT"
        ),
    }
)


def phase_of(state: str) -> JobPhase:
    """Of a state as Slurm prints it: `CANCELLED by 1000`, cut off as `CANCELLED+`, `RUNNING`."""
    word = (state.split() or [""])[0].removesuffix("+")
    return _PHASE_OF.get(word, "unknown")


def read_hosts(text: str) -> tuple[str, ...]:
    """The nodes of a list as in `rack[1-2]-n[08-10],login`; none of "(null)".

    Raises SliceRefused if it is no such list, or longer than a cluster, or a name is none.
    """
    text = text.strip()
    if text in _NONE:
        return ()
    names = tuple(islice(_hosts(text), MAX_NODES + 1))
    if len(names) > MAX_NODES:
        raise _too_many(text)
    for name in names:
        if not is_node_name(name):
            raise _refused(text, f"{name!r:.80} is no node's name")
    return names


def read_pairs(line: str) -> dict[str, str]:
    """Of words NAME=VALUE."""
    pairs = (word.partition("=") for word in line.split())
    return {name: value for name, _, value in pairs}


def _hosts(text: str) -> Iterator[str]:
    if len(text) > _MAX_CHARACTERS:
        raise _refused(text, "too long")
    entries = _ENTRY.findall(text)
    if ",".join(entries) != text:
        raise _refused(text, "brackets or commas that do not match")
    for entry in entries:
        found = _PARTS.findall(entry)
        parts = [(word,) if word else _numbers(text, ranges) for ranges, word in found]
        if math.prod(len(part) for part in parts) > MAX_NODES:
            raise _too_many(text)
        yield from map("".join, product(*parts))


def _numbers(text: str, ranges: str) -> Sequence[str]:
    """Of `08-10,12`; numbers are as wide as the first of their range."""
    found: list[str] = []
    for one in ranges.split(","):
        match = _RANGE.fullmatch(one)
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        count = int(last) - int(first) + 1
        if count < 1:
            raise _refused(text, f"{one!r:.80} is no range of numbers")
        if len(found) + count > MAX_NODES:
            raise _too_many(text)
        found += (str(int(first) + n).zfill(len(first)) for n in range(count))
    return found


def _too_many(text: str) -> SliceRefused:
    return _refused(text, f"more than {MAX_NODES} nodes")


def _refused(text: str, why: str) -> SliceRefused:
    return SliceRefused(f"Slurm names nodes {text!r:.80}: {why}")


def read_seconds(text: str) -> float | None:
    """Of `2-03:04:05`, `03:04:05`, `04:05`; infinite if it is not limited, None if it is not known.

    `5` alone is minutes in what people write, but seconds in no output: it is not known.
    """
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return math.inf
    match = _DURATION.fullmatch(text.strip())
    if match is None or ":" not in text:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def read_cpu_seconds(text: str) -> float | None:
    """The same with parts of a second, as in `04:05.123`; None of more than a century."""
    whole, _, parts = text.partition(".")
    seconds = read_seconds(whole)
    if seconds is None or seconds > _CENTURY:
        return None
    return seconds + float(f"0.{parts}") if parts.isdecimal() else seconds


_CENTURY = 100 * 365 * 86400.0
"""In seconds: what Slurm does not know it prints as a longer time."""


def write_seconds(seconds: float) -> str:
    """As an option takes it. Slurm counts whole minutes, so that more may be held, not less."""
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00"


def read_tres(text: str) -> Mapping[str, float]:
    """Of `cpu=4,mem=8000M,node=2,gres/gpu:a100=1`; memory in bytes, energy in joules.

    What has no amount that can be read is left out.
    """
    pairs = (one.rpartition("=") for one in text.split(","))
    amounts = ((name.strip(), read_amount(amount)) for name, _, amount in pairs)
    return {name: amount for name, amount in amounts if name and amount is not None}


def read_gres(text: str) -> Mapping[str, int]:
    """How many of each generic resource, whatever their type: `gpu:a100:4(S:0-1),fpga:1`."""
    found: dict[str, int] = {}
    if text.strip() in _NONE:
        return found
    for one in re.sub(r"\([^()]*\)", "", text).split(","):
        name, *rest = one.strip().split(":")
        amount = read_amount(rest[-1]) if rest else None
        if name:
            found[name] = found.get(name, 0) + (1 if amount is None else int(amount))
    return found
