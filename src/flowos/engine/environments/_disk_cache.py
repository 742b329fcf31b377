"""Results that cost time, as small JSON files in the user's cache folder."""

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

from flowos._user_folders import cache_folder


def cached(kind: str, key: str) -> Any:
    """The cached value; None if there is none, or it cannot be read."""
    try:
        found = json.loads(_file(kind, key).read_bytes())
    except (OSError, ValueError):
        return None
    return found.get("value") if isinstance(found, dict) and found.get("key") == key else None


def keep(kind: str, key: str, value: object) -> None:
    """Replace it as a whole. A cache that cannot be written costs time, nothing else."""
    import tempfile  # takes long, and most starts find what they look for

    with contextlib.suppress(OSError):
        file = _file(kind, key)
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", dir=file.parent)
        try:
            with os.fdopen(handle, "w") as text:
                text.write(json.dumps({"key": key, "value": value}))
            Path(temporary).replace(file)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def _file(kind: str, key: str) -> Path:
    """Two keys may have one file, and then take turns."""
    name = f"{zlib.crc32(os.fsencode(key)):08x}"
    return cache_folder() / kind / f"{name}.json"
