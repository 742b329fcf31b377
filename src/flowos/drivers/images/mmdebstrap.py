"""mmdebstrap: creates a tar of a Debian (or Ubuntu) suite as an ordinary user."""

import re
from collections.abc import Sequence
from pathlib import PurePath

from flowos.model import Argv

PACKAGE = "mmdebstrap uidmap"

_SUITE = re.compile(r"[a-z0-9][a-z0-9.-]{0,60}")
_PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?")
_COMPLAINTS = (
    ("does not have a Release file", "the archive has no such suite"),
    ("Could not connect", "the package archive cannot be reached"),
    ("Could not resolve", "the package archive cannot be reached: its host is unknown"),
    ("Temporary failure resolving", "the package archive cannot be reached: its host is unknown"),
    (
        "failed to parse /etc/subuid",
        "you have no subordinate ids: have the administrator run "
        "'usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER'",
    ),
    ("unshare syscall failed", "user namespaces are not allowed here"),
    ("unshare() failed", "user namespaces are not allowed here"),
    ("can neither be executed natively", "that architecture cannot be run here, so not be built"),
)
_SIGNS_OF_A_FULL_DISK = ("No space left", "You don't have enough free space")
_DROP_OUR_OPTIONS = 'rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap"'
"""Removes our apt options, which contain this machine's proxy."""


def check(suite: str, packages: Sequence[str]) -> None:
    """Raises ValueError for an invalid suite or package name."""
    if not _SUITE.fullmatch(suite):
        raise ValueError(f"{suite!r:.80} is no name of a suite, such as bookworm")
    wrong = [name for name in packages if not _PACKAGE_NAME.fullmatch(name)]
    if wrong:
        raise ValueError(f"{wrong[0]!r:.80} is no name of a package")


def make(
    suite: str,
    to: PurePath,
    *,
    packages: Sequence[str],
    sources: Sequence[str],
    options: PurePath,
    architecture: str,
    is_root: bool,
) -> Argv:
    """sources: lines of sources.list; () for mmdebstrap's own. options: a file for apt."""
    included = (f"--include={','.join(packages)}",) if packages else ()
    return (
        *("mmdebstrap", f"--mode={'root' if is_root else 'unshare'}", "--variant=minbase"),
        *(*included, f"--architectures={architecture}", f"--aptopt={options}"),
        *("--format=tar", f"--customize-hook={_DROP_OUR_OPTIONS}", suite, str(to), *sources),
    )


def version() -> Argv:
    return ("mmdebstrap", "--version")


def read_version(stdout: str) -> str:
    return stdout.split()[-1] if stdout.split() else "unknown"


def is_full(stderr: str) -> bool:
    """Whether its disk was full."""
    return any(sign in stderr for sign in _SIGNS_OF_A_FULL_DISK)


def complaint(stderr: str) -> str:
    """The first relevant error, translated if it is known."""
    errors = [line for line in stderr.splitlines() if line.startswith("E:")]
    cause = next((line for line in errors if " failed" not in line), errors[0] if errors else "")
    known = next((text for sign, text in _COMPLAINTS if sign in stderr), "")
    words = cause.removeprefix("E:").strip()[:300]
    if known and words:
        return f"{known} ({words})"
    return known or words or stderr.strip()[-300:] or "mmdebstrap ended without a word"
