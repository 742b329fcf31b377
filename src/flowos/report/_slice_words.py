"""Words for slices that terminal and pages share."""

from collections.abc import Callable

from flowos.model import Ask, SliceAccounts, SliceRecord, counted

_MANAGERS = {"slurm": "Slurm", "sge": "Grid Engine"}
"""Of kinds of pools that have jobs."""


def _plain_seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def asked_words(ask: Ask, seconds_of: Callable[[float], str] = _plain_seconds) -> str:
    """What is asked of a pool."""
    words = [counted(ask.nodes, "node")]
    words += [] if ask.cores is None else [f"{counted(ask.cores, 'core')} each"]
    words += [f"{counted(ask.gpus, 'GPU')} each"] * bool(ask.gpus)
    words += [f"{ask.memory_bytes} bytes each"] * bool(ask.memory_bytes)
    words += [f"{count} {name} each" for name, count in ask.device_counts]
    words += [ask.topology] * bool(ask.topology)
    words += [f"kernel {ask.kernel}"] * bool(ask.kernel)
    words += [] if ask.seconds is None else [seconds_of(ask.seconds)]
    words += [] if ask.lease_seconds is None else [f"a lease of {seconds_of(ask.lease_seconds)}"]
    return ", ".join(words)


def job_words(record: SliceRecord) -> str:
    """The numbers of its jobs, and whose these are."""
    manager = _MANAGERS.get(record.kind, record.kind)
    return f"{manager} {'job' if len(record.jobs) == 1 else 'jobs'} {', '.join(record.jobs)}"


def accounted_words(accounts: SliceAccounts) -> str:
    """What Slurm accounted for the jobs of a slice. TRES: Slurm's trackable resources."""
    has = accounts
    words = [] if has.cpu_seconds is None else [f"{has.cpu_seconds:g} s of cpu"]
    words += [] if has.max_rss_bytes is None else [f"{has.max_rss_bytes / 1e6:.0f} MB at most"]
    words += [] if has.joules is None else [f"{has.joules:g} J"]
    given = " ".join(f"{name}={amount:g}" for name, amount in has.tres)
    words += [f"TRES-seconds {given}"] * bool(given)
    return f"accounted by Slurm: {', '.join(words) or 'nothing that it measures'}"
