"""A training by ranks on two nodes of a real Slurm, which are apart."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from .box import Box

TRAINS = Path(__file__).with_name("trains.py")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="pip install torch")
def test_ranks_of_both_nodes_train_the_same_images_by_each_loader(machines: Box) -> None:
    keys = json.dumps({"kind": "slurm", "shared": str(machines.shared)})
    done = machines.run(sys.executable, str(TRAINS), keys)
    assert done.returncode == 0, done.stderr
    found: dict[tuple[str, str], float] = {}
    for metric, loader, value in map(str.split, done.stdout.splitlines()):
        found[metric, loader] = float(value)
    for loader in ("shared", "local-copy", "feed"):
        assert found["iterations", loader] == 2, "64 images in batches of 16 by a rank on each node"
        assert found["node_reads", loader] == pytest.approx(found["reads", loader] / 2)
        assert (("file_copy", loader) in found) == (loader == "local-copy")
    assert found["training_with_copy", "local-copy"] > found["training", "local-copy"]
    images = machines.folder / "content/flowos-training"
    assert [folder.name for folder in images.iterdir()] == ["64-4"], "images, for validation"
    assert not (images.parent / "flowos-nodes.json").exists()
