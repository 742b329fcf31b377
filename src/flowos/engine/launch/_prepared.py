"""The one way to start a process: launcher . runtime . flowos-init . argv.

What is promised, whatever the runtime and the launcher:

* The command gets exactly the variables of the launch (and those by which the launcher numbers a
  rank), its folder, default signal handling, /dev/null as standard input.
* `wait` always returns: with how the command ended, what it printed (up to a bound), what it used.
* When it returns, no process of the launch, no file and no descriptor is left.
* When this process dies, however, the command gets TERM, and KILL two seconds later; its folder
  is removed by the next process that starts something.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePath
from subprocess import DEVNULL, Popen
from typing import TypedDict, Unpack

from flowos._dataclasses import dataclass
from flowos.drivers import Launcher, Runtime, launcher_named
from flowos.engine._ask import announce_start
from flowos.engine.launch._capture import Capture, Pipes, Spawn
from flowos.engine.launch._run_folders import make_memory_folder, remove_run_folder
from flowos.engine.launch._running import RunningProcess, all_running
from flowos.engine.launch._session import LaunchSession
from flowos.model import Argv, Launch, LaunchFailed, Outcome, Pairs

Stdin = int | bytes | None
"""A descriptor, the bytes themselves, or None for /dev/null."""

MAX_OUTPUT_BYTES = 64 << 20
of_thread = threading.local()
"""`group`: the `LaunchGroup` that what this thread starts joins, if there is one."""


def own_variables() -> Pairs:
    """The variables of this process, for a launch that shall inherit them."""
    return tuple(os.environ.items())


@dataclass(frozen=True, kw_only=True)
class PreparedLaunch:
    """A launch whose run folder is there, to put something in (a socket) before the start.

    kept: variables by which the launcher keeps its files there too.
    captures: of its stdout and stderr.
    relays: the command sends on itself what is printed.
    holders: of containers on other nodes, which `enter` names already.
    """

    launch: Launch
    folder: Path
    launcher: Launcher
    runtime: Runtime
    session: LaunchSession
    kept: Pairs = ()
    captures: tuple[Capture, Capture]
    relays: bool = False
    holders: tuple[RunningProcess, ...] = ()

    @property
    def has_extra_streams(self) -> bool:
        return self.runtime.traits.extra_streams and not self.joined and not self.launch.terminal

    @property
    def joined(self) -> bool:
        """Whether ranks join a container that is held for them (see _shared_container)."""
        ranked = self.launch.ranks > 1 if self.session.elsewhere else self.launcher.name != "direct"
        return self.launch.env.image is not None and ranked

    def start(self, *, stdin: Stdin = None) -> RunningProcess:
        """Start it; LaunchFailed, with the folder gone, if not even that can be done."""
        with ExitStack() as undo:
            undo.callback(self.discard)
            holders = hold_container(self, undo)
            spawn = _ready_to_spawn(self, stdin)
            undo.pop_all()
        return self.started_by(spawn, holders)

    def started_by(self, spawn: Spawn, holders: tuple[RunningProcess, ...]) -> RunningProcess:
        """Started so, in the containers that `holders` hold, if there are any."""
        announce_start(lambda: self.command_line()[0])
        running = RunningProcess(
            self.launch,
            self.folder,
            spawn,
            captures=self.captures,
            folders=self.session.folders,
            holders=holders,
            server=self.session.server_of(self.launch.env.image),
        )
        if self.session.elsewhere:
            self.session.elsewhere.on_launch()
        if group := getattr(of_thread, "group", None):
            group.add(running)
        return running

    def run(self, *, stdin: Stdin = None) -> Outcome:
        """Start it and wait for its end; an interrupt ends it too, also one while it is started."""
        try:
            return self.start(stdin=stdin).wait()
        except BaseException:
            for running in tuple(all_running):
                if running.folder == self.folder:
                    running.stop()
                    running.wait()
            raise

    def command_line(self) -> tuple[Argv, dict[str, str]]:
        """All its words, and the variables of its first program."""
        session = self.session
        inside = self.launch.env.image is not None
        init = session.init_seen_inside() if inside else session.init_on_node()
        argv = _compose(self, init)
        return argv, {} if argv[0] == str(init) else _launchers_variables(self)

    def discard(self) -> None:
        """Remove the folder of a launch that is not started after all."""
        for holder in self.holders:
            holder.stop(grace_seconds=0.0)
        remove_run_folder(self.folder)


class LaunchKeywords(TypedDict, total=False):
    """The keywords of `prepare`."""

    launcher: str
    mpirun: str
    uses_mpi: bool
    oversubscribe: bool
    job: str
    captures: tuple[Capture, Capture] | None


def prepare(
    launch: Launch,
    runtime: Runtime,
    session: LaunchSession,
    driver: Launcher | None = None,
    **options: Unpack[LaunchKeywords],
) -> PreparedLaunch:
    """Check the launch and make its run folder.

    driver: the launcher, instead of its name and what goes with it.
    runtime: enters the launch's environment, as it works on this node.
    mpirun: path of the launcher's program, where there are several MPIs.
    uses_mpi: False where ranks only ask for their number, which Slurm gives without an MPI.
    oversubscribe: allow more ranks than cpus, without binding.
    job: the allocation, of a launcher that starts its ranks as a step of one.
    captures: of stdout and stderr; else the middle of what is longer than MAX_OUTPUT_BYTES is left
    out, and said so.
    """
    oversubscribe = options.get("oversubscribe", False)
    driver = driver or launcher_named(
        options.get("launcher", "direct"),
        options.get("mpirun", ""),
        oversubscribe=oversubscribe,
        job=options.get("job", ""),
    )
    _check(launch)
    if runtime.traits.accelerator:
        from flowos.engine.launch._bootable import check_bootable  # few launches need it

        check_bootable(launch, driver.name, session)
    if launch.ranks > 1 and not oversubscribe:
        _check_cpus(launch, session.cpu_count() * max(1, len(launch.nodes)))
    folder = session.run_folder()
    alone = driver.name == "direct" or session.elsewhere
    return PreparedLaunch(
        launch=launch,
        folder=folder,
        launcher=driver,
        runtime=runtime,
        session=session,
        kept=() if alone else driver.kept_in(folder, make_memory_folder(folder)),
        captures=options.get("captures") or (Capture(MAX_OUTPUT_BYTES), Capture(MAX_OUTPUT_BYTES)),
    )


def _check(launch: Launch) -> None:
    if not launch.argv or not launch.argv[0]:
        raise LaunchFailed("a launch without a command: argv is empty")
    named = launch.argv[0]
    if any("\0" in word for word in launch.argv):
        raise LaunchFailed(f"{named!r}: an argument holds a NUL character")
    for name, value in (*launch.env.variables, *launch.variables):
        if not name or "=" in name or "\0" in name + value:
            raise LaunchFailed(
                f"'{named}': variable {name!r}: a name is not empty and holds no '=', "
                "and neither name nor value holds a NUL character"
            )
    if not launch.cwd.is_absolute() or "\0" in str(launch.cwd):
        raise LaunchFailed(f"'{named}': folder {str(launch.cwd)!r} is no absolute path")
    if launch.limit_seconds is not None and not launch.limit_seconds > 0:
        raise LaunchFailed(f"'{named}': a time limit of {launch.limit_seconds} s is not above 0")


def _check_cpus(launch: Launch, have: int) -> None:
    """Not every launcher counts them; here all refuse alike."""
    ranks, cores = launch.ranks, launch.needs.cores
    if ranks * cores > have:
        raise LaunchFailed(
            f"'{launch.argv[0]}': {ranks} ranks with {cores} core{'s' * (cores > 1)} each on "
            f"{have} cpus; ask for fewer, or oversubscribe (--oversubscribe)"
        )


def _ready_to_spawn(prepared: PreparedLaunch, stdin: Stdin) -> Spawn:
    from flowos.engine.launch._spawn import (  # not for the foreground
        on_cpus,
        start_here,
        start_there,
    )

    folder = prepared.folder
    if prepared.session.elsewhere and isinstance(stdin, int):
        raise LaunchFailed(f"'{prepared.launch.argv[0]}': no descriptor reaches another node")
    write_folder(prepared)
    if isinstance(stdin, bytes):
        (folder / "stdin").write_bytes(stdin)
    argv, variables = prepared.command_line()

    def spawn() -> tuple["Popen[bytes]", Pipes]:
        with ExitStack() as undo, ExitStack() as after:
            if prepared.session.elsewhere:
                lifeline, given = _lifeline(undo, after)
            else:
                lifeline = _kept(undo, open_lifeline(folder))
                given = _stdin(stdin, folder, after)
            out, out_end = _pipe(undo, after)
            err, err_end = _pipe(undo, after)
            after.enter_context(on_cpus(prepared.launch.cpus))
            streams = (given, out_end, err_end)
            starter = prepared.session.elsewhere and prepared.session.elsewhere.starter
            if starter:
                process = start_there(starter, argv, variables, folder, streams)
            else:
                process = start_here(argv, variables, streams)
            undo.pop_all()
        return process, Pipes(lifeline, out, err)

    return spawn


def write_folder(prepared: PreparedLaunch) -> None:
    """Write the file that flowos-init reads; flowos-init.c documents the format."""
    folder, named = prepared.folder, prepared.launch.argv[0]
    try:
        parts = [(name, os.fsencode(content)) for name, content in _parts(prepared)]
        written = b"".join(b"%s %d\n%s\0" % (name.encode(), len(p), p) for name, p in parts)
        (folder / "launch").write_bytes(written)
        if not prepared.session.elsewhere:
            os.mkfifo(folder / "lifeline", 0o600)
    except UnicodeEncodeError as error:
        raise LaunchFailed(f"'{named}': a variable or folder name: {error}") from error
    except OSError as error:
        raise LaunchFailed(f"cannot write the run folder {folder}: {error.strerror}") from error


def _parts(prepared: PreparedLaunch) -> Iterator[tuple[str, str | PurePath]]:
    launch, launcher, elsewhere = prepared.launch, prepared.launcher, prepared.session.elsewhere
    merged = dict(prepared.kept) | dict(launch.env.variables) | dict(launch.variables)
    variables = {n: v for n, v in merged.items() if not n.startswith(launcher.env_overridden)}
    pairs = (variables | dict(launcher.guards)).items()
    yield "env", "".join(f"{n}={v}\0" for n, v in pairs)
    yield "cwd", launch.cwd
    if _has_other_words(launch):
        yield "argv", "".join(f"{word}\0" for word in launch.argv)
    if prepared.has_extra_streams:
        yield "streams", ""
    if launch.env.image is not None and elsewhere is None:
        yield "limits", own_limits()
    if launcher.env_forwarded:
        yield "env_forwarded", "\0".join(launcher.env_forwarded)
    if prepared.relays:
        yield "relay", ""
    if elsewhere:
        yield "stdin_lifeline", "alone" * (launch.ranks == 1)
        if launch.cpus:
            yield "cpus", " ".join(map(str, launch.cpus))


def own_limits() -> str:
    """Of this process, for file `limits`: some runtimes have a mask and limits of their own."""
    import resource

    numbers = {n for name, n in vars(resource).items() if name.startswith("RLIMIT_")}
    limits = {n: [each % (1 << 64) for each in resource.getrlimit(n)] for n in sorted(numbers)}
    lines = [f"{n} {soft} {hard}" for n, (soft, hard) in limits.items()]
    status = Path("/proc/self/status").read_text().splitlines()  # umask() would change it meanwhile
    masks = [f"umask {line.split()[1]}" for line in status if line.startswith("Umask:")]
    return "\n".join((*masks, *lines, ""))


def _compose(prepared: PreparedLaunch, init: Path) -> Argv:
    launch, folder = prepared.launch, prepared.folder
    inner = (str(init), str(folder), "--", *_words(launch))
    if not prepared.joined:
        inner = prepared.runtime.wrap(inner, launch, folder)
        if launch.env.image is not None:
            from flowos.drivers import in_overlay  # a bare launch needs none

            inner = in_overlay(inner, launch.env.image, prepared.session.init_on_node())
    return prepared.launcher.wrap(inner, launch)


def _words(launch: Launch) -> Argv:
    """The command as runtimes can pass it on."""
    other = (word.encode(errors="replace").decode() for word in launch.argv)
    return tuple(other) if _has_other_words(launch) else launch.argv


def _has_other_words(launch: Launch) -> bool:
    """Podman knows no words but UTF-8."""
    return launch.env.image is not None and any(map(_is_beyond_utf8, launch.argv))


def _is_beyond_utf8(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return True
    return False


def hold_container(prepared: PreparedLaunch, undo: ExitStack) -> tuple[RunningProcess, ...]:
    """Where ranks join a container: enter the image for them, and tell their flowos-init where."""
    if not prepared.joined or prepared.session.elsewhere:
        return prepared.holders
    from flowos.engine.launch._shared_container import HOLD, await_held  # few launches need it

    alone = Launch(argv=HOLD, env=prepared.launch.env)
    holder = prepare(alone, prepared.runtime, prepared.session).start()
    undo.callback(_end_at_once, holder)
    (prepared.folder / "enter").write_bytes(await_held(holder))
    return (holder,)


def _end_at_once(running: RunningProcess) -> None:
    running.stop(grace_seconds=0.0)
    running.wait()


def _launchers_variables(prepared: PreparedLaunch) -> dict[str, str]:
    """What the programs between us and flowos-init see: all of ours, and those of the launch.

    The latter are an image's where there is one, and its PATH and libraries are not the node's: of
    them only what the launcher would pass through.
    """
    launch = prepared.launch
    merged = dict(launch.env.variables) | dict(launch.variables)
    if launch.env.image is not None:
        merged = {n: v for n, v in merged.items() if n.startswith(prepared.launcher.env_forwarded)}
        host = {"USER": str(os.geteuid())} | dict(os.environ)  # ch-run wants it
        env_blocked = prepared.runtime.traits.env_blocked
        merged = {n: v for n, v in host.items() if not n.startswith(env_blocked)} | merged
    else:
        merged = dict(os.environ) | merged
    merged = dict(prepared.kept) | merged
    hidden = (*prepared.launcher.env_overridden, *prepared.launcher.env_blocked)
    kept = prepared.launcher.env_kept
    return {n: v for n, v in merged.items() if n in kept or not n.startswith(hidden)}


def open_lifeline(folder: Path) -> int:
    """For reading too: a FIFO without a reader cannot be opened for writing alone."""
    return os.open(folder / "lifeline", os.O_RDWR | os.O_CLOEXEC)


def _pipe(undo: ExitStack, after: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    after.callback(os.close, writer)
    os.set_blocking(reader, False)
    return _kept(undo, reader), writer


def _kept(undo: ExitStack, fd: int) -> int:
    undo.callback(os.close, fd)
    return fd


def _lifeline(undo: ExitStack, after: ExitStack) -> tuple[int, int]:
    """Our end, whose closing ends the launch; that which the launcher hands on to flowos-init."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    after.callback(os.close, reader)
    return _kept(undo, writer), reader


def _stdin(stdin: Stdin, folder: Path, after: ExitStack) -> int:
    if stdin is None:
        return DEVNULL
    if isinstance(stdin, int):
        return stdin
    fd = os.open(folder / "stdin", os.O_RDONLY | os.O_CLOEXEC)
    after.callback(os.close, fd)
    return fd
