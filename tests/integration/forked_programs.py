"""Starts Python programs by fork, one after the other, so that PyTorch is imported once for all.

`python forked_programs.py`; a line of JSON in, the exit code out: {"line": the program and its
words, "out", "error": files}.
"""

import json
import os
import runpy
import sys
from pathlib import Path

import torch as torch


def next_program() -> list[str]:
    """Of each line, in a child of this process, which ends with its input."""
    for text in sys.stdin:
        order = json.loads(text)
        child = os.fork()
        if child == 0:
            for number, name in enumerate((os.devnull, order["out"], order["error"])):
                os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
            return list(order["line"])
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    sys.exit(0)


if __name__ == "__main__":
    sys.argv = next_program()
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
