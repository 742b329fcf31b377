"""A recording: what was really shown, when, as asciinema and a browser read it."""

import json
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

HERE = Path(__file__).parents[2]
TOOL = runpy.run_path(str(HERE / "tools/recording.py"))
SVG = "{http://www.w3.org/2000/svg}"


def said_by(*words: str | Path) -> subprocess.CompletedProcess[str]:
    tool = (sys.executable, HERE / "tools/recording.py", *words)
    return subprocess.run(tool, capture_output=True, text=True)


def test_a_command_is_recorded_as_a_terminal_shows_it(tmp_path: Path) -> None:
    said_by(
        tmp_path / "x", "tty >/dev/null && stty size && printf 'a <b\\rA\\n'"
    ).check_returncode()
    header, *events = map(json.loads, (tmp_path / "x.cast").read_text().splitlines())
    assert (header["version"], header["width"], header["height"]) == (2, 80, 24)
    times = [at for at, kind, text in events if kind == "o" and isinstance(text, str)]
    assert len(times) == len(events)
    assert times == sorted(times)
    assert "24 80\r\na <b\rA\r\n$ " in "".join(text for _, _, text in events)
    drawn = ET.fromstring((tmp_path / "x.svg").read_text())
    at_end = [one.text for one in drawn.iter(f"{SVG}text") if not one.get("visibility")]
    assert at_end[1:] == ["24 80", "A <b", "$"]


def test_a_long_pause_is_shortened_and_a_failure_is_told(tmp_path: Path) -> None:
    slow = list(TOOL["record"](["sleep 1.2; echo x"]))
    shown = next(at for at, text in slow if text == "x\r\n")
    typed = next(at for at, text in slow if text == "\r\n")
    assert round(shown - typed, 6) == TOOL["PAUSE_SECONDS"]
    failed = said_by(tmp_path / "x", "exit 3")
    assert (failed.returncode, failed.stderr) == (1, "recording: exit 3: exit code 3\n")
    assert not list(tmp_path.iterdir())


def test_rows_are_what_a_screen_of_24_has() -> None:
    after = TOOL["rows_after"]
    assert after(["abc"], 3, "\r\x1b[Kx\x1b[1mY") == (["xY"], 2)
    assert after([""], 0, "x" * 81) == (["x" * 80, "x"], 1)
    rows, column = after([""], 0, "".join(f"{n}\r\n" for n in range(30)))
    assert (rows[0], rows[-2:], len(rows), column) == ("7", ["29", ""], 24, 0)


def test_a_row_is_shown_while_it_says_the_same() -> None:
    rows = TOOL["shown"]([(0.0, "a"), (1.0, "\r\x1b[Kb"), (2.0, "\r\nc")])
    assert rows == [(0, "a", 0.0, 1.0), (0, "b", 1.0, 4.5), (1, "c", 2.0, 4.5)]
