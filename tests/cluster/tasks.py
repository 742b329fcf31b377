"""Tasks of tests of clusters. A worker process loads this file: one of tests would load pytest."""

import os
import sys
import time
from pathlib import Path

import flowos as fo
from tests.waiting import comes


@fo.task
def dies(x: fo.int64) -> fo.int64:
    if x == 3:
        os.write(1, b"last words\n")
        os.kill(os.getpid(), 9)
    return x


@fo.task
def passes(path: fo.str_) -> fo.str_:
    return path


@fo.task
def length(data: fo.bytes_) -> fo.int64:
    return len(data)


@fo.task
def job_of(x: fo.int64) -> fo.str_:
    return f"{os.environ['SLURM_JOB_ID']} {x}"


@fo.task
def in_step(x: fo.int64) -> fo.str_:
    sys.stdout.write(f"out {x}\n")
    sys.stderr.write(f"err {x}\n")
    return f"{os.environ['SLURMD_NODENAME']} {os.environ['SLURM_STEP_ID'] != '0'}"


@fo.task
def in_job_of_grid(x: fo.int64) -> fo.str_:
    sys.stdout.write(f"out {x}\n")
    sys.stderr.write(f"err {x}\n")
    return f"{os.uname().nodename} {os.environ['JOB_ID']}"


@fo.task
def meets(x: fo.int64, folder: fo.str_) -> fo.str_:
    """Once two of these run at the same time."""
    Path(folder, f"item{x}").touch()
    assert comes(lambda: len([*Path(folder).glob("item*")]) == 2)
    return f"{x} on {os.environ['SLURMD_NODENAME']}"


@fo.task(needs=fo.Needs(gpus=1))
def alone_on_gpu(folder: fo.str_) -> fo.str_:
    return _alone(folder, "CUDA_VISIBLE_DEVICES")


@fo.task(needs=fo.Needs(devices={"fpga": 1}))
def alone_on_fpga(folder: fo.str_) -> fo.str_:
    return _alone(folder, "FLOWOS_DEVICES_FPGA")


def _alone(folder: str, variable: str) -> str:
    """Fails if another task has the same device meanwhile."""
    at = Path(folder, f"{os.environ['SLURMD_NODENAME']}-{os.environ[variable]}")
    at.touch(exist_ok=False)
    time.sleep(0.02)
    at.unlink()
    return at.name


@fo.task
def visible(_: fo.str_) -> fo.str_:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "none")


@fo.task
def measures(x: fo.int64) -> fo.int64:
    fo.measure("clock")
    return x
