"""Programs of PyTorch by ranks on two nodes of a real Slurm, which are apart."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from .box import Box

MEASURES = Path(__file__).with_name("measures_over_nodes.py")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="pip install torch"
)


def measured(machines: Box, probe: str) -> dict[tuple[str, str], float]:
    """By metric and levels."""
    keys = json.dumps({"kind": "slurm", "shared": str(machines.shared)})
    done = machines.run(sys.executable, str(MEASURES), probe, keys)
    assert done.returncode == 0, done.stderr
    lines = map(str.split, done.stdout.splitlines())
    return {(metric, levels): float(value) for metric, levels, value in lines}


def test_ranks_of_both_nodes_train_the_same_images_by_each_loader(machines: Box) -> None:
    found = measured(machines, "training")
    for loader in ("shared", "local-copy", "feed"):
        assert found["iterations", loader] == 2, "64 images in batches of 16 by a rank on each node"
        assert found["node_reads", loader] == pytest.approx(found["reads", loader] / 2)
        assert (("file_copy", loader) in found) == (loader == "local-copy")
    assert found["training_with_copy", "local-copy"] > found["training", "local-copy"]
    images = machines.folder / "content/flowos-training"
    assert [folder.name for folder in images.iterdir()] == ["64-4"], "images, for validation"
    assert not (images.parent / "flowos-nodes.json").exists()


def test_two_ranks_of_each_node_sum_and_gather_as_nccl_tests_counts(machines: Box) -> None:
    found = measured(machines, "collectives")
    for kind, share in (("allreduce", 2 * 3 / 4), ("allgather", 3 / 4), ("reducescatter", 3 / 4)):
        assert ("time", f"{kind},16") in found, "eight bytes are less than a number for each rank"
        rate = 65536 / found["time", f"{kind},65536"]
        assert found["algorithm_bandwidth", f"{kind},65536"] == pytest.approx(rate)
        assert found["bus_bandwidth", f"{kind},65536"] == pytest.approx(share * rate)
    assert not list(machines.folder.rglob("flowos-nodes.json"))


def test_bytes_go_to_a_device_of_the_other_node_and_back(machines: Box) -> None:
    found = measured(machines, "remote_copy")
    assert {metric for metric, _ in found} == {"bandwidth"}
    assert {levels for _, levels in found} == {
        f"cpu,{attachment},{to},{size}"
        for attachment in ("local", "remote")
        for to in ("device", "host")
        for size in (4096, 5242880)
    }
    assert not list(machines.folder.rglob("flowos-nodes.json"))
