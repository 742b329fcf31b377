"""What tests of launches wait for: processes that end, folders that go, numbers in a file."""

from pathlib import Path

from tests.waiting import comes


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def all_gone(pids: list[int]) -> bool:
    return comes(lambda: not any(map(lives, pids)))


def is_removed(folder: Path) -> bool:
    return comes(lambda: not folder.exists())
