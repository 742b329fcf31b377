"""What was found out at a cost, kept in this user's cache folder: small JSON files."""

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from flowos.engine.launch._init_program import cache_folder


def kept(kind: str, key: str) -> Any:
    """What was kept, or None: never, or not readable any more."""
    try:
        return json.loads(_file(kind, key).read_bytes())
    except (OSError, ValueError):
        return None


def keep(kind: str, key: str, value: object) -> None:
    """Replace it as a whole. A cache that cannot be written costs time, nothing else."""
    file = _file(kind, key)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(prefix=".", dir=file.parent)
        try:
            with os.fdopen(handle, "w") as text:
                json.dump(value, text)
            Path(beside).replace(file)
        except OSError:
            Path(beside).unlink(missing_ok=True)
            raise


def _file(kind: str, key: str) -> Path:
    name = hashlib.sha256(os.fsencode(key)).hexdigest()[:32]
    return cache_folder() / kind / f"{name}.json"
