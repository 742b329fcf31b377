"""The time for measuring is a limit: what hangs is stopped, and what there is is kept."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

Flowos = Callable[..., subprocess.CompletedProcess[str]]


def processes_of(program: str, folder: Path) -> Iterator[int]:
    """Those that run a program compiled into this cache."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if f"{folder}/flowos/made/{program}-" in str((entry / "exe").readlink()):
                yield int(entry.name)


def stop(program: str, folder: Path, running: "subprocess.Popen[str]") -> set[int]:
    """Those of them that are stopped as soon as there are some."""
    stopped: set[int] = set()
    while not stopped and running.poll() is None:
        for pid in processes_of(program, folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                stopped.add(pid)
        time.sleep(0.01)
    return stopped


def metrics_of(out: str) -> set[str]:
    return {m["metric"] for m in json.loads(out)["report"]["measurements"]} if out else set()


@pytest.mark.slow
@pytest.mark.usefixtures("looked_once")
def test_a_program_that_hangs_is_stopped_when_the_time_is_out_and_the_others_are_kept(
    flowos: Flowos, tmp_path: Path, variables: dict[str, str], looked_flowos: list[str]
) -> None:
    """Stopped by a signal it would hang until its own limit, two minutes later."""
    cache = tmp_path / "cache"
    variables["XDG_CACHE_HOME"] = str(cache)
    flowos("measure", "--only", "clock,flops", "--minutes", "0.02")  # so that both are compiled
    for minutes in ("0.2", "1", "3"):  # on a busy machine, it may not come so far
        words = ("measure", "--only", "clock,flops", "--minutes", minutes, "--json")
        running = subprocess.Popen(
            [*looked_flowos, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=variables,
        )
        try:
            stopped = stop("flops", cache, running)
            out, said = running.communicate(timeout=300)
        finally:
            running.kill()
        if stopped and "clock" in metrics_of(out):
            break
    assert running.returncode == 0
    run = json.loads(out)["report"]["run"]
    assert run["ended_early"] == "its time was out"
    reasons = {case["probe"]: why["reason"] for case, why in reversed(run["unmeasured"])}
    assert reasons["flops"] == "it still ran when the time was well past, and was stopped"
    assert "clock" in metrics_of(out)
    assert " 0 s left" not in said
    assert "as its time was out" in flowos("show").stdout
