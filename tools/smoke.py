"""What works in an empty environment that has the wheel: `tools/smoke` runs this."""

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import files
from pathlib import Path

import numpy

import flowos as fo
from flowos import _native


@fo.task
def add(a: fo.int64, b: fo.int64) -> fo.int64:
    return a + b


def said(*words: str, code: int = 0) -> str:
    done = subprocess.run(("flowos", *words), capture_output=True, text=True)
    if done.returncode != code:
        raise SystemExit(f"flowos {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    here = Path(sys.prefix)
    assert Path(fo.__file__ or "").is_relative_to(here), fo.__file__
    stable = Path(_native.__file__ or "").name == "_native.abi3.so"
    assert stable or sys.version_info < (3, 12), _native.__file__
    assert not any(map(shutil.which, ("cc", "gcc", "g++"))), "a compiler is on the PATH"
    version = said("--version")
    assert "measure" in said("--help")
    said("doctor", code=1)  # nothing can be measured without a compiler
    assert "pools" in said("config", "--all")
    said("exec", "--", sys.executable, "-c", "pass")
    assert (Path(sysconfig.get_path("data")) / "share/man/man1/flowos-measure.1").exists()
    inside = [str(path) for path in files("flowos-hpc") or ()]
    copied = any(".libs/libjpeg-" in path for path in inside)
    assert copied == any(path.endswith("licenses/libjpeg-turbo.txt") for path in inside), inside
    assert not any("feeder/native/" in path for path in inside), inside
    flow = fo.flow_output(add(fo.flow_input("a", fo.int64), fo.flow_input("b", fo.int64)))
    for workers in ("thread", "process"):
        with fo.slice(flow, workers=workers) as s:
            assert list(s.map([(1, 2), (3, 4)])) == [[3], [7]]
    samples = Path("samples/one")
    samples.mkdir(parents=True)
    for number in range(8):
        (samples / f"{number}.bin").write_bytes(bytes([number]) * 16)
    feed = fo.Feed("samples", cache="cache", batch_size=4)
    assert sum(len(labels) for _, labels in feed.epoch(0)) == 8
    assert numpy.__version__
    said("solve", "poisson:8x8x8")
    Path("said").write_text(f"{version.strip()} runs, flows, feeds, solves, measures")


if __name__ == "__main__":
    main()
