"""What tests of launches wait for: processes that end, folders that go, numbers in a file."""

import time
from pathlib import Path

PATIENCE_SECONDS = 60.0


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def all_gone(pids: list[int]) -> bool:
    until = time.monotonic() + PATIENCE_SECONDS
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(lives, pids))


def is_removed(folder: Path) -> bool:
    until = time.monotonic() + PATIENCE_SECONDS
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return not folder.exists()


def numbers_in(path: Path, count: int) -> list[int]:
    """Wait until that many process ids stand in the file."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if path.exists() and len(found := path.read_text().split()) >= count:
            return [int(word) for word in found[:count]]
        time.sleep(0.01)
    raise AssertionError(f"{path} never got {count} numbers")
