"""`flowos exec`, `shell` and `run`: one command in an environment, as if it were started here."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass, replace
from flowos.engine import PreparedLaunch, here, now
from flowos.model import (
    Argv,
    Environment,
    Exited,
    Killed,
    Launch,
    NotStarted,
    Outcome,
    Pairs,
    RuntimeFailed,
)
from flowos.operations.environment import split_runtime

_LONG_SECONDS = 1.0
"""A longer start is explained with notes; else only the command's output is shown."""
_SHELL = """\
for shell in bash ash dash; do
  command -v $shell >/dev/null 2>&1 && exec $shell "$@"
done
exec sh "$@"
"""
_OWN_SCRIPT = """\
test -x /.singularity.d/runscript && exec /.singularity.d/runscript "$@"
echo "flowos run: the image has no runscript and no entry point; name a command instead:" \
 "flowos exec --env IMAGE -- COMMAND" >&2
exit 127
"""


@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """Number of ranks and their MPI: a name of `drivers.LAUNCHERS`, and its mpirun.

    oversubscribe: allow more ranks than cpus, not bound.
    """

    count: int
    mpi: str
    mpirun: str = ""
    oversubscribe: bool = False


@dataclass(frozen=True, kw_only=True)
class ExecRequest:
    """A command to run. cwd: by default the current folder. ranks: for an MPI program.

    env: of `environment_to_enter`, which has just looked at its image.
    """

    env: Environment
    argv: Argv
    cwd: PurePath | None = None
    ranks: RankOptions | None = None


@dataclass(frozen=True, kw_only=True)
class ExecPlan:
    """The command line that would be started, and where."""

    argv: Argv
    environment: str
    cwd: PurePath
    binds: Pairs
    notes: tuple[str, ...]


def executed(request: ExecRequest, on_event: Callable[[str], None]) -> Outcome:
    """Run it with this process's streams and terminal, and wait for its end.

    Raises EnvironmentRefused or LaunchFailed if it did not start.
    """
    began = now()
    with _ready_launch(request) as (launch, notes, waits):
        for note in (*notes, *(waits if now() - began > _LONG_SECONDS else ())):
            on_event(note)
        return _explained(here().run_in_foreground(_prepared(request, launch)), request.ranks)


def planned(request: ExecRequest) -> ExecPlan:
    """What `executed` would start; the image is made ready for it all the same."""
    with _ready_launch(request) as (launch, notes, waits):
        prepared = _prepared(request, launch)
        try:
            argv, _ = prepared.command_line()
        finally:
            prepared.discard()
        return ExecPlan(
            argv=argv,
            environment=request.env.label,
            cwd=launch.cwd,
            binds=launch.env.binds,
            notes=(*notes, *waits),
        )


def shell_command(request: ExecRequest, word: str = "") -> ExecRequest:
    """An interactive shell: bash if the image has it, else sh. The prompt names the environment.

    word: as it was given; an image of the library is a file that is named by its digest.
    """
    env = request.env
    if env.image is None:
        return replace(request, argv=(os.environ.get("SHELL") or "/bin/sh", *request.argv))
    prompt = ("PS1", f"[{_short_name(env.image.source, word)}] \\w \\$ ")
    argv = ("/bin/sh", "-c", _SHELL, "sh", *request.argv)
    return replace(request, argv=argv, env=replace(env, variables=(prompt, *env.variables)))


def own_command(request: ExecRequest) -> ExecRequest:
    """What the image itself runs, with `request.argv` as its arguments.

    As in OCI, the arguments replace the image's command after its entry point. An image without
    either may have a runscript, as Singularity's have.
    """
    assert request.env.image is not None
    config = request.env.image.config
    if not config.entrypoint and not config.command:
        return replace(request, argv=("/bin/sh", "-c", _OWN_SCRIPT, "sh", *request.argv))
    argv = (*config.entrypoint, *(request.argv or config.command))
    return replace(request, argv=argv, cwd=request.cwd or config.cwd)


def exit_code(outcome: Outcome) -> int:
    """As in a shell: 128 + signal, 127 no such command, 126 not executable; 125 is our own."""
    match outcome.end:
        case Exited(code):
            return code
        case Killed(signal):
            return 128 + signal
        case NotStarted(code=code):
            return code
        case _:
            return 125


def _short_name(source: PurePath, word: str) -> str:
    from flowos.operations._images._names import digest_in_name, links  # a bare command needs none

    if not digest_in_name(source):
        return source.stem
    name, _ = split_runtime(word)
    return name if name in links(name) else source.stem[:12]


def _with_current_folder(env: Environment, folder: Path) -> tuple[Environment, PurePath, str]:
    if env.image is None:
        return env, folder, ""
    from flowos.operations._current_folder import with_current_folder  # a bare command needs none

    return with_current_folder(env, folder)


@contextmanager
def _ready_launch(
    request: ExecRequest,
) -> Iterator[tuple[Launch, tuple[str, ...], tuple[str, ...]]]:
    """The launch, notes to show in any case, and notes that explain a slow start."""
    env, inside, note = _with_current_folder(request.env, Path.cwd())
    notes = (f"{note}; if you want it: --bind {Path.cwd()}",) if note else ()
    cwd = request.cwd or inside
    with here().ready(env, seen=True) as ready:
        variables = here().variables(ready.env)
        count = request.ranks.count if request.ranks else 1
        launch = Launch(
            argv=request.argv,
            env=ready.env,
            variables=variables,
            cwd=cwd,
            ranks=count,
            terminal=all(map(os.isatty, (0, 1, 2))),
        )
        yield launch, notes, ready.notes


def _prepared(request: ExecRequest, launch: Launch) -> PreparedLaunch:
    if request.ranks is None:
        return here().prepare(launch)
    ranks = request.ranks
    return here().prepare(
        launch,
        launcher=ranks.mpi,
        mpirun=ranks.mpirun or here().usual_mpirun(ranks.mpi),
        oversubscribe=ranks.oversubscribe,
    )


def _explained(outcome: Outcome, ranks: RankOptions | None) -> Outcome:
    """An mpirun of another MPI complains of our options: what it is, is worth more."""
    if ranks is None or not isinstance(outcome.end, RuntimeFailed):
        return outcome
    mpirun = ranks.mpirun or here().usual_mpirun(ranks.mpi)
    wrong = here().wrong_mpirun(ranks.mpi, mpirun)
    return replace(outcome, end=RuntimeFailed(wrong)) if wrong else outcome
