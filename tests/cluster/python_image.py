"""A small image whose python3 is that of the tests, once folders of ours are bound."""

import shutil
import sys
from pathlib import Path

from tests.environments.conftest import make_busybox, squash

OURS = tuple(
    (str(path), str(path))
    for path in (Path("/usr/lib"), Path("/usr/lib64"), Path(sys.base_prefix))
    if path.exists() and path != Path("/usr")
)
"""What the image's python3 needs."""


def make_python_image(folder: Path) -> Path:
    """As squashfs, next to `folder`."""
    make_busybox(folder)
    python = Path(sys.executable).resolve()
    if sys.base_prefix == "/usr":  # not bound: the image has commands of its own there
        shutil.copy2(python, folder / "bin/python3")
    else:
        (folder / "bin/python3").symlink_to(python)
    for place in (*(source for source, _ in OURS), sys.prefix):
        (folder / place[1:]).mkdir(parents=True, exist_ok=True)
    for name in ("lib", "lib64"):
        (folder / name).symlink_to(f"usr/{name}")
    squash(folder, folder.with_suffix(".sqfs"))
    return folder.with_suffix(".sqfs")
