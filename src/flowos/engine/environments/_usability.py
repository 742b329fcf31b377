"""Which runtimes work on this node: found by entering a tiny image with each, and kept.

That a program is there says little: the kernel, /dev/fuse, cgroups, subordinate ids and the user's
own settings all have a say. So each runtime is tried, in each of its ways, and what came of it is
kept until the node is started again or something that it depends on changes.
"""

import os
import platform
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flowos.drivers import RUNTIMES, Reason
from flowos.engine._ask import ask
from flowos.engine.environments._kept import keep, kept
from flowos.engine.environments._points import try_overlay
from flowos.engine.environments._tools import (
    boot_id,
    programs,
    tried_cheaply,
    user_namespace_limits,
)
from flowos.engine.environments._tries import LIMIT_SECONDS, Try, try_runtime
from flowos.engine.environments._variants import note_variant
from flowos.engine.launch._init_program import init_program
from flowos.model import Facts, Pairs, Tool, Tried, from_plain, to_plain

_KIND = "runtimes"
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_ENTERING = tuple(name for name in RUNTIMES if name != "bare")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What is kept. `identity`: of all that it depends on; `known`: runtimes that were tried."""

    identity: str
    versions: Pairs = ()
    userns: Tried
    overlay: Tried
    known: tuple[str, ...] = ()
    tries: tuple[Try, ...] = ()


def runtime_facts(*, anew: bool = False, only: Collection[str] = _ENTERING) -> Facts:
    """What this node has for entering images, and what trying its runtimes said.

    only: names of runtimes; others are not tried for this. anew: forget what is kept of those.
    """
    found, cheap = programs(), tried_cheaply()
    key = f"{platform.node()} {os.geteuid()} {cheap}"
    record = _kept_record(key, found) or _first_record(found)
    if anew:
        record = _without(record, only)
    untried = [name for name in only if name in _ENTERING and name not in record.known]
    if untried:
        record = _tried(record, untried, _facts(found, cheap, record))
        keep(_KIND, key, to_plain(record))
    facts = _facts(found, cheap, record)
    _note_ways(record, facts)
    return facts


def usability() -> Mapping[str, tuple[Reason, ...]]:
    """Of every runtime why it cannot be used here; empty: it can."""
    facts = runtime_facts()
    return {name: runtime.usable(facts) for name, runtime in RUNTIMES.items()}


def _kept_record(key: str, found: Mapping[str, Path]) -> _Record | None:
    try:
        record = from_plain(_Record, kept(_KIND, key))
    except ValueError:  # nothing, or of another version of us
        return None
    return record if record.identity == _identity(found) else None


def _identity(found: Mapping[str, Path]) -> str:
    files = [*found.values(), init_program()]
    seen = [(str(file), (s := file.stat()).st_mtime_ns, s.st_size) for file in files]
    return repr((boot_id(), user_namespace_limits(), seen))


def _first_record(found: Mapping[str, Path]) -> _Record:
    return _Record(
        identity=_identity(found),
        versions=tuple((name, _version(path)) for name, path in found.items()),
        userns=_try_user_namespaces(),
        overlay=try_overlay(),
    )


def _without(record: _Record, names: Collection[str]) -> _Record:
    return replace(
        record,
        known=tuple(name for name in record.known if name not in names),
        tries=tuple(each for each in record.tries if each.runtime not in names),
    )


def _tried(record: _Record, untried: list[str], facts: Facts) -> _Record:
    new = [each for name in untried for each in try_runtime(RUNTIMES[name], facts)]
    return replace(
        record,
        known=(*record.known, *untried),
        tries=tuple(sorted((*record.tries, *new), key=lambda t: _ENTERING.index(t.runtime))),
    )


def _note_ways(record: _Record, facts: Facts) -> None:
    for each in record.tries:
        ways = RUNTIMES[each.runtime].ways(facts)
        if each.works and each.way < len(ways):
            note_variant(each.runtime, each.form, ways[each.way])


def _facts(found: Mapping[str, Path], cheap: tuple[Tried, ...], record: _Record) -> Facts:
    versions = dict(record.versions)
    return Facts(
        host=platform.node(),
        system=platform.system(),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu_model="",
        cpus=(),
        allowed=(),
        tools=tuple(
            Tool(name=name, version=versions.get(name, ""), path=path)
            for name, path in found.items()
        ),
        tried=(record.userns, record.overlay, *cheap, *(each.tried for each in record.tries)),
    )


def _try_user_namespaces() -> Tried:
    complaint = _said("unshare", "--user", "--map-root-user", "--mount", "true")[1]
    return Tried(name="user namespaces", works=not complaint, says=complaint)


def _version(program: Path) -> str:
    said, complaint = _said(str(program), "--version")
    match = _VERSION.search(said) or _VERSION.search(complaint)
    return match[0] if match else ""


def _said(*argv: str) -> tuple[str, str]:
    """What a program prints, and its complaint if it does not end well."""
    variables = {"USER": str(os.geteuid())} | dict(os.environ)  # ch-run wants one
    try:
        done = ask(argv, seconds=LIMIT_SECONDS, variables=variables)
    except OSError as error:
        return "", str(error)
    complaint = f"exit {done.code}: {done.says}" if done.code else ""
    return (done.stdout + done.stderr).decode(errors="replace"), complaint
