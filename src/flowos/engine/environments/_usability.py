"""Which runtimes work on this node: found by entering a tiny image with each, and kept.

That a program is there says little: the kernel, /dev/fuse, cgroups, subordinate ids and the user's
own settings all have a say. So each runtime is tried, in each of its variants, and what came of
it is kept until the node is started again or something that it depends on changes.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from flowos._dataclasses import dataclass, replace
from flowos.drivers import RUNTIMES, Runtime
from flowos.engine._ask import ask
from flowos.engine.environments._disk_cache import cached, keep
from flowos.engine.environments._points import try_overlay
from flowos.engine.environments._tools import (
    boot_id,
    programs,
    tried_cheaply,
    user_namespace_limits,
)
from flowos.engine.environments._tries import LIMIT_SECONDS, Try, try_runtime
from flowos.engine.launch._session import LaunchSession
from flowos.model import Facts, Form, Pairs, Tool, Tried, from_plain, to_plain

_KIND = "runtimes"
_VERSION = r"\d+(?:\.\d+)+"
_ENTERING = tuple(name for name in RUNTIMES if name != "bare")


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What is kept. `identity`: of all that it depends on; `known`: runtimes that were tried."""

    identity: str
    versions: Pairs = ()
    userns: Tried
    overlay: Tried
    known: tuple[str, ...] = ()
    tries: tuple[Try, ...] = ()


Adapted = Mapping[tuple[str, Form], Runtime]
"""The runtimes that work, by name and form of image, as they work here."""


def runtime_facts(
    session: LaunchSession, *, anew: bool, only: Collection[str] | None
) -> tuple[Facts, Adapted]:
    """What `Runtimes.facts` says, and what it learns of it."""
    only = _ENTERING if only is None else only
    init, found, cheap = session.init_program(), programs(), tried_cheaply()
    key = f"{os.uname().nodename} {os.geteuid()} {cheap}"
    record = _kept_record(key, found, init) or _first_record(found, init)
    if anew:
        record = _without(record, only)
    untried = [name for name in only if name in _ENTERING and name not in record.known]
    if untried:
        record = _tried(record, untried, _facts(found, cheap, record), session)
        keep(_KIND, key, to_plain(record))
    facts = _facts(found, cheap, record)
    return facts, dict(_adapted(record, facts))


def _kept_record(key: str, found: Mapping[str, Path], init: Path) -> _Record | None:
    try:
        record = from_plain(_Record, cached(_KIND, key))
    except ValueError:  # nothing, or of another version of us
        return None
    return record if record.identity == _identity(found, init) else None


def _identity(found: Mapping[str, Path], init: Path) -> str:
    files = [*found.values(), init]
    seen = [(str(file), (s := file.stat()).st_mtime_ns, s.st_size) for file in files]
    return repr((boot_id(), user_namespace_limits(), seen))


def _first_record(found: Mapping[str, Path], init: Path) -> _Record:
    return _Record(
        identity=_identity(found, init),
        versions=tuple((name, _version(path)) for name, path in found.items()),
        userns=_try_user_namespaces(),
        overlay=try_overlay(init),
    )


def _without(record: _Record, names: Collection[str]) -> _Record:
    return replace(
        record,
        known=tuple(name for name in record.known if name not in names),
        tries=tuple(each for each in record.tries if each.runtime not in names),
    )


def _tried(record: _Record, untried: list[str], facts: Facts, session: LaunchSession) -> _Record:
    new = [each for name in untried for each in try_runtime(RUNTIMES[name], facts, session)]
    return replace(
        record,
        known=(*record.known, *untried),
        tries=tuple(sorted((*record.tries, *new), key=lambda t: _ENTERING.index(t.runtime))),
    )


def _adapted(record: _Record, facts: Facts) -> Iterator[tuple[tuple[str, Form], Runtime]]:
    for each in record.tries:
        variants = RUNTIMES[each.runtime].variants(facts)
        if each.works and each.way < len(variants):
            yield (each.runtime, each.form), variants[each.way]


def _facts(found: Mapping[str, Path], cheap: tuple[Tried, ...], record: _Record) -> Facts:
    versions, kernel = dict(record.versions), os.uname()
    return Facts(
        host=kernel.nodename,
        system=kernel.sysname,
        kernel=kernel.release,
        architecture=kernel.machine,
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
    match = re.search(_VERSION, said) or re.search(_VERSION, complaint)
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
