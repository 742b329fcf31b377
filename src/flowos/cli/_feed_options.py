"""What the feed says of its keywords, in the words of the command line."""

import re

_OPTIONS = {
    "member": "--member",
    "dtype": "--dtype",
    "length": "--length",
    "column": "--column",
    "label_column": "--label-column",
    "extensions": "--extensions",
    "cache": "--cache",
    "cache_bytes": "--max-bytes",
    "min_free_bytes": "--min-free",
    "source": "SOURCE",
}
_SAID = re.compile(
    rf"(?<![\w/.-])({'|'.join(_OPTIONS)})=(\[[^]]*\]|\([^)]*\)|'[^']*'|\"[^\"]*\"|[^\s,;:]*)"
)
_KIND = re.compile(r" \((?:str|list|int|float|tuple)\)(?=;| is | among )")  # as Python has it


def as_options(text: str) -> str:
    """`dtype='uint16', length=1024` as `--dtype uint16, --length 1024`."""
    return _KIND.sub("", _SAID.sub(_option, text))


def _option(said: "re.Match[str]") -> str:
    name, value = said.groups()
    if value in ("''", '""'):
        return f"{_OPTIONS[name]}: an empty word"
    if value[:1] in ("[", "("):
        value = ",".join(re.findall(r"'([^']*)'", value))
    return f"{_OPTIONS[name]} {value.strip(chr(34) + chr(39))}".rstrip()
