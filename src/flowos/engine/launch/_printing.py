"""A launch that prints to descriptors of ours: whoever talks with it reads them himself."""

import os
from functools import partial
from subprocess import DEVNULL, Popen

from flowos.engine.launch._capture import Pipes
from flowos.engine.launch._prepared import PreparedLaunch, open_lifeline, write_folder
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._spawn import start_here


def start_printing(prepared: PreparedLaunch, stdout: int, stderr: int) -> RunningProcess:
    """Start a bare launch of this machine; LaunchFailed, with its folder gone, if it cannot be."""
    try:
        write_folder(prepared)
        return prepared.started_by(partial(_spawn, prepared, (stdout, stderr)), ())
    except BaseException:
        prepared.discard()
        raise


def _spawn(prepared: PreparedLaunch, outputs: tuple[int, int]) -> tuple["Popen[bytes]", Pipes]:
    argv, variables = prepared.command_line()
    lifeline = open_lifeline(prepared.folder)
    try:
        return start_here(argv, variables, (DEVNULL, *outputs)), Pipes(lifeline)
    except BaseException:
        os.close(lifeline)
        raise
