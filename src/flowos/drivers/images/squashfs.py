"""squashfs-tools: packs a tar stream into a squashfs, and unpacks it."""

import re
from collections.abc import Mapping
from pathlib import PurePath

from flowos.model import Argv

PACKAGE = "squashfs-tools"
ENV_BLOCKED = ("SOURCE_DATE_EPOCH",)
"""mksquashfs refuses its own options for times if this variable is set."""

DAMAGED = "it is damaged or truncated"

_BLIND = r"because you're not superuser|^\s*$"
_LEVEL = "9"
_ENTRY = re.compile(
    r"^(\S{10}) \S+ .*? \d{4}-\d\d-\d\d \d\d:\d\d (/.*?)(?: -> (.*))?$", re.MULTILINE
)
_MAX_LINKS = 40
_SIGNS_OF_DAMAGE = (
    "Can't find a valid SQUASHFS superblock",
    "read_block",
    "corruption detected",
    "uncompress failed",
    "failed to read",
)


def squash(to: PurePath, *, processors: int) -> Argv:
    """Reads a tar on standard input; equal tars give equal bytes.

    zstd 9 packs a 381 MB Debian into 129 MB in 3 s on 2 cores; gzip, the default, into 132 MB in 17
    s, and reading that back takes three times as long. Every FUSE reader since 2019 supports zstd.
    """
    return (
        *("mksquashfs", "-", str(to), "-tar", "-noappend", "-quiet", "-no-progress"),
        *("-comp", "zstd", "-Xcompression-level", _LEVEL, "-no-xattrs", "-exit-on-error"),
        *("-all-root", "-mkfs-time", "0", "-all-time", "0", "-root-mode", "0755"),
        *("-processors", str(processors)),
    )


def unsquash(squashfs: PurePath, to: PurePath, *, processors: int) -> Argv:
    """`to` must not exist."""
    options = ("-no-progress", "-quiet", "-no-xattrs", "-processors", str(processors))
    return ("unsquashfs", *options, "-dest", str(to), str(squashfs))


def cat(squashfs: PurePath, path: str) -> Argv:
    """Command that prints one file of it."""
    return ("unsquashfs", "-cat", str(squashfs), path)


def listing(squashfs: PurePath) -> Argv:
    return ("unsquashfs", "-ll", "-d", "", str(squashfs))


def read_listing(stdout: str) -> dict[str, tuple[str, str]]:
    """Path -> its mode, as -rwxr-xr-x, and what it leads to if it is a link."""
    return {path: (mode, target) for mode, path, target in _ENTRY.findall(stdout)}


def mode_of(entries: Mapping[str, tuple[str, str]], path: str) -> str:
    """Of what a path of `read_listing` leads to, links inside the image followed; "" if nothing."""
    at, left, links = "", path.split("/"), 0
    while left and links < _MAX_LINKS:
        name = left.pop(0)
        if name == "..":
            at = at.rpartition("/")[0]
        elif name not in ("", "."):
            mode, target = entries.get(f"{at}/{name}", ("", ""))
            if mode.startswith("l"):
                links += 1
                left = [*target.split("/"), *left]
                at = "" if target.startswith("/") else at
            else:
                at = f"{at}/{name}"
    return "" if left else entries.get(at, ("", ""))[0]


def version() -> Argv:
    return ("mksquashfs", "-version")


def read_version(stdout: str) -> str:
    found = re.search(r"version (\S+)", stdout)
    return found[1] if found else "unknown"


def complaint(code: int, stderr: str) -> str:
    """Why it failed; "" on success, or if it only could not create device nodes (root only)."""
    lines = [line for line in stderr.splitlines() if not re.search(_BLIND, line)]
    if code == 0 or (code == 2 and not lines):
        return ""
    if "No space left" in stderr or "Probably out of space" in stderr:
        return "the disk is full"
    if any(sign in stderr for sign in _SIGNS_OF_DAMAGE):
        return f"{DAMAGED} ({' '.join(lines[-1:]).strip()})"
    return " ".join(lines[-1:]) or f"exit {code}"
