"""Bodies in Verilog: simulated, and as bitstreams; one clear line for what is wrong."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.drivers import read_bitstream
from flowos.engine.results._value_digest import Digester
from tests.moody import (
    DATA,
    EARLY,
    ENDLESS,
    FINISH,
    MOODY,
    PORTS,
    SWALLOW,
    WORDS,
    failure,
    moody,
    run,
    words,
)


@pytest.mark.parametrize("workers", ["inline", "thread", "process"])
def test_a_module_computes_wherever_tasks_run_though_it_stalls_at_random(workers: str) -> None:
    a, b = np.arange(300, dtype=np.uint32), np.full(300, 2**32 - 100, np.uint32)
    (found,) = run(moody(), a, b, workers=workers)
    assert found.tolist() == (a + b).tolist()


def test_each_call_begins_anew_and_arrays_may_have_strides_or_be_empty() -> None:
    wide = np.arange(8, dtype=np.uint32)
    for _ in range(2):
        assert run(moody(), wide[::2], wide[::-2])[0].tolist() == [7] * 4
    assert run(moody(), words(), words())[0].tolist() == []
    assert "extent 'n' is 2, and 1 in input 'a'" in failure(moody(), words(1), words(1, 2))


def test_streams_of_many_widths_side_by_side_and_a_file_that_the_module_reads(
    tmp_path: Path,
) -> None:
    """A scalar is the same in each beat; a beat of 96 bits is three words of Verilator."""
    source, shift = tmp_path / "pair.sv", tmp_path / "pair.hex"
    source.write_text((DATA / "pair.sv").read_text())
    shift.write_text("1\n")
    pair = fo.hdl(
        source,
        "pair",
        inputs={
            "x": fo.array(fo.float64, ("n", 3)),
            "key": fo.uint32,
            "y": fo.array(fo.int16, ("k",)),
        },
        outputs={
            "moved": fo.array(fo.float64, ("n", 3)),
            "keys": fo.array(fo.uint32, ("n", 3)),
            "z": fo.array(fo.int16, ("k",)),
        },
        into={"x": ("x", "key"), "y": "y"},
        out={"p": ("moved", "keys"), "q": ["z"]},
    )
    x, y = np.arange(6.0).reshape(2, 3), np.array([-5, 7, 11, 13], np.int16)
    inputs = [fo.flow_input(port.name, port.type) for port in pair.inputs]
    with fo.slice(fo.flow_output(*pair(*inputs))) as opened:
        found: Any = opened.run(x, 3, y)
        moved, keys, z = found
        assert (moved.view(np.int64) - x.view(np.int64)).tolist() == [[3] * 3] * 2
        assert (keys.tolist(), z.tolist()) == ([[3] * 3] * 2, [-10, 14, 22, 26])
        shift.write_text("0\n")
        found = opened.run(x, 3, y)
        assert found[2].tolist() == y.tolist()
        shift.unlink()
        with pytest.raises(fo.TaskFailed, match=r"there is no file pair\.hex") as caught:
            opened.run(x, 3, y)
    assert f"module pair ended: {source}:3: there" in str(caught.value)


@pytest.mark.parametrize(
    ("mood", "said"),
    [
        (SWALLOW, "gave no end within 5000 cycles (limit_cycles): it took 3 beats of 's', gave 2 "),
        (EARLY, "ended stream 'm' after 2 beats (tlast), before its output was full"),
        (ENDLESS, "gave no tlast with beat 3 of stream 'm', the last of its output"),
        (FINISH, f"ended: {MOODY}:29: $finish"),
    ],
)
def test_a_module_that_does_not_end_its_stream_rightly_is_named(mood: int, said: str) -> None:
    values = (1, 2, mood) if mood in (SWALLOW, ENDLESS) else (1, mood, 2)
    found = failure(moody(limit_cycles=5000), words(*values), words(0, 0, 0))
    assert f"task 'moody' raised BodyError: module moody {said}" in found


def test_what_a_module_says_of_its_end_is_the_error(capfd: pytest.CaptureFixture[str]) -> None:
    ends = 'if (s_tvalid && a == 7) $error("%0d is\\nodd", a);'
    source = MOODY.read_text().replace("if (s_tvalid && a == `FINISH) $finish;", ends)
    source = source.replace("`include", f'`include "{DATA}/moods.vh" //', 1)
    said = failure(fo.hdl(source, "moody", **PORTS), words(1, 7), words(0, 0))
    assert "module moody ended: source.v:29: 7 is odd; given" in said
    assert "7 is\nodd" in capfd.readouterr().out


def test_the_limit_grows_with_the_beats() -> None:
    assert "within 100600 cycles" in failure(moody(), words(1, 2, SWALLOW), words(0, 0, 0))


FACE = """module face(input {clock}, input [31:0] s_tdata, input s_tvalid, input s_tlast,
output s_tready, output [31:0] m_tdata, output m_tvalid, output m_tlast, input m_tready{more});
endmodule"""
ONE: Any = {**PORTS, "inputs": {"a": WORDS}, "into": {"s": "a"}}


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        (MOODY.read_text().replace("has <= 0", "has <= no", 1), PORTS, "source.v:"),
        ("module face(input aclk);\n wire = 1;\n", ONE, "source.v:2:7: syntax error"),
        (FACE.format(clock="aclk", more=""), PORTS, "s_tdata has 32 bits, and a beat of uint32 + "),
        (FACE.format(clock="ck", more=""), ONE, "module face has no clock: an input aclk or clk"),
        (FACE.format(clock="clk", more=", input on"), ONE, "an input on, which is of no stream"),
        (FACE.format(clock="clk", more=""), {**ONE, "out": {"o": "sum"}}, "no port o_tdata"),
        ("module other(input aclk);\nendmodule\n", ONE, "no module face; there is other"),
    ],
)
def test_a_source_that_cannot_be_is_shown_by_its_line_or_port(
    source: str, options: Any, said: str
) -> None:
    source = source.replace('`include "moods.vh"', (DATA / "moods.vh").read_text())
    source = source.replace("module moody", "module face")
    given = [words(1)] * len(options["inputs"])
    found = failure(fo.hdl(source, "face", **options), *given)
    assert said in found
    assert ".py:" not in found


def test_the_line_is_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "my module.v"
    file.write_text("module face(input aclk);\nwire x = y;\nendmodule\n")
    said = failure(fo.hdl(file, "face", **ONE), words(1))
    assert said.startswith(f"task 'face' raised CompileFailed: {file}:2:")
    assert "'y'" in said


def test_a_missing_simulator_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "there is no verilator: apt-get install verilator" in failure(
        moody(), words(1), words(1)
    )
    with pytest.raises(fo.FlowosError, match="there is no yosys: apt-get install yosys"):
        fo.bitstream(moody(board="icestick"))


def test_a_module_is_made_once_and_anew_when_what_it_includes_changes(tmp_path: Path) -> None:
    """Until the tool refuses it: that is as fast as no simulation can be made."""
    body = moody().body.fun
    body(words(1), words(1))
    library = Path(body._library._name)
    made = library.stat().st_ino
    program = "import sys, pickle; pickle.load(sys.stdin.buffer)._ready()"
    call = pickle.dumps(body)
    done = subprocess.run([sys.executable, "-c", program], input=call, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert library.stat().st_ino == made
    for file in (MOODY, DATA / "moods.vh"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "moods.vh").write_text("`error_that_is_new\n")
    assert "moods.vh:1" in failure(
        fo.hdl(tmp_path / "moody.v", "moody", **PORTS), words(1), words(1)
    )


def test_kept_results_depend_on_the_code_and_on_what_it_includes(tmp_path: Path) -> None:
    def digest() -> bytes:
        digester = Digester()
        task: Any = fo.hdl(tmp_path / "moody.v", "moody", **PORTS)
        digester.add(task.body.fun)
        return digester.digest()

    seen = []
    for added in ("", "// one\n"):
        for file in (MOODY, DATA / "moods.vh"):
            (tmp_path / file.name).write_text(added + file.read_text())
            seen.append(digest())
    assert len({*seen}) == 4
    assert digest() == seen[-1]


@pytest.mark.parametrize(("include", "suffix"), [("`include", "v"), ("#include", "cpp")])
def test_files_that_include_each_other_across_folders_are_read_once(
    tmp_path: Path, include: str, suffix: str
) -> None:
    links = {"core/a.vh": "bc", "bus/b.vh": "a", "mem/c.vh": "a", f"core/m.{suffix}": "a"}
    folders = {"a": "core", "b": "bus", "c": "mem"}
    for place, others in links.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        lines = [f'{include} "../{folders[name]}/{name}.vh"\n' for name in others]
        (tmp_path / place).write_text("".join(lines))
    source = tmp_path / f"core/m.{suffix}"
    task: Any = (
        fo.hdl(source, "m", **PORTS)
        if suffix == "v"
        else fo.cxx(source, "m", inputs={"a": WORDS}, outputs={"b": WORDS})
    )
    headers = task.body.fun.design.headers if suffix == "v" else task.body.fun.code.headers
    assert [name for name, _ in headers] == ["../core/a.vh", "../bus/b.vh", "../mem/c.vh"]


def test_what_a_module_writes_is_no_part_of_it_and_only_code_is_searched(tmp_path: Path) -> None:
    (tmp_path / "m.v").write_text('initial $dumpfile("wave.vcd");\n$readmemh("a.hex", a);\n')
    (tmp_path / "a.hex").write_text('// "other"\n')
    for name in ("wave.vcd", "other"):
        (tmp_path / name).write_text("1\n")
    task: Any = fo.hdl(tmp_path / "m.v", "m", **PORTS)
    assert [name for name, _ in task.body.fun.design.headers] == ["a.hex"]


TINY = """module tiny(input clk, input [15:0] s_tdata, input s_tvalid, output s_tready,
  input s_tlast, output [7:0] m_tdata, output m_tvalid, input m_tready, output m_tlast);
