"""What Slurm accounts for jobs, as 22.05 printed it: a job that is over, and one that runs."""

from pathlib import Path

import pytest

from flowos.drivers._slurm_values import read_cpu_seconds
from flowos.drivers.allocators.slurm import job_names
from flowos.drivers.allocators.slurm_accounts import (
    accounts_words,
    read_accounts,
    read_steps,
    steps_words,
)
from flowos.model import SliceAccounts

GOLDEN = Path(__file__).parents[2] / "golden/slurm/22.05"


def test_jobs_are_asked_for_with_their_steps() -> None:
    assert " ".join(accounts_words(("7", "9"))) == (
        "sacct --noheader --parsable2 --jobs=7,9 "
        "--format=JobIDRaw,TotalCPU,MaxRSS,ConsumedEnergyRaw,ElapsedRaw,AllocTRES"
    )
    assert " ".join(steps_words("7")) == (
        "sstat --noheader --parsable2 --allsteps --jobs=7 "
        "--format=JobID,NTasks,AveCPU,MaxRSS,ConsumedEnergyRaw"
    )
    assert job_names("c-1", 3) == "flowos-c-1,flowos-c-1-2,flowos-c-1-3"


def test_jobs_are_added_up_with_the_peak_of_their_steps() -> None:
    assert read_accounts((GOLDEN / "sacct_use.txt").read_text()) == SliceAccounts(
        cpu_seconds=3.222,
        max_rss_bytes=91656 << 10,
        joules=None,
        tres=(("billing", 14.0), ("cpu", 14.0), ("node", 14.0)),
    )


def test_energy_is_known_where_slurm_measures_it() -> None:
    text = (
        "7|1-00:00:01.5|||10|cpu=4,gres/gpu:a100=2,mem=1G\n"
        "7.0|1-00:00:01.5||500|10|cpu=4\n"
        "9|00:01||1500|10|cpu=1,energy=1500\n"
        "10|00:01||18446744073709551614||cpu=1\n"
    )
    assert read_accounts(text) == SliceAccounts(
        cpu_seconds=86403.5,
        joules=1500.0,
        tres=(("cpu", 50.0), ("gres/gpu:a100", 20.0), ("mem", 10.0 * 2**30)),
    )


def test_jobs_that_the_database_does_not_know_are_none() -> None:
    assert read_accounts("") is None
    assert read_accounts("Welcome!\n") is None
    assert read_accounts("7|||||\n") == SliceAccounts()


def test_steps_that_run_are_added_up() -> None:
    found = read_steps((GOLDEN / "sstat.txt").read_text())
    assert found == SliceAccounts(cpu_seconds=2.0, max_rss_bytes=91644 << 10)


def test_what_slurm_does_not_gather_is_not_known() -> None:
    """As 22.05 prints it with jobacct_gather/none."""
    assert read_steps("1.0|2|213503982334-14:25:51||0|\n") == SliceAccounts()
    assert read_steps("1.0|2|213503982334-14:25:51||0\n") == SliceAccounts()
    assert read_steps("1.0||00:00:05|1K|7\n") == SliceAccounts(
        cpu_seconds=0.0, max_rss_bytes=1024, joules=7.0
    )
    assert read_steps("") == SliceAccounts()


@pytest.mark.parametrize(
    ("amount", "known"), [(2**62 - 2**10, True), (2**62, False), (2**64 - 2, False)]
)
def test_amounts_that_no_job_can_have_are_not_known(amount: int, known: bool) -> None:
    assert read_steps(f"1.0|1|00:01|{amount}|{amount}\n") == SliceAccounts(
        cpu_seconds=1.0,
        max_rss_bytes=amount if known else None,
        joules=float(amount) if known else None,
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:02.549", 2.549),
        ("1-00:00:01", 86401.0),
        ("36500-00:00:00", 3153600000.0),
        ("36500-00:00:01", None),
        ("", None),
        ("00:01.x", 1.0),
    ],
)
def test_times_of_cpu_have_parts_of_a_second(text: str, seconds: float | None) -> None:
    assert read_cpu_seconds(text) == seconds
