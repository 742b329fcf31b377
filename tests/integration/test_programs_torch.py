"""The programs through PyTorch on processors: right results, checked; clear refusals."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from flowos.probes import package_data
from flowos.probes._base import CANNOT_MEASURE_HERE

# Not imported here: each of pytest's processes collects this file.
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="pip install torch")

PROGRAMS = Path(str(package_data("probes/programs")))


@pytest.fixture(autouse=True)
def programs_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROGRAMS)


Done = subprocess.CompletedProcess[str]
Forked = Callable[..., Done]


def run(program: str, *words: str) -> Done:
    line = [sys.executable, str(PROGRAMS / program), *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def starter() -> Iterator["subprocess.Popen[str]"]:
    line = [sys.executable, str(Path(__file__).with_name("forked_programs.py"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as started:
        yield started


@pytest.fixture
def forked(starter: "subprocess.Popen[str]", tmp_path: Path) -> Forked:
    """As `run`, by a process that has imported PyTorch for all of them."""

    def forked(program: str, *words: str) -> Done:
        line, out, error = [str(PROGRAMS / program), *words], tmp_path / "out", tmp_path / "error"
        assert starter.stdin
        assert starter.stdout
        starter.stdin.write(json.dumps({"line": line, "out": str(out), "error": str(error)}) + "\n")
        starter.stdin.flush()
        code = int(starter.stdout.readline())
        return subprocess.CompletedProcess(line, code, out.read_text(), error.read_text())

    return forked


def readings(done: Done) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["readings"]
    assert all(value > 0 for reading in found for value in reading["values"])
    return found


def levels(found: list[dict[str, Any]], name: str) -> list[str]:
    return [reading["levels"][name] for reading in found]


def test_products_of_each_type_that_processors_have() -> None:
    types = ("--types", "f64,f32,bf16,fp8")
    words = ("gemm", "--device", "cpu", "--seconds", "0.1", "--sizes", "16,48", *types)
    found = readings(run("torch_device.py", *words))
    assert levels(found, "type") == ["f64", "f64", "f32", "f32", "bf16", "bf16"]
    assert levels(found, "n") == ["16", "48"] * 3


def test_the_kernels_of_stream(forked: Forked) -> None:
    words = ("stream", "--device", "cpu", "--seconds", "0.1", "--bytes", "80000")
    found = readings(forked("torch_device.py", *words))
    assert levels(found, "kernel") == ["copy", "scale", "add", "triad"]


def test_what_needs_a_gpu_says_so(forked: Forked) -> None:
    words = ("--device", "cuda:0", "--bodies", "64", "--types", "f32", "--seconds", "1")
    done = forked("nbody_gpu.py", *words)
    if done.returncode:  # else there is one
        assert done.returncode == CANNOT_MEASURE_HERE, done.stderr
        assert json.loads(done.stdout)["cannot"]


@pytest.mark.parametrize("devices", ["cpu", "cpu,cpu", "cpu,cpu,cpu,cpu"])
def test_bodies_are_accelerated_by_one_device_or_as_parts_by_several(
    devices: str, forked: Forked
) -> None:
    words = ("--device", devices, "--bodies", "512", "--types", "f32,f64", "--seconds", "0.01")
    found = readings(forked("nbody_gpu.py", *words))
    assert levels(found, "type") == ["f32", "f64"], "and no energy, which no meter counts"


@pytest.mark.parametrize("devices", [2, 4])
def test_split_bodies_are_accelerated_as_whole_ones_also_after_they_have_moved(
    devices: int,
) -> None:
    import torch
    from gpu_common import Device
    from split_bodies import SplitBodies

    whole = after_two_steps([Device("cpu")])
    split = after_two_steps([Device("cpu")] * devices)
    assert float((whole - split).abs().max() / whole.abs().max()) < 1e-13
    torch.manual_seed(1)
    lost = SplitBodies([Device("cpu")] * devices, "f64", 512)
    lost.accelerate(lost.held[0], lost.found[0], 1e-4)
    assert lost.error() != lost.error(), "positions that were not gathered are no numbers"


def after_two_steps(devices: list[Any]) -> Any:
    """The accelerations of all bodies, in their order, after each has moved by its first one."""
    import torch
    from split_bodies import SplitBodies

    torch.manual_seed(1)
    bodies = SplitBodies(devices, "f64", 512)
    bodies.step()
    for held, found in zip(bodies.held, bodies.found, strict=True):
        for axis in range(3):
            held[axis][: bodies.part] += 1e-4 * found[axis]
    bodies.step()
    assert bodies.error() < 1e-12
    return torch.stack([torch.cat(parts) for parts in zip(*bodies.found, strict=True)])


@pytest.mark.parametrize(
    ("bodies", "types", "said"),
    [
        ("512", "f32", "--bodies 512: give a multiple of 192"),
        ("0", "f32", "--bodies 0: give a multiple of 192"),
        ("192", "f32,f16", "--types f32,f16: give f32, f64 or both"),
    ],
)
def test_what_cannot_be_split_or_computed_is_refused_in_one_line(
    bodies: str, types: str, said: str
) -> None:
    words = ("--device", "cpu,cpu,cpu", "--bodies", bodies, "--types", types, "--seconds", "1")
    done = run("nbody_gpu.py", *words)
    assert (done.returncode, done.stderr) == (1, f"nbody_gpu: {said}\n")


class CountedMeter:
    """In place of NVML, which is not here: so many joules with each call."""

    def __init__(self, joules: float | None) -> None:
        self.each, self.calls = joules, 0

    def called(self) -> None:
        self.calls += 1

    def joules(self) -> float | None:
        return None if self.each is None else 5.0 + self.each * self.calls

    def slowed(self) -> str:
        return ""


def test_energy_is_that_of_all_devices_and_of_a_call() -> None:
    from gpu_common import Device, energy_readings

    meters = [CountedMeter(2.0), CountedMeter(4.0)]
    devices = [Device("cpu"), Device("cpu")]
    for device, meter in zip(devices, meters, strict=True):
        device.meter = meter  # type: ignore[assignment]

    def call() -> None:
        for meter in meters:
            meter.called()

    rate = ("flops", "flop/s", 12.0)
    per_joule, power = energy_readings(devices, call, rate, type="f32")
    assert (per_joule["metric"], per_joule["unit"]) == ("flops_per_joule", "flop/J")
    assert per_joule["values"] == pytest.approx([2.0])
    assert (power["metric"], power["unit"], power["levels"]) == ("power", "W", {"type": "f32"})
    assert power["values"][0] > 0
    meters[1].each = None
    assert list(energy_readings(devices, call, rate)) == [], "a meter of one says too little"
    meters[0].each, meters[1].each = 0.0, 0.0
    assert list(energy_readings(devices, call, rate)) == [], "a meter that stands still"


def test_collectives_of_two_ranks_count_as_nccl_tests_does(forked: Forked) -> None:
    words = ("--ranks", "2", "--backend", "gloo", "--seconds", "0.1", "--sizes", "8,4096")
    found = readings(forked("torch_collectives.py", *words))
    by = {tuple([r["metric"], *r["levels"].values()]): r["values"] for r in found}
    assert {key[1] for key in by} == {"allreduce", "allgather", "reducescatter"}
    for kind, factor in (("allreduce", 1.0), ("allgather", 0.5), ("reducescatter", 0.5)):
        times, bus = by["time", kind, "4096"], by["bus_bandwidth", kind, "4096"]
        assert bus == pytest.approx([factor * 4096 / seconds for seconds in times])


def test_a_rank_that_fails_ends_the_others(forked: Forked) -> None:
    words = ("--ranks", "2", "--backend", "gloo", "--seconds", "0.1", "--sizes", "8,many")
    done = forked("torch_collectives.py", *words)
    assert done.returncode == 1
    assert "many" in done.stderr
