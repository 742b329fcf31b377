"""Command lines as tasks: a C program is written, compiled and run; its output is parsed."""

import tempfile
from pathlib import Path

import flowos as fo

compiled = fo.command(["cc", "-O2", fo.In("source"), "-o", fo.Out("program")], name="compile")
ran = fo.command(
    [fo.In("program"), fo.In("count")],
    name="count",
    inputs={"program": fo.File, "count": fo.int64},
    stdout="lines",
    exit_code="code",
)


@fo.task
def add_up(lines: fo.str_) -> fo.int64:
    return sum(map(int, lines.split()))


SOURCE = """#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  for (int i = 1; i <= atoi(argv[argc - 1]); ++i) printf("%d\\n", i);
  return 0;
}
"""

source = fo.flow_input("source", fo.File)
count = fo.flow_input("count", fo.int64)
lines, code = ran(compiled(source), count)
flow = fo.flow_output(add_up(lines), code)

with tempfile.TemporaryDirectory() as folder, fo.slice(flow) as s:
    path = Path(folder) / "count.c"
    path.write_text(SOURCE)
    print(s.run(path, 100))  # [5050, 0]
