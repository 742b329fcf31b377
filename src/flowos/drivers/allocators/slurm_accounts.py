"""What Slurm accounts for jobs: its database's answer (sacct), and that of steps that run (sstat).

Where a cluster has no database (`AccountingStorageType=accounting_storage/none`), sacct says so and
fails; where it gathers nothing (`JobAcctGatherType=jobacct_gather/none`), sstat prints amounts that
no job has.
"""

from collections.abc import Sequence

from flowos.drivers._allocators import read_amount
from flowos.drivers._slurm_values import read_cpu_seconds, read_tres
from flowos.model import Argv, SliceAccounts

_JOBS = "JobIDRaw,TotalCPU,MaxRSS,ConsumedEnergyRaw,ElapsedRaw,AllocTRES"
_STEPS = "JobID,NTasks,AveCPU,MaxRSS,ConsumedEnergyRaw"
_MAX_AMOUNT = 2.0**62
"""Slurm prints amounts that it does not know as some number just below 2**64."""


def accounts_words(jobs: Sequence[str]) -> Argv:
    """Of jobs and their steps, those that are over."""
    return (
        "sacct",
        *("--noheader", "--parsable2", f"--jobs={','.join(jobs)}", f"--format={_JOBS}"),
    )


def steps_words(job: str) -> Argv:
    """Of the steps of a job that run now."""
    return (
        "sstat",
        *("--noheader", "--parsable2", "--allsteps", f"--jobs={job}", f"--format={_STEPS}"),
    )


def read_accounts(text: str) -> SliceAccounts | None:
    """Of `accounts_words`; None if it has none of these jobs."""
    rows = [row for line in text.splitlines() if len(row := line.split("|")) == 6]
    jobs = [row for row in rows if "." not in row[0]]
    if not jobs:
        return None
    tres: dict[str, float] = {}
    for *_, elapsed, given in jobs:
        seconds = read_amount(elapsed) or 0.0
        for name, each in read_tres(given).items():
            if name != "energy":  # of the whole job
                tres[name] = tres.get(name, 0.0) + each * seconds
    peaks = [amount for row in rows if (amount := _amount(row[2]))]
    return SliceAccounts(
        cpu_seconds=_total([read_cpu_seconds(row[1]) for row in jobs]),
        max_rss_bytes=int(max(peaks)) if peaks else None,
        joules=_total([_amount(row[3]) for row in jobs]),
        tres=tuple(tres.items()),
    )


def read_steps(text: str) -> SliceAccounts:
    """Of `steps_words`."""
    rows = [row for line in text.splitlines() if len(row := line.split("|")) == 5]
    each = [(read_amount(row[1]), read_cpu_seconds(row[2])) for row in rows]
    peaks = [amount for row in rows if (amount := _amount(row[3]))]
    return SliceAccounts(
        cpu_seconds=_total([None if cpu is None else (n or 0) * cpu for n, cpu in each]),
        max_rss_bytes=int(max(peaks)) if peaks else None,
        joules=_total([_amount(row[4]) for row in rows]),
    )


def _total(found: Sequence[float | None]) -> float | None:
    """None if none is known."""
    known = [amount for amount in found if amount is not None]
    return sum(known) if known else None


def _amount(text: str) -> float | None:
    """None for nothing, which is what Slurm has of what it does not measure."""
    amount = read_amount(text)
    return amount if amount and amount < _MAX_AMOUNT else None
