"""apt: the package sources of this machine, used to build images.

Formats: sources.list(5), one-line style and deb822 style; apt.conf(5).
"""

import re
from collections.abc import Iterator, Sequence

from flowos._dataclasses import dataclass
from flowos.model import Argv

_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<rest>.+)")
_POCKETS = ("", "-updates", "-security")
_ROLLING = ("sid", "unstable", "testing", "experimental")
_TAKEN = re.compile(
    r"Acquire::(?:(?:http|https|ftp)::(?:Proxy|Verify-Peer|Verify-Host|CaInfo|CaPath|Timeout)"
    r'|Check-Valid-Until|Check-Date|Retries|ForceIPv4|ForceIPv6)(?:::[^ ]*)? ".*";'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AptSource:
    """One archive in the configuration of apt."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""


def dump() -> Argv:
    """Command that prints apt's options, one per line."""
    return ("apt-config", "dump")


def options_taken(dumped: str) -> str:
    """Options about the network and the permitted age of an archive."""
    return "".join(f"{line}\n" for line in dumped.splitlines() if _TAKEN.fullmatch(line))


def read_list(text: str) -> tuple[AptSource, ...]:
    """Parse the one-line style. Unreadable lines are skipped, as apt reports them itself."""
    sources = []
    for line in text.splitlines():
        found = _ONE_LINE.fullmatch(line.partition("#")[0].strip())
        if found:
            suite, *components = found["rest"].split()
            options = dict(word.partition("=")[::2] for word in (found["options"] or "").split())
            sources.append(
                AptSource(
                    uri=found["uri"],
                    suites=(suite,),
                    components=tuple(components),
                    signed_by=options.get("signed-by", ""),
                )
            )
    return tuple(sources)


def read_deb822(text: str) -> tuple[AptSource, ...]:
    """Parse the deb822 style."""
    sources = []
    for fields in _stanzas(text):
        if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes") != "no":
            key = fields.get("signed-by", "")
            sources += [
                AptSource(
                    uri=uri,
                    suites=tuple(fields.get("suites", "").split()),
                    components=tuple(fields.get("components", "").split()),
                    signed_by=key if key.startswith("/") else "",
                )
                for uri in fields.get("uris", "").split()
            ]
    return tuple(sources)


def lines_for(suite: str, sources: Sequence[AptSource]) -> tuple[str, ...]:
    """Lines of sources.list with which this machine's archives serve the suite.

    If the machine runs that suite: its own lines. If it runs another suite of the same archive: its
    lines with the suite's name replaced. Otherwise (): the tool then uses its default archive.
    """
    official = [source for source in sources if _is_official(source)]
    own = tuple(
        _line(source, name)
        for source in official
        for name in source.suites
        if name in [suite + pocket for pocket in _POCKETS]
    )
    if own:
        return own
    bases = {name for source in official for name in source.suites if "-" not in name}
    lines = (
        _line(source, suite + name.removeprefix(base))
        for source in official
        for name in source.suites
        for base in sorted(bases)
        if name in [base + pocket for pocket in _POCKETS]
        and (name == base or suite not in _ROLLING)
    )
    return tuple(dict.fromkeys(lines))


def _is_official(source: AptSource) -> bool:
    """Whether it is the distribution's own, by its keyring: others have suites of the same name."""
    keyring = source.signed_by.rpartition("/")[2]
    return "main" in source.components and (not keyring or "-archive-keyring" in keyring)


def _line(source: AptSource, suite: str) -> str:
    signed = f"[signed-by={source.signed_by}] " if source.signed_by else ""
    return f"deb {signed}{source.uri} {suite} {' '.join(source.components)}"


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace():
                fields[name] = f"{fields.get(name, '')} {line.strip()}".strip()
            else:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        yield fields
