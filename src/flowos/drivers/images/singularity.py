"""Variables that an Apptainer or Singularity image sets in the scripts of /.singularity.d/env.

They are shell scripts, but nothing is run. The parser reads `export NAME=word` with quotes, `$NAME`
and `${NAME:-word}`: everything that Apptainer writes for an image converted from Docker
(10-docker2singularity.sh), and most of what people write under %environment (90-environment.sh).
Lines that need a shell, for a command's output or a condition, are skipped.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from flowos.drivers._inside import DEFAULT_PATH
from flowos.model import Pairs

RUNSCRIPT = "/.singularity.d/runscript"
SCRIPTS = "/.singularity.d/env"

_OWN = re.compile(r"(?:10-docker|9[01]-).*\.sh")
_OPENS = re.compile(r"^\s*(?:if|case|for|while|until)\s|\{\s*$")
_CLOSES = re.compile(r"(?:^|[\s;])(?:fi|esac|done)\s*(?:;|$)|^\s*\}")
_EXPORT = re.compile(r"\s*export\s+")
_NAME = re.compile(r"\s*([A-Za-z_]\w*)=")
_END = re.compile(r"\s|;|$")
_VARIABLE = r"\$\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^}]*))?\}|\$(?P<plain>[A-Za-z_]\w*)"
_PIECE = re.compile(
    r"'(?P<single>[^']*)'"
    r'|"(?P<double>(?:\\.|\$\{[^}]*\}|[^"\\])*)"'
    rf"|{_VARIABLE}"
    r"|\\(?P<escaped>.)|(?P<text>[^\s'\"$`\\;&|<>()]+)"
)
_QUOTED_PIECE = re.compile(rf'{_VARIABLE}|\\(?P<escaped>["$`\\])|(?P<text>[^$`\\]+|\\)')
_INNER_QUOTE = re.compile(r'(?<!\\)"')


def sets_variables(script: str) -> bool:
    """Whether a script of this name holds settings of the image, not of its runtime."""
    return _OWN.fullmatch(script) is not None


def variables(scripts: Iterable[str]) -> Pairs:
    """Variables that the scripts export, in order; each script sees those of earlier ones."""
    known = {"PATH": DEFAULT_PATH}
    found: dict[str, str] = {}
    for text in scripts:
        for line in _unconditional(text):
            found |= _exported(line, known | found)
    return tuple(found.items())


def _unconditional(text: str) -> Iterator[str]:
    depth = 0
    for line in text.splitlines():
        opens, closes = bool(_OPENS.search(line)), bool(_CLOSES.search(line))
        if not (depth or opens or closes):
            yield line
        depth = max(0, depth + opens - closes)


def _exported(line: str, known: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    start = _EXPORT.match(line)
    at = start.end() if start else len(line)
    while name := _NAME.match(line, at):
        try:
            value, at = _expanded(_PIECE, line, name.end(), {**known, **found})
        except ValueError:
            return {}
        if not _END.match(line, at):
            return {}
        found[name[1]] = value
    return found


def _expanded(
    pieces: re.Pattern[str], text: str, at: int, known: Mapping[str, str]
) -> tuple[str, int]:
    """Expand the consecutive pieces from `at`; return the text and where it ends."""
    value = ""
    while piece := pieces.match(text, at):
        value += _meaning(piece, known)
        at = piece.end()
    return value, at


def _meaning(piece: re.Match[str], known: Mapping[str, str]) -> str:
    match piece.lastgroup:
        case "double":
            return _quoted(piece["double"], known)
        case "braced" | "plain" as kind:
            return known.get(piece[kind], "")
        case "default":
            return known.get(piece["braced"]) or _quoted(
                _INNER_QUOTE.sub("", piece["default"]), known
            )
        case kind:
            return piece[str(kind)]


def _quoted(text: str, known: Mapping[str, str]) -> str:
    """Raises ValueError if it needs a shell."""
    value, end = _expanded(_QUOTED_PIECE, text, 0, known)
    if end < len(text):
        raise ValueError(text)
    return value
