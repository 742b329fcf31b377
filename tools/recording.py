"""Records commands at a terminal of 80x24: a cast of asciinema, and an SVG that plays itself.

`python tools/recording.py FOLDER/NAME COMMAND...` writes NAME.cast and NAME.svg. Each COMMAND runs
for real, in the current folder; only pauses longer than a second are shortened to one.
"""

import argparse
import codecs
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 80, 24
PAUSE_SECONDS = 1.0
READ_SECONDS = 2.5
"""For what a command printed, before the next one is typed."""
KEY_SECONDS = 0.04
FRAME_SECONDS = 0.1
"""What changes sooner is seen with the next frame."""
LINE, COLUMN = 18, 8.4
STYLE = """
text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #24292f;
  white-space: pre }
rect { fill: #f6f8fa; stroke: #d0d7de }
@media (prefers-color-scheme: dark) {
  text { fill: #d1d7e0 } rect { fill: #151b23; stroke: #3d444d } }
"""


class Event(NamedTuple):
    seconds: float
    text: str


class Shown(NamedTuple):
    """A row of the screen from when it changed to when it changes again."""

    row: int
    text: str
    begins: float
    ends: float


def record(commands: Iterable[str]) -> Iterator[Event]:
    """What a person sees that types them. Raises SystemExit if one fails."""
    now = 0.0
    for command in commands:
        yield Event(now, "$ ")
        for key in command:
            now += KEY_SECONDS
            yield Event(now, key)
        now += PAUSE_SECONDS / 2
        yield Event(now, "\r\n")
        for pause, text in _output(command):
            now += min(pause, PAUSE_SECONDS)
            yield Event(now, text)
        now += READ_SECONDS
    yield Event(now, "$ ")


def _output(command: str) -> Iterator[tuple[float, str]]:
    """What it writes, each with the seconds since what came before."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    known = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(WIDTH), "LINES": str(HEIGHT)}
    known["PATH"] = f"{Path(sys.executable).parent}:{known['PATH']}"
    running = subprocess.Popen(
        ("sh", "-c", command), stdin=its, stdout=its, stderr=its, env=known, start_new_session=True
    )
    os.close(its)
    decode, before = codecs.getincrementaldecoder("utf-8")("replace").decode, time.monotonic()
    while read := _read(ours):
        now = time.monotonic()
        yield now - before, decode(read)
        before = now
    os.close(ours)
    if code := running.wait():
        raise SystemExit(f"recording: {command}: exit code {code}")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # its last user has ended
        return b""


def cast(events: Iterable[Event]) -> str:
    """As docs.asciinema.org/manual/asciicast/v2 says."""
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "env": {"TERM": "xterm-256color"}}
    lines = [header, *([round(at, 3), "o", text] for at, text in events)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def rows_after(rows: list[str], column: int, text: str) -> tuple[list[str], int]:
    """The screen once this is written to it, and where it goes on. Colours are left out."""
    rows = list(rows)
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|.", text, re.DOTALL):
        if part == "\n":
            rows.append("")
        elif part == "\r":
            column = 0
        elif part in ("\x1b[K", "\x1b[0K"):
            rows[-1] = rows[-1][:column]
        elif part >= " ":
            if column == WIDTH:
                rows.append("")
                column = 0
            rows[-1] = f"{rows[-1][:column]:<{column}}{part}{rows[-1][column + 1 :]}"
            column += 1
    return rows[-HEIGHT:], column


def shown(events: Iterable[Event]) -> list[Shown]:
    """Each row as long as it says the same, in the order in which they end."""
    rows, column, since = [""], 0, [(0.0, "")] * HEIGHT
    done: list[Shown] = []
    last = 0.0
    for at, text in events:
        rows, column = rows_after(rows, column, text)
        last = -(-at // FRAME_SECONDS) * FRAME_SECONDS
        for row, said in enumerate(rows):
            begins, before = since[row]
            if said != before:
                done += [Shown(row, before, begins, last)] * (begins < last)
                since[row] = last, said
    ends = last + READ_SECONDS
    done += [Shown(row, said, begins, ends) for row, (begins, said) in enumerate(since)]
    return [one for one in done if one.text.strip()]


def svg(events: Iterable[Event]) -> str:
    """Plays for ever; what shows no motion shows its end."""
    rows = shown(events)
    ends = max((one.ends for one in rows), default=1.0)
    width, height = WIDTH * COLUMN + 24, HEIGHT * LINE + 20
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">',
            f"<style>{STYLE}</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="6">',
            f'<set id="c" attributeName="x" to="0.5" begin="0s;c.end" dur="{ends:.1f}s"/></rect>',
            *(_row(one, ends) for one in rows),
            "</svg>\n",
        )
    )


def _row(one: Shown, ends: float) -> str:
    text = one.text.rstrip()
    if one.ends == ends:  # what is shown where nothing moves
        hidden, to, begins, until = "", "hidden", 0.0, one.begins
    else:
        hidden, to, begins, until = ' visibility="hidden"', "visible", one.begins, one.ends
    change = (
        f'<set attributeName="visibility" to="{to}" begin="c.begin+{begins:.1f}s"'
        f' dur="{until - begins:.1f}s"/>'
    ) * (begins < until)
    place = f'x="12" y="{24 + one.row * LINE}" textLength="{len(text) * COLUMN:.1f}"'
    return f"<text {place}{hidden}>{escape(text)}{change}</text>"


def main(words: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("to", type=Path, metavar="FOLDER/NAME")
    options.add_argument("commands", nargs="+", metavar="COMMAND")
    args = options.parse_args(words)
    events = list(record(args.commands))
    for ending, write in ((".cast", cast), (".svg", svg)):
        file = args.to.with_suffix(ending)
        file.write_text(write(events))
        print(f"{file}: {file.stat().st_size} bytes, {events[-1].seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
