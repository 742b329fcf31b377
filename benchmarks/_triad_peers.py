"""What the triads of tasks are next to: a library's function with given outputs, a C program."""

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 1;
  float *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c);
#pragma omp parallel for
  for (long i = 0; i < n; ++i) { a[i] = 0; b[i] = 1; c[i] = 1; }
  while (getchar() != EOF) {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
    printf("%g\\n", a[n / 2]);
    fflush(stdout);
  }
  return 0;
}
"""


@contextmanager
def openmp_program(floats: int) -> Iterator[Callable[[], float]]:
    """Has a running program do one triad, into the array it has; gives one element of that."""
    with TemporaryDirectory() as folder:
        source, binary = Path(folder, "triad.c"), Path(folder, "triad")
        source.write_text(_PROGRAM, encoding="utf-8")
        flags = ("-O3", "-march=native", "-fopenmp")
        subprocess.run(["cc", *flags, str(source), "-o", str(binary)], check=True)
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        with subprocess.Popen([str(binary), str(floats)], **pipes) as program:
            asked, said = program.stdin, program.stdout
            assert asked is not None
            assert said is not None

            def once() -> float:
                asked.write(b"\n")
                return float(said.readline())

            yield once


def into_given(function: Any, name: str) -> tuple[Any, Any, str]:
    """A C++ task's function, called with an output that is there: by the invoker, by ctypes; its
    library."""
    from flowos._native import native_call
    from flowos.engine.bodies._compile import library_of

    path = str(library_of(function.code))
    called = getattr(ctypes.CDLL(path), name)
    called.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64, ctypes.c_void_p]
    address = ctypes.cast(called, ctypes.c_void_p).value or 0
    return native_call(address, "aaia", [], [], [], print, print), called, path


@contextmanager
def reused_outputs(given: Any, parts: list[tuple[Any, Any, Any]]) -> Iterator[Callable[[], Any]]:
    """The call of each part in a thread of its own; the last array of a part is the output."""
    with ThreadPoolExecutor(len(parts)) as threads:
        calls = [(b, c, len(b), a) for b, c, a in parts]
        yield lambda: list(threads.map(lambda call: given(*call), calls))
