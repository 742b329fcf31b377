"""The contestants as data, and their Pythons: each set of packages in its own venv.

Their requirements conflict, and FlowOS needs none of them, so they are installed outside of the
repository.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pictures import DataSet
from places import HERE, NotHere, say

Options = Mapping[str, str]

OURS_TOO = ("numpy", "pillow")
VENVS: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch==2.13.0", "spdl", "webdataset", "litdata", "obstore", "simplejpeg"),
    "mosaicml": ("torch==2.13.0", "mosaicml-streaming", "simplejpeg"),
    "tensorflow": ("tensorflow-cpu",),
    "grain": ("grain", "simplejpeg"),
    "dali": ("nvidia-dali-cuda120",),
}
LEFT_OUT: Mapping[str, str] = {
    "ffcv": "pip builds it from source, which needs the headers of OpenCV and libturbojpeg"
}
INSTALL_SECONDS = 1200


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """`venv` "": this Python. `form`: its data format; "files" is the data set itself. `stages`: it
    copies samples from remote storage to this node. `workers` are processes or threads.
    `raw`, `decoded`: other settings that are tried, the first being the default; empty: it cannot
    do that.
    """

    name: str
    title: str
    venv: str
    form: str = "files"
    stages: bool = False
    stores: frozenset[str] = frozenset({"far", "local"})
    raw: tuple[Options, ...] = ({},)
    decoded: tuple[Options, ...] = ()


DECODERS: tuple[Options, ...] = tuple(
    {"decode": decoder} for decoder in ("pillow", "turbojpeg", "torch")
)

BY_ITSELF = 0
"""Workers of ours: not set, as it adapts the number of reads."""

OURS = Contestant(
    name="ours",
    title="FlowOS",
    venv="",
    stages=True,
    stores=frozenset({"far", "local", "s3"}),
    decoded=({},),
)
PEERS = (
    Contestant(
        name="torch",
        title="PyTorch DataLoader",
        venv="torch",
        stores=frozenset({"far", "local", "s3"}),
        raw=({"collate": "bytes"}, {"collate": "tensor"}, {"collate": "tensor", "prefetch": "8"}),
        decoded=DECODERS,
    ),
    Contestant(
        name="spdl",
        title="SPDL",
        venv="torch",
        raw=({"unit": "item"}, {"unit": "batch"}),
        decoded=(*DECODERS, {"decode": "native"}, {"decode": "torch", "unit": "batch"}),
    ),
    Contestant(name="webdataset", title="WebDataset", venv="torch", form="tar", decoded=DECODERS),
    Contestant(
        name="mosaicml",
        title="MosaicML Streaming",
        venv="mosaicml",
        form="mds",
        stages=True,
        stores=frozenset({"far", "local", "s3"}),
        decoded=DECODERS,
    ),
    Contestant(
        name="litdata",
        title="LitData",
        venv="torch",
        form="lit",
        stages=True,
        decoded=DECODERS,
    ),
    Contestant(name="tfdata", title="tf.data", venv="tensorflow", decoded=({},)),
    Contestant(name="grain", title="Grain", venv="grain", decoded=DECODERS[:2]),
    Contestant(
        name="dali",
        title="DALI (CPU)",
        venv="dali",
        raw=({"source": "external"}, {"source": "reader"}),
        decoded=({"source": "reader"}, {"source": "external"}),
    ),
    Contestant(name="obstore", title="obstore", venv="torch", stores=frozenset({"s3"})),
)


def python_of(peer: Contestant, folder: Path, retry: bool = False) -> Path:
    """Its Python, installed if needed. Raises NotHere with pip's error."""
    if not peer.venv:
        return Path(sys.executable)
    packages = (*VENVS[peer.venv], *OURS_TOO)
    digest = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    venv = folder / "venvs" / f"{peer.venv}-{digest}"
    refused = venv.with_suffix(".refused")
    if retry:
        refused.unlink(missing_ok=True)
    if refused.exists():
        raise NotHere(refused.read_text().strip())
    if not (venv / "installed").exists():
        _install(peer.venv, packages, venv, refused)
    return venv / "bin" / "python"


def _install(name: str, packages: tuple[str, ...], venv: Path, refused: Path) -> None:
    say(f"installing {', '.join(packages)} into {venv} ...")
    shutil.rmtree(venv, ignore_errors=True)
    venv.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    words = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        said = done.stderr.strip().splitlines() if done.returncode else []
    except subprocess.TimeoutExpired:
        said = [f"pip took more than {INSTALL_SECONDS} s"]
    if said:
        errors = [line for line in said if "error" in line.lower()] or said
        refused.write_text(f"{name} did not install: {errors[-1][:300]}\n")
        shutil.rmtree(venv, ignore_errors=True)
        raise NotHere(refused.read_text().strip())
    (venv / "installed").touch()


def converted(peer: Contestant, data: DataSet, python: Path) -> tuple[Path, float | None]:
    """The data set in the contestant's format, and the seconds of converting it, if done now."""
    target = Path(data.folder) / peer.form
    if target.exists():
        return target, None
    say(f"converting {data.count:,} samples for {peer.title} ...")
    trial = target.with_name(f"{peer.form}.{os.getpid()}")
    words = [str(python), str(HERE / "formats.py"), peer.form, str(data.files), str(data.listed)]
    began = time.perf_counter()
    done = subprocess.run([*words, str(trial)], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        shutil.rmtree(trial, ignore_errors=True)
        raise NotHere(f"{peer.form} was not made: {(done.stderr.strip() or '?').splitlines()[-1]}")
    trial.rename(target)
    return target, seconds
