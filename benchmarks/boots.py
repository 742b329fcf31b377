"""An image booted by QEMU until its command printed, compared with QEMU and the kernel alone.

`python benchmarks/boots.py [--json] [--rounds 20]`
The kernel is Debian's, the image is BusyBox; both as `tools/setup test` fetches them. `alone` boots
the same kernel with the same parameters (but the rate of the counter, which flowos-init adds),
machine and accelerator, and an initrd that holds nothing but BusyBox, which prints a word: what no
runtime that boots can beat. Each is killed once it has printed, by turns in every round. Exit 1
when a boot fails or a target is missed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from _numbers import whole_number

from flowos.drivers.images.kernel import cpio
from flowos.drivers.runtimes.qemu import PROGRAM, kernel_line, machine_words
from flowos.engine import here
from flowos.model import Boot, Environment, Exited, Launch
from flowos.operations.kernel import add_kernel

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.environments.conftest import make_busybox, squash, static_busybox

PACKAGES = Path(__file__).parents[1] / ".deps" / "kernel"
MAX_SECONDS, MAX_BYTES = 2.5, 300 << 20
INIT = b"#!/bin/busybox sh\necho up\nexec /bin/busybox sleep 100\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="flowos-bench-", dir="/var/tmp") as name:
        folder = Path(name)
        os.environ["XDG_DATA_HOME"] = str(folder / "data")
        package = next(PACKAGES.glob("linux-image-*.deb"), None)
        if package is None:
            parser.error(f"no kernel in {PACKAGES}: tools/setup test fetches one")
        kernel = add_kernel("stock", package)
        make_busybox(folder / "image")
        squash(folder / "image", folder / "image.sqfs")
        image = here().image_at(folder / "image.sqfs")
        asked = Environment(image=image, runtime="qemu", boot=Boot(kernel=kernel))
        with here().ready(asked) as ready:
            boot = ready.env.boot
            assert boot
            words = alone_words(folder, boot)
            booted, alone, failed = [], [], 0
            for _ in range(rounds):
                seconds = boot_seconds(ready.env)
                failed += seconds is None
                booted += [] if seconds is None else [seconds]
                alone.append(alone_seconds(words))
    report = {
        "accelerator": boot.accelerator,
        "rounds": rounds,
        "failed": failed,
        "booted_seconds": spread(booted),
        "alone_seconds": spread(alone),
        "largest_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10,
        "at most": {"failed": 0, "booted_seconds": MAX_SECONDS, "largest_bytes": MAX_BYTES},
    }
    missed = failed or median(booted) > MAX_SECONDS or report["largest_bytes"] > MAX_BYTES
    print(json.dumps({**report, "holds": not missed}, indent=1))
    return 1 if missed else 0


def boot_seconds(env: Environment) -> float | None:
    """From the start until the end of a command that prints; None if that is not what happened."""
    began = time.perf_counter()
    outcome = here().run(Launch(argv=("/bin/echo", "up"), env=env))
    good = outcome.end == Exited(0) and outcome.stdout == b"up\n"
    return time.perf_counter() - began if good else None


def alone_words(folder: Path, boot: Boot) -> tuple[str, ...]:
    busybox = Path(static_busybox()).read_bytes()
    programs = (("bin/busybox", 0o100755, busybox), ("init", 0o100755, INIT))
    initrd = folder / "initrd"
    initrd.write_bytes(cpio([("dev", 0o40755, b""), ("bin", 0o40755, b""), *programs]))
    accelerator = boot.accelerator
    return (
        *(PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *machine_words(accelerator),
        *("-smp", "1", "-m", f"{boot.memory_bytes >> 20}M"),
        *("-kernel", str(boot.kernel.image), "-initrd", str(initrd)),
        *("-append", kernel_line(boot.kernel, accelerator), "-serial", "stdio"),
    )


def alone_seconds(words: tuple[str, ...]) -> float:
    began = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as machine:
        assert machine.stdout
        while b"up" not in (line := machine.stdout.readline()):
            if not line:
                raise SystemExit("QEMU alone ended before it printed")
        seconds = time.perf_counter() - began
        machine.kill()
    return seconds


def spread(seconds: list[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    return {"median": median(seconds), "min": min(seconds), "max": max(seconds)}


if __name__ == "__main__":
    sys.exit(main())
