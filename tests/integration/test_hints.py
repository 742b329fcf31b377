"""Packages that messages name are those of Debian."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import flowos
from flowos.drivers.images import mmdebstrap, skopeo, squashfs
from flowos.probes._facts_missing import _PACKAGES

_HINT = re.compile(r"apt(?:-get)? install (?:--\S+ )*((?:[a-z0-9][a-z0-9+.-]+ ?)+)")
_CALL = re.compile(r'(?:install_line\(|need\("\w+", )"([a-z0-9 +.-]+)"')


def named_packages() -> set[str]:
    found = set(f"{mmdebstrap.PACKAGE} {skopeo.PACKAGE} {squashfs.PACKAGE}".split())
    for hints in _PACKAGES.values():
        found |= set(hints.get("apt", hints.get("", "")).split())
    for file in Path(flowos.__file__).parent.rglob("*.py"):
        for pattern in (_HINT, _CALL):
            for words in pattern.findall(file.read_text()):
                found |= set(words.split())
    return found


@pytest.mark.skipif(
    not shutil.which("apt-cache") or not any(Path("/var/lib/apt/lists").glob("*_Packages*")),
    reason="the package lists of this machine are not here",
)
def test_every_package_that_a_message_names_is_there() -> None:
    said = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True)
    named = named_packages()
    assert {"openmpi-bin", "uidmap", "zstd", "squashfs-tools", "libopenblas0-pthread"} <= named
    assert named - set(said.stdout.split()) == set()
