"""The command of FlowOS in this process, where a process of its own is not what is tested."""

import os
import subprocess
from pathlib import Path

from tests.integration.conftest import called_here


def flowos(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """What it says in the current folder, with these variables besides ours, and its exit code."""
    return called_here([*words], Path.cwd(), {**os.environ, **variables})
