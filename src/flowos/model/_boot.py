"""How an image is booted, read from the words of a person."""

import re

from flowos._dataclasses import replace
from flowos.model._errors import EnvironmentRefused
from flowos.model._launch import Boot, LinuxKernel

_SIZES = {"M": 1 << 20, "G": 1 << 30}
_MIN_MEMORY_BYTES = 256 << 20


def read_boot(words: str) -> Boot:
    """From kernel=NAME,mem=SIZE. Raises EnvironmentRefused for anything else."""
    boot, given = Boot(), set[str]()
    for word in filter(None, words.split(",")):
        name, _, value = word.partition("=")
        if name in given:
            raise EnvironmentRefused(f"{word!r}: {name}= is given twice; leave one out")
        given.add(name)
        if name == "kernel" and value:
            boot = replace(boot, kernel=LinuxKernel(name=value))
        elif name == "mem":
            boot = replace(boot, memory_bytes=_memory_bytes(value))
        else:
            raise EnvironmentRefused(f"{word!r}: expected kernel=NAME or mem=SIZE, as mem=1G")
    return boot


def _memory_bytes(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6})([MG])", text)
    if found is None or (size := int(found[1]) * _SIZES[found[2]]) < _MIN_MEMORY_BYTES:
        raise EnvironmentRefused(
            f"mem={text}: expected a whole number of M or G, from 256M on, as 512M"
        )
    return size
