"""A command gets exactly what its launch says."""

import os
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

from flowos.engine import here
from flowos.model import BARE, Environment, Launch, Pairs


def environment_of(launch: Launch) -> dict[str, str]:
    outcome = here().run(launch)
    assert outcome.ok, outcome
    pairs = (os.fsdecode(item).split("=", 1) for item in outcome.stdout.split(b"\0") if item)
    return {name: value for name, value in pairs}


HOSTILE: Pairs = (
    ("PLAIN", "x"),
    ("EMPTY", ""),
    ("NEWLINES", "a\nb\n"),
    ("QUOTES", "\"'`"),
    ("SHELL", "$(touch /tmp/no) $HOME ``id`` ;&|<>*?~\\"),
    ("EQUALS", "=a=b="),
    ("COMMAS", "a,b,c"),
    ("SPACES", "  a  b  "),
    ("NOT_UTF8", os.fsdecode(b"\xff\xfe\x80")),
    ("UNICODE", "\u00fc\u4e2d\U0001f600"),
    ("LONG", "y" * 100_000),
    ("with space", "1"),
    ("BASH_FUNC_x%%", "() { :; }"),
    ("LD_BIND_NOW", "1"),
)


def test_hostile_values_arrive_byte_for_byte() -> None:
    assert environment_of(Launch(argv=("/usr/bin/env", "-0"), variables=HOSTILE)) == dict(HOSTILE)


def test_nothing_is_inherited_unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMIX_RANK", "3")
    monkeypatch.setenv("SECRET", "1")
    assert environment_of(Launch(argv=("/usr/bin/env", "-0"))) == {}


def test_a_rank_of_a_gang_around_us_does_not_confuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMIX_RANK", "3")
    launch = Launch(argv=("/usr/bin/env", "-0"), variables=here().variables(BARE))
    assert environment_of(launch)["PMIX_RANK"] == "3"


def test_the_callers_variables_can_be_had() -> None:
    launch = Launch(argv=("env", "-0"), variables=here().variables(BARE))
    assert environment_of(launch) == dict(os.environ)


def test_the_launchs_variables_win_over_its_environments() -> None:
    env = Environment(variables=(("A", "image"), ("B", "image")))
    launch = Launch(argv=("/usr/bin/env", "-0"), env=env, variables=(("B", "launch"),))
    assert environment_of(launch) == {"A": "image", "B": "launch"}


def test_the_command_is_looked_for_in_its_own_path(tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    launch = Launch(argv=("only-here",), variables=(("PATH", f"/nowhere:{tmp_path}"),))
    assert here().run(launch).stdout == b"found\n"


def test_words_arrive_as_they_are() -> None:
    words = ("a b", "", "$x", "--", "'", '"', "\n", "*", os.fsdecode(b"\xff"))
    outcome = here().run(Launch(argv=("/usr/bin/printf", "%s\\0", *words)))
    assert outcome.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in words]


def test_the_folder_is_the_one_asked_for(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd \n$x \xff")
    odd.mkdir()
    launch = Launch(argv=("/usr/bin/env", "pwd"), cwd=PurePath(odd))
    assert here().run(launch).stdout == os.fsencode(odd) + b"\n"


def test_standard_input_is_empty_unless_given(tmp_path: Path) -> None:
    cat = Launch(argv=("/bin/cat",))
    assert here().run(cat).stdout == b""
    assert here().run(Launch(argv=("/bin/readlink", "/proc/self/fd/0"))).stdout == b"/dev/null\n"
    assert here().run(cat, stdin=b"x" * 300_000).stdout == b"x" * 300_000
    (tmp_path / "in").write_bytes(b"from a file")
    fd = os.open(tmp_path / "in", os.O_RDONLY)
    try:
        assert here().run(cat, stdin=fd).stdout == b"from a file"
    finally:
        os.close(fd)


def test_signals_that_the_c_library_keeps_to_itself_are_not_left_ignored() -> None:
    """What glibc's posix_spawn does to its children: 13 is rt_sigaction on x86-64, 134 on arm64."""
    script = """
import ctypes, platform
number = {"x86_64": 13, "aarch64": 134}[platform.machine()]
ignored = (ctypes.c_ulong * 8)(1)
assert ctypes.CDLL(None).syscall(number, 32, ignored, None, 8) == 0
from flowos.engine import here
from flowos.model import Launch
command = ("/bin/grep", "SigIgn", "/proc/self/status")
print(here().run(Launch(argv=command)).stdout.decode().split()[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0" * 16


def test_signals_and_descriptors_are_as_at_a_login() -> None:
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f2; ls /proc/self/fd"
    outcome = here().run(
        Launch(argv=("/bin/sh", "-c", script), variables=(("PATH", "/usr/bin:/bin"),))
    )
    assert outcome.stdout.split() == [b"0" * 16] * 2 + [b"0", b"1", b"2", b"3"]
