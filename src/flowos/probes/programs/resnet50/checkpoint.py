"""The state of a training on disk: whole, or as it was before. And its log, a line for each epoch.

A folder holds `checkpoint.pt`, `log.jsonl` and `lock`, and belongs to one training at a time.
"""

import fcntl
import json
import os
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import torch
from ranks import TrainingError


class TrainingFolder:
    """Of rank 0 to write to, of all ranks to read from. Raises TrainingError if it cannot be."""

    def __init__(self, folder: Path, *, writes: bool, resume: bool) -> None:
        self._file, self.log = folder / "checkpoint.pt", folder / "log.jsonl"
        self._resume = resume
        if not writes:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / "lock")
        except OSError as why:
            raise TrainingError(f"{folder}: {why.strerror}") from None
        if not resume and (self._file.exists() or self.log.exists()):
            raise TrainingError(
                f"{folder} holds a training: give --resume to go on with it, or another --out"
            )

    def saved(self) -> dict[str, Any] | None:
        """The checkpoint, where there is one to go on from."""
        if not self._resume or not self._file.exists():
            return None
        try:
            found: dict[str, Any] = torch.load(self._file, map_location="cpu", weights_only=True)
        except Exception:  # it raises what its parts raise
            raise TrainingError(
                f"{self._file}: damaged, or no checkpoint of this program"
            ) from None
        if not {"model", "optimizer", "feed", "ranks", "shape"} <= set(found):
            raise TrainingError(f"{self._file}: no checkpoint of this program")
        return found

    def save(self, state: dict[str, Any]) -> str:
        """Why it could not be written, in which case the one before stays; else nothing."""
        part, whole = self._file.with_suffix(".part"), BytesIO()
        torch.save(state, whole)  # to a full disk it would not say what is wrong
        try:
            with part.open("wb") as file:
                file.write(whole.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._file)
            _sync(self._file.parent)
        except OSError as why:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            return str(why)
        return ""

    def keep_log_before(self, epoch: int) -> None:
        """Lines of later epochs go, which are trained again, and a line that is not whole."""
        if not self.log.exists():
            return
        lines = [line for line in self.log.read_text().splitlines() if _epoch_of(line) < epoch]
        part = self.log.with_suffix(".part")
        part.write_text("".join(f"{line}\n" for line in lines))
        part.replace(self.log)

    def append_log(self, row: dict[str, Any]) -> str:
        """Why it could not be written; else nothing."""
        try:
            with self.log.open("a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as why:
            return str(why)
        return ""


def _locked(path: Path) -> IO[str]:
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TrainingError(f"{path.parent}: another training writes to it now") from None
    return file


def _sync(folder: Path) -> None:
    """So that the rename is on disk too."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _epoch_of(line: str) -> float:
    try:
        return int(json.loads(line)["epoch"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