assign s_tready = m_tready, m_tvalid = s_tvalid, m_tlast = s_tlast;
reg [7:0] by[0:0]; initial $readmemh("table.hex", by);
assign m_tdata = s_tdata[7:0] + s_tdata[15:8] + by[0];
endmodule"""
_OCTETS = fo.array(fo.uint8, ("n",))
OCTETS: Any = {
    **PORTS,
    "inputs": {"a": _OCTETS, "b": _OCTETS},
    "outputs": {"sum": _OCTETS},
}


def test_a_bitstream_is_for_the_part_of_its_board_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with space"))
    source, table = tmp_path / "with space" / "tiny.v", tmp_path / "with space" / "table.hex"
    source.parent.mkdir()
    source.write_text(TINY)
    table.write_text("1\n")

    def task() -> Any:
        return fo.hdl(source, "tiny", board="icestick", **OCTETS)

    first = task()
    file = fo.bitstream(first)
    assert read_bitstream(file.read_bytes(), str(file)).part == "ice40 1k"
    made = file.stat().st_ino
    assert fo.bitstream(first).stat().st_ino == made
    assert first.body.fun.design == task().body.fun.design
    table.unlink()
    assert first.body.fun.design != task().body.fun.design, "a result that is kept depends on it"
    with pytest.raises(fo.FlowosError) as caught:
        fo.bitstream(first)
    assert str(caught.value) == f"{source}:4: there is no file table.hex"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("module moody(input aclk);\n wire = 1;\n", "source.v:2: syntax error"),
        ("module other(input aclk);\nendmodule\n", "no module moody; there is other"),
        ("module moody(input a, output b);\nassign b = a;\nendmodule\n", "moody has no clock"),
        ('// a\n`include "no.vh"\nmodule moody; endmodule', "source.v:2: there is no file no.vh"),
    ],
)
def test_a_bitstream_that_cannot_be_made_says_why(source: str, said: str) -> None:
    with pytest.raises(fo.FlowosError) as caught:
        fo.bitstream(fo.hdl(source, "moody", board="icestick", **PORTS))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"files": "no/such.v"}, "cannot read"),
        ({"files": []}, "files=[]; expected paths, or code"),
        ({"files": [MOODY, str(MOODY)]}, "moody.v is given twice"),
        ({"files": 3}, "source=3 (int); expected a path or code"),
        ({"top": "a b"}, "top='a b' (str); expected the name of a module"),
        ({"link": "usb"}, "link='usb' (str); there is sim, uart, ftdi or xdma"),
        ({"board": "arty"}, "board='arty' (str); there is icebreaker, icestick or ulx3s-25f"),
        ({"board": "icestick", "baud": 4_000_000}, "no 4000000 baud from a clock of 12 MHz"),
        ({"baud": 0}, "baud=0 (int); expected a number above 0"),
        ({"link": "uart"}, "port=None (NoneType); expected one such as '/dev/ttyUSB1'"),
        ({"link": "uart", "port": "/dev/x", "baud": 12345}, "a serial line has no baud=12345"),
        ({"port": "/dev/x"}, "port='/dev/x' (str) is of link='uart', 'ftdi' or 'xdma'"),
        ({"bitstream": "a.bit"}, "bitstream='a.bit' (str) is of link='uart'"),
        ({"link": "xdma"}, "port=None (NoneType); expected one such as '/dev/xdma0'"),
        ({"link": "xdma", "port": "x", "board": "icestick"}, "board='icestick' (str) is of link="),
        ({"link": "xdma", "bitstream": "a.bit"}, "another device is loaded by you"),
        ({"link": "ftdi"}, "port=None (NoneType); expected one such as 'i:0x0403:0x6014'"),
        ({"link": "ftdi", "port": "x", "board": "icestick"}, "board='icestick' (str) is of link="),
        ({"limit_cycles": 0}, "limit_cycles=0 (int); expected a number above 0"),
        ({"limit_cycles": True}, "limit_cycles=True (bool); expected a number above 0"),
        ({"limit_cycles": 2**63}, "expected a number above 0, below 2**63"),
        ({"outputs": {"sum": fo.array(bool, ("n",))}}, "it cannot have bool, but float32, "),
        ({"into": {"s": "a"}}, "input 'b' is in no stream of into="),
    ],
)
def test_what_is_no_body_is_refused_at_once(options: dict[str, Any], said: str) -> None:
    given: Any = {"files": MOODY, "top": "moody", **PORTS, **options}
    with pytest.raises(fo.WiringError, match=r"^hdl '") as caught:
        fo.hdl(given.pop("files"), given.pop("top"), **given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_a_task_with_a_board_has_a_bitstream() -> None:
    with pytest.raises(fo.WiringError, match=r"is no task of fo.hdl with a board"):
        fo.bitstream(moody())
