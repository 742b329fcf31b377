"""How an image is booted, from a person's words."""

import pytest

from flowos.model import (
    Boot,
    Environment,
    EnvironmentRefused,
    LinuxKernel,
    from_plain,
    read_boot,
    to_plain,
)


@pytest.mark.parametrize(
    ("words", "boot"),
    [
        ("", Boot()),
        ("kernel=6.1-rt", Boot(kernel=LinuxKernel(name="6.1-rt"))),
        ("mem=1G", Boot(memory_bytes=1 << 30)),
        ("mem=256M", Boot(memory_bytes=256 << 20)),
        ("kernel=a,mem=2G", Boot(kernel=LinuxKernel(name="a"), memory_bytes=2 << 30)),
    ],
)
def test_words_say_kernel_and_memory(words: str, boot: Boot) -> None:
    assert read_boot(words) == boot
    env = Environment(runtime="qemu", boot=boot)
    assert from_plain(Environment, to_plain(env)) == env


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("kernel", r"^'kernel': expected kernel=NAME or mem=SIZE"),
        ("kernel=", r"^'kernel=': expected"),
        ("cpus=2", r"^'cpus=2': expected"),
        ("mem=", r"^mem=: expected a whole number of M or G, from 256M on"),
        ("mem=1.5G", r"^mem=1.5G: expected a whole number of M or G"),
        ("mem=1G,mem=2G", r"^'mem=2G': mem= is given twice"),
        ("kernel=a,kernel=b", r"^'kernel=b': kernel= is given twice"),
        ("mem=1", r"^mem=1: expected"),
        ("mem=255M", r"^mem=255M: expected a whole number of M or G, from 256M on"),
        ("mem=-1G", r"^mem=-1G: expected"),
    ],
)
def test_other_words_are_refused_in_one_line(words: str, told: str) -> None:
    with pytest.raises(EnvironmentRefused, match=told):
        read_boot(words)
