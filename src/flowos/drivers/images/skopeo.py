"""skopeo: fetches an image from a registry, with manifest and blobs unchanged."""

import re
from pathlib import PurePath

from flowos._dataclasses import dataclass
from flowos.model import Argv

PACKAGE = "skopeo"
SCHEME = "docker://"

_REFERENCE = re.compile(
    r"docker://(?P<name>[^@]+?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>\w+:[0-9a-f]+))?"
)
_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
_COMPLAINTS = (
    ("manifest unknown", "the registry has no such name, tag or digest"),
    ("name unknown", "the registry has no such name"),
    ("repository name not known", "the registry has no such name"),
    ("connection refused", "the registry cannot be reached: nothing answers there"),
    ("no such host", "the registry cannot be reached: its host is unknown"),
    ("i/o timeout", "the registry cannot be reached: no answer in time"),
    ("network is unreachable", "the registry cannot be reached from here"),
    ("HTTP response to HTTPS client", "the registry speaks no TLS; that is only taken on loopback"),
    ("certificate", "the registry's certificate is not trusted here: have its authority installed"),
    ("unauthorized", "the registry refuses: log in first (skopeo login), or mend the name"),
    ("denied", "the registry refuses: log in first (skopeo login), or mend the name"),
    ("toomanyrequests", "the registry refuses for now: too many requests; log in, or try later"),
    ("no image found in", "it is not there for this architecture"),
    (
        "policy.json",
        "skopeo has no policy file: install containers-common, or write "
        "~/.config/containers/policy.json",
    ),
    ("no space left", "the disk is full"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Address of an image in a registry. name: with its host, as `127.0.0.1:5000/tools/fio`."""

    name: str
    tag: str = ""
    digest: str = ""

    @property
    def is_loopback(self) -> bool:
        return _LOOPBACK.fullmatch(self.name.partition("/")[0]) is not None

    def __str__(self) -> str:
        """Reference for skopeo, which refuses a tag together with a digest; the digest is exact."""
        if self.digest:
            return f"{SCHEME}{self.name}@{self.digest}"
        return f"{SCHEME}{self.name}:{self.tag}" if self.tag else f"{SCHEME}{self.name}"


def read_reference(word: str) -> Reference:
    """Raises ValueError if it is not docker://HOST/NAME[:TAG][@DIGEST]."""
    found = _REFERENCE.fullmatch(word)
    name = found["name"] if found else ""
    if not found or not re.fullmatch(r"[a-z0-9\[][a-z0-9._:/\[\]-]*", name):
        raise ValueError(
            "expected docker://HOST/NAME[:TAG][@sha256:DIGEST], the name in lower case"
        )
    return Reference(name=name, tag=found["tag"] or "", digest=found["digest"] or "")


def fetch(reference: Reference, to: PurePath, *, architecture: str) -> Argv:
    """Fetch into a folder: the registry's manifest.json, and each blob under its hex digest."""
    plain = ("--src-tls-verify=false",) if reference.is_loopback else ()
    chosen = ("--override-arch", architecture, "--override-os", "linux")
    return ("skopeo", *chosen, "copy", "--quiet", *plain, str(reference), f"dir:{to}")


def version() -> Argv:
    return ("skopeo", "--version")


def read_version(stdout: str) -> str:
    return stdout.split()[-1] if stdout.split() else "unknown"


def complaint(stderr: str) -> str:
    """Why it failed, for people; unknown messages are quoted."""
    said = stderr.strip().rpartition("msg=")[2].strip('"').replace('\\"', '"')
    known = next((text for sign, text in _COMPLAINTS if sign.lower() in said.lower()), "")
    return known or said[-300:] or "skopeo ended without a word"
