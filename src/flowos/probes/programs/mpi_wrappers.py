"""What the C++ wrapper of an MPI calls.

Standard library only, Python 3.8 or newer: collect_software.py imports it.
"""

from __future__ import annotations

import re
import shlex
import shutil
from typing import Any

from program_output import all_of_output_of, output_of

SHOW = ("-show", "-c", "a.cpp")
"""What wrappers print for it is the command by which they would compile."""
OF_MPI = re.compile(r"-[ILl]|-Wl,|-pthread$")


def shown_by(cxx: str) -> str:
    """The command by which a wrapper compiles; "" if it does not say so."""
    code, shows = all_of_output_of(cxx, *SHOW) if cxx else (-1, "")
    return shows if code == 0 else ""


def called(cxx: str, shows: str) -> dict[str, Any]:
    """The compiler that the command names, with the flags that change what is compiled.

    Files of MPI are left out, and so is -pthread, which OpenMP's flag implies. Nothing if a word is
    of another kind, or if wrapper and compiler do not say the same version.
    """
    try:
        name, *words = shlex.split(shows)
    except ValueError:
        return {}
    flags = [word for word in words if word not in SHOW and not OF_MPI.match(word)]
    compiler = shutil.which(name)
    if not compiler or not all(flag.startswith("-") for flag in flags):
        return {}
    (code, says), of_wrapper = (output_of(path, "--version") for path in (compiler, cxx))
    same = code == 0 and of_wrapper == (code, says)
    return {"cxx_calls": [compiler, *flags], "cxx_says": says} if same else {}
