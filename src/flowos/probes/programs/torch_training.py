"""Times trainings of resnet50/ by ranks of one node or several, with images from some storages.

usage: python torch_training.py --folder DIR --own DIR --ranks N --epochs N --images N --side PIXELS
       [--validation N] [--nodes N] [options of resnet50/train.py]

The images (N are trained in an epoch) are made in --folder and stay there for the next call. They
are trained by each loader in turn: DataLoader reads them there ("shared"), or from a copy in --own,
on the node's own storage, that eight threads make first ("local copy"); fo.Feed reads them there,
with an empty cache in --own ("feed", left out where this Python has none). --own is made, if it is
not there. What is read is not in
the page cache at the start, where the kernel lets go of it; the copy is.
With --nodes, mpirun or srun starts this on each of them, which all see --folder; --ranks are those
of each, --own is its own, and a copy is as slow as the slowest node's.
Prints the JSON that probes read, on the first node. A stage is the mean of the ranks, a load the
sum of them. After each epoch --validation images (4 by default, and one for each rank at least) are
classified; elapsed is the time since the training began. The ranks are forked once PyTorch is
imported, and end with this program.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from node_links import ALONE, NodeLinks, NodeLinksError, linked
from rank_processes import first_failure, forked

sys.path.insert(0, str(Path(__file__).parent / "resnet50"))

LOADERS = ("shared", "local copy", "feed")
CANNOT_MEASURE_HERE = 77
CLASSES, DISTINCT = 4, 64
"""Files are of so many different images: what they cost to read does not depend on that."""
FILES_AT_ONCE = 8
"""Shared storage may answer late: one after the other they would take longer than a training."""
Row = dict[str, Any]

# --- images ------------------------------------------------------------------------------------


def at_once(work: Callable[..., Any], *given: Sequence[Any]) -> list[Any]:
    """Of work on files, in their order."""
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        return list(pool.map(work, *given))


def make_images(folder: Path, own: str, count: int, validation: int, side: int) -> None:
    """As resnet50/made_images.py does, unless they are there. own: a folder that is near."""
    from made_images import write_images

    complete, asked = folder / "complete", f"{count} {validation} {side}"
    if complete.exists() and complete.read_text() == asked:
        return
    shutil.rmtree(folder, ignore_errors=True)
    few = min(count, DISTINCT)
    with tempfile.TemporaryDirectory(prefix="flowos-training-", dir=own) as name:
        made = Path(name)
        write_images(made, classes=CLASSES, train=few, validation=validation, side=side)
        sources = [*made.rglob("*.jpg"), *(_image(made, n % DISTINCT) for n in range(few, count))]
        targets = [path.relative_to(made) for path in sources[: few + validation]]
        targets += [_image(Path(), number) for number in range(few, count)]
        for part in sorted({target.parent for target in targets}):
            (folder / part).mkdir(parents=True)
        at_once(shutil.copyfile, sources, [folder / target for target in targets])
    os.sync()
    complete.write_text(asked)


def _image(folder: Path, number: int) -> Path:
    return folder / "train" / f"c{number % CLASSES:03d}" / f"{number:06d}.jpg"


def dropped(folder: Path) -> bool:
    """Let go of the images' pages in memory; False if the kernel refuses."""
    try:
        at_once(_drop, [*folder.rglob("*.jpg")])
    except OSError:
        return False
    return True


def _drop(file: Path) -> None:
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def copied(source: Path, target: Path) -> float:
    """Seconds of a copy of all images."""
    began = time.perf_counter()
    folders = [path for path in source.glob("*/*") if path.is_dir()]
    for folder in folders:
        (target / folder.relative_to(source)).mkdir(parents=True)
    files = [path for folder in folders for path in folder.iterdir()]
    at_once(shutil.copyfile, files, [target / path.relative_to(source) for path in files])
    return time.perf_counter() - began


# --- ranks -------------------------------------------------------------------------------------


def run_ranks(count: int, work: Callable[[], int], links: NodeLinks = ALONE) -> int:
    """The exit code of the first rank that fails, whose others are ended then; else 0.

    count: on each node. Each is forked, so that what is imported before is so for all.
    """
    with socket.socket() as free:
        free.bind(("" if links.count > 1 else "127.0.0.1", 0))
        port = free.getsockname()[1]
    same = {"WORLD_SIZE": str(count * links.count), "MASTER_ADDR": links.first}
    same["MASTER_PORT"] = str(links.gathered(port)[0])
    if links.interface:
        same["GLOO_SOCKET_IFNAME"] = links.interface
    sys.stdout.flush()
    before = count * links.number
    return first_failure(
        [
            forked({**same, **_of_rank(before + n, n)}, partial(_printing_nothing, work))
            for n in range(count)
        ]
    )


def _printing_nothing(work: Callable[[], int]) -> int:
    """What it prints goes to standard error: the answer alone is printed."""
    os.dup2(2, 1)
    return work()


def _of_rank(rank: int, local: int) -> dict[str, str]:
    return {"RANK": str(rank), "LOCAL_RANK": str(local)}


# --- a training --------------------------------------------------------------------------------


