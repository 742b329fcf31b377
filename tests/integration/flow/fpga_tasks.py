"""Tasks of devices, in a file that a worker imports without pytest."""

import os
import time
from pathlib import Path

import flowos as fo

NAMES = ("FLOWOS_DEVICES_FPGA", "FLOWOS_DEVICES_NIC_2")


FPGA = fo.Needs(devices={"fpga": 1})


@fo.task(needs=FPGA)
def alone_at_it(folder: fo.str_) -> fo.str_:
    """Fails if another task has the same device meanwhile."""
    at = Path(folder, os.environ["FLOWOS_DEVICES_FPGA"])
    at.touch(exist_ok=False)
    time.sleep(0.02)
    at.unlink()
    return at.name


@fo.task
def without(_: fo.str_) -> fo.str_:
    return " ".join(os.environ.get(name, "none") for name in NAMES)


@fo.task(needs=fo.Needs(devices={"fpga": 2, "nic-2": 1}))
def all_of_them(_: fo.str_) -> fo.str_:
    return " ".join(os.environ[name] for name in NAMES)
