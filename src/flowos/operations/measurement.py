"""`fo.measure`: this machine, nodes of a pool, or commands, from a program or a notebook."""

import shlex
from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import get_args

from flowos.engine import refusing_runs
from flowos.model import Effort, MeasurementRequest, OnProgress, Progress, UsageError, brief_repr
from flowos.operations._scratch import scratch_of
from flowos.operations.deployments import DeploymentRequest, measured_deployment
from flowos.operations.measure import Result, measured, refuse_in_a_task


def measure(  # noqa: PLR0913 - options, each by keyword
    *probes: str,
    commands: Sequence[str | Sequence[str]] = (),
    env: Sequence[str] = (),
    effort: Effort = "quick",
    seconds: float | None = None,
    scratch: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
    pool: str | None = None,
    nodes: int | None = None,
) -> Result:
    """Measure this machine, or nodes of a pool, or commands; a notebook shows the report.

    probes: what is measured, such as "stream" and "gemm": see `flowos measure --help`; none: all.
    commands: instead, texts or lists of words; the others are compared with the first. env: side by
    side in these environments, the base first; one alone is compared with "bare".
    effort: "quick" (a minute), "normal" or "full". seconds: how long measuring may take.
    scratch: a folder on the storage to be measured; /var/tmp by default, of a pool its shared
    folder. out: a folder for the report's files. on_progress: is called with what is being done; no
    slice runs in it. pool: of flowos.toml; nodes: how many of it are held, 2 by default: one
    measures what this machine would, several what is measured between nodes.
    It has the nodes for itself, as `Needs(alone=True)`: it waits until tasks of this program's
    slices have ended there, for as long as it may measure at most, and others wait for it.
    Samples are kept in the store: `result.notes` say where that failed, `result.lost` that nodes
    were lost. Raises UsageError for an unknown probe, command or pool, and in a task of a slice;
    EnvironmentRefused for an unknown image; SliceRefused without these nodes or if tasks go on.

    >>> result = fo.measure(commands=["sleep 0.01", "sleep 0.02"])
    >>> [verdict.other for verdict in result.report.verdicts]
    ['sleep 0.02']
    >>> try:
    ...     fo.measure("mpi", pool="local", nodes=2)
    ... except fo.FlowosError as error:
    ...     print(error)
    pool local: 2 nodes asked for, it has 1
    """
    refuse_in_a_task()
    wanted = _deployment(pool, nodes, commands)
    if scratch is None:
        scratch = scratch_of(pool)
    take = measured if wanted is None else partial(measured_deployment, wanted=wanted)
    return take(
        _request(probes, commands, env, effort, scratch),
        out=None if out is None else Path(out),
        url=None,
        seconds=_above_0(seconds),
        on_progress=_called(on_progress),
        on_sample=lambda _: None,
    )


def _deployment(pool: object, nodes: object, commands: object) -> DeploymentRequest | None:
    """What is asked of a pool; None without one."""
    if pool is None:
        if nodes is not None:
            raise UsageError("measure: nodes is asked of a pool: add pool='NAME'")
        return None
    if not isinstance(pool, str):
        raise _refused("pool", pool, "the name of a pool")
    if commands:
        raise UsageError("measure: commands: not with pool, whose nodes may not have them")
    if nodes is None:
        return DeploymentRequest(pool=pool)
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
        raise _refused("nodes", nodes, "a whole number, 1 or more")
    return DeploymentRequest(pool=pool, nodes=nodes)


def _request(
    probes: tuple[str, ...],
    commands: Sequence[str | Sequence[str]],
    env: Sequence[str],
    effort: Effort,
    scratch: str | PathLike[str],
) -> MeasurementRequest:
    for name, given in (("commands", commands), ("env", env)):
        if not isinstance(given, (list, tuple)):
            raise _refused(name, given, "a list, as commands=['sleep 1']")
    for name, words in (("probes", probes), ("env", env)):
        if not all(isinstance(word, str) for word in words):
            raise _refused(name, words, "names")
    if not isinstance(scratch, (str, PathLike)):
        raise _refused("scratch", scratch, "a folder")
    if list(env) == ["bare"]:
        raise UsageError("measure: env=['bare']: name what is to be compared with it")
    if probes and commands:
        raise UsageError("measure: give probes or commands, not both")
    if effort not in get_args(Effort):
        raise _refused("effort", effort, f"one of {', '.join(get_args(Effort))}")
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise UsageError("measure: the current folder was removed; go to another one") from None
    return MeasurementRequest(
        probes=probes,
        effort=effort,
        scratch=here / scratch,
        environments=("bare", *env) if len(env) == 1 else tuple(env),
        commands=tuple(map(_words, commands)),
        folder=here if commands else None,
    )


def _words(command: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(command, (list, tuple)) and all(isinstance(word, str) for word in command):
        return tuple(command)
    if not isinstance(command, str):
        raise _refused("commands", command, "each a text or a list of words")
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise _refused("commands", command, f"whole words ({error})") from None


def _above_0(seconds: object) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise _refused("seconds", seconds, "a number above 0")
    if not 0 < seconds <= TIMEOUT_MAX:
        raise _refused("seconds", seconds, "a number above 0")
    return float(seconds)


def _refused(name: str, given: object, expected: str) -> UsageError:
    return UsageError(f"measure: {name}={brief_repr(given)}; expected {expected}")


def _called(on_progress: OnProgress | None) -> OnProgress:
    if on_progress is not None and not callable(on_progress):
        raise _refused("on_progress", on_progress, "a function of one value")
    return _quietly if on_progress is None else refusing_runs(on_progress)


def _quietly(_: Progress) -> None:
    """Nothing is shown."""
