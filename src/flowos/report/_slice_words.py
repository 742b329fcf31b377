"""Words for slices that terminal and pages share."""

from collections.abc import Callable

from flowos.model import Ask, SliceAccounts


def _plain_seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def asked_words(ask: Ask, seconds_of: Callable[[float], str] = _plain_seconds) -> str:
    """What is asked of a pool."""
    words = ["1 node" if ask.nodes == 1 else f"{ask.nodes} nodes"]
    words += [f"{ask.cores} cores each"] * (ask.cores is not None)
    words += [f"{ask.gpus} GPUs each"] * bool(ask.gpus)
    words += [f"{ask.memory_bytes} bytes each"] * bool(ask.memory_bytes)
    words += [f"{count} {name} each" for name, count in ask.device_counts]
    words += [ask.topology] * bool(ask.topology)
    words += [f"kernel {ask.kernel}"] * bool(ask.kernel)
    words += [] if ask.seconds is None else [seconds_of(ask.seconds)]
    words += [] if ask.lease_seconds is None else [f"a lease of {seconds_of(ask.lease_seconds)}"]
    return ", ".join(words)


def accounted_words(accounts: SliceAccounts) -> str:
    """What Slurm accounted for the jobs of a slice. TRES: Slurm's trackable resources."""
    has = accounts
    words = [] if has.cpu_seconds is None else [f"{has.cpu_seconds:g} s of cpu"]
    words += [] if has.max_rss_bytes is None else [f"{has.max_rss_bytes / 1e6:.0f} MB at most"]
    words += [] if has.joules is None else [f"{has.joules:g} J"]
    given = " ".join(f"{name}={amount:g}" for name, amount in has.tres)
    words += [f"TRES-seconds {given}"] * bool(given)
    return ", ".join(words) or "nothing that it measures"