def trained(
    loader: str,
    images: Path,
    own: Path,
    ranks: int,
    words: Sequence[str],
    links: NodeLinks = ALONE,
) -> Row:
    """Rows of its log by epoch, which the first node has, and the seconds of the slowest copy.

    own: a new folder for what it makes.

    loader: one of LOADERS. Raises SystemExit if a rank fails, which says why.
    """
    import train

    data, seconds = images, 0.0
    if loader == "local copy":
        data, seconds = own / "copy", copied(images, own / "copy")
    source = ["--data-loader", "torch"]
    if loader == "feed":
        source = ["--data-loader", "feed", "--cache", str(own / "cache")]
    source += ["--data", str(data), "--out", str(own / "out")]
    code = run_ranks(ranks, lambda: train.main([*source, *words]), links)
    if code:
        sys.exit(code)
    seconds = max(links.gathered(seconds))
    if links.number > 0:
        return {}
    log = (own / "out/log.jsonl").read_text().splitlines()
    return {"epochs": [json.loads(line) for line in log], "copy": seconds}


def readings_of(
    loader: str, found: Row, image_bytes: float, notes: dict[str, str], nodes: int = 1
) -> list[Row]:
    """What a training says, and what follows from it."""
    epochs = found["epochs"]
    seconds = sum(row["seconds"] for row in epochs)
    steps = sum(row["steps"] for row in epochs)
    trained_bytes = image_bytes * sum(row["train_images"] for row in epochs)
    numbers: list[tuple[str, str, dict[str, str], list[float]]] = [
        ("images_per_second", "1/s", {}, [row["images_per_second"] for row in epochs]),
        ("training", "second", {}, [seconds]),
        ("training_with_copy", "second", {}, [seconds + found["copy"]]),
        ("iterations", "1", {}, [steps]),
        ("iterations_per_second", "1/s", {}, [steps / seconds]),
        ("reads", "byte/s", {}, [trained_bytes / seconds]),
        ("node_reads", "byte/s", {}, [trained_bytes / seconds / nodes]),
    ]
    if found["copy"]:
        numbers.append(("file_copy", "second", {}, [found["copy"]]))
    for number, row in enumerate(epochs, 1):
        at, stages = {"epoch": str(number)}, row["stages"]
        numbers += [("stage", "second", {**at, "stage": s}, [stages[s]]) for s in stages]
        numbers.append(("other_share", "1", at, [stages["other"] / sum(stages.values())]))
        numbers += [(name, "1", at, [row[name]]) for name in ("train_top1", "validation_top1")]
        numbers.append(("elapsed", "second", at, [row["elapsed_seconds"]]))
    for part, name in LOADS.items():
        load = epochs[0]["ranks"] * epochs[0][name]["load"]
        numbers.append(("load", "second", {"part": part}, [load]))
    return [
        {
            "metric": metric,
            "unit": unit,
            "values": values,
            "levels": {"loader": loader, **levels},
            "notes": notes,
        }
        for metric, unit, levels, values in numbers
    ]


LOADS = {"iteration 1": "first_iteration", "iteration 2": "second_iteration", "epoch 1": "stages"}


def make_own_folder(own: str, links: NodeLinks) -> None:
    """Raises NodeLinksError on all nodes if it cannot be made on one."""
    why = ""
    try:
        Path(own).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = str(error)
    for each in links.gathered(why):
        if each:
            raise NodeLinksError(f"no folder on the node's own storage: {each}")


def measured(options: argparse.Namespace, words: list[str], links: NodeLinks) -> None:
    make_own_folder(options.own, links)
    import torch

    # What PyTorch loads when this is first used takes seconds, in each rank if not here.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.0)
    ranks = options.ranks * links.count
    validation = max(options.validation, ranks)
    images = Path(options.folder, "flowos-training", f"{options.images}-{validation}")
    if links.number == 0:
        make_images(images, options.own, options.images, validation, options.side)
    every_feed = links.gathered(has_feed())  # when the images are there
    sizes = at_once(os.path.getsize, [*(images / "train").rglob("*.jpg")])
    words, readings = [*words, "--epochs", str(options.epochs)], []
    for loader in LOADERS if all(every_feed) else LOADERS[:-1]:
        notes = {
            "torch": torch.__version__,
            "images": str(len(sizes)),
            "own_storage": options.own,
            "page_cache": "cold" if all(links.gathered(dropped(images))) else "may be warm",
        }
        with tempfile.TemporaryDirectory(prefix="flowos-training-", dir=options.own) as own:
            found = trained(loader, images, Path(own), options.ranks, words, links)
        if found:
            mean = sum(sizes) / len(sizes)
            readings += readings_of(loader, found, mean, notes, links.count)
    if links.number == 0:
        sys.stdout.write(json.dumps({"readings": readings}))


def has_feed() -> bool:
    try:
        import flowos

        return bool(flowos.Feed)  # which loads it, for all ranks
    except ImportError:
        return False


def main(given: list[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what is in --own is removed
    parser = argparse.ArgumentParser(description="Time trainings of resnet50/.")
    for name in ("folder", "own"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("ranks", "epochs", "images", "side"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--validation", type=int, default=CLASSES)
    parser.add_argument("--nodes", type=int, default=1)
    options, words = parser.parse_known_args(given)
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        reason = f"{sys.executable}, which has PyTorch, has no Pillow for the images"
        sys.stdout.write(json.dumps({"cannot": reason, "remedy": "pip install pillow"}))
        return CANNOT_MEASURE_HERE
    try:
        measured(options, words, linked(options.nodes, Path(options.folder, "flowos-nodes.json")))
    except NodeLinksError as why:
        print(f"train.py: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
