"""Modules of Verilog: their face, what drives them, command lines, and complaints in one line."""

from dataclasses import replace
from typing import Any

import pytest

import flowos as fo
from flowos.drivers.hdl import boards, tops, verilator
from flowos.drivers.hdl.module_face import Face, FaceMismatch, ModulePorts, face_of
from flowos.drivers.hdl.sources import folder_links, named_in, placed_text, source_names, with_paths
from flowos.model import (
    STREAM_DTYPES,
    HdlDesign,
    HdlStream,
    NativePorts,
    WiringError,
    native_ports,
    quoted_words,
    streams_of,
)

PORTS = native_ports(
    "f",
    {"a": fo.array(fo.uint32, ("n", 2)), "x": fo.float32, "k": fo.int8, "n": fo.int64},
    {"y": fo.array(fo.float64, ("n",)), "z": fo.int16},
    STREAM_DTYPES,
)
TAKES, GIVES = streams_of("f", PORTS, {"s": ("a", "x", "k")}, {"m": "y", "p": "z"})
DESIGN = HdlDesign(
    files=(("/home/me/f.sv", "module g;\nendmodule\nmodule h;\n"), ("", "")),
    top="f",
    takes=TAKES,
    gives=GIVES,
)
FACE: ModulePorts = {
    **{"clk": ("input", 1), "rst": ("input", 1)},
    **{"s_tdata": ("input", 72), "s_tvalid": ("input", 1), "s_tlast": ("input", 1)},
    **{"s_tready": ("output", 1), "m_tready": ("input", 1), "p_tready": ("input", 1)},
    **{"m_tdata": ("output", 64), "m_tvalid": ("output", 1), "m_tlast": ("output", 1)},
    **{"p_tdata": ("output", 16), "p_tvalid": ("output", 1), "p_tlast": ("output", 1)},
    "led": ("output", 3),
}


def test_a_face_has_a_clock_and_perhaps_a_reset() -> None:
    assert face_of(FACE, DESIGN) == Face(clock="clk", reset="rst", reset_level=1)
    others: Any = {**FACE, "aclk": FACE["clk"], "aresetn": FACE["rst"]}
    del others["clk"], others["rst"]
    assert face_of(others, DESIGN) == Face(clock="aclk", reset="aresetn", reset_level=0)
    del others["aresetn"]
    assert face_of(others, DESIGN).reset == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"clk": ("output", 1)}, "module f has no clock: an input aclk or clk"),
        ({"rst": ("input", 2)}, "module f: rst has 2 bits"),
        ({"s_tdata": ("input", 32)}, "s_tdata has 32 bits, and a beat of uint32 + float32 + int8 "),
        ({"m_tlast": None}, "module f, stream 'm': there is no port m_tlast"),
        ({"s_tready": ("input", 1)}, "s_tready is an input, and has to be an output"),
        ({"enable": ("input", 1)}, "module f has an input enable, which is of no stream of the"),
    ],
)
def test_a_module_without_the_ports_of_the_streams_is_refused(
    changed: dict[str, Any], said: str
) -> None:
    ports = {name: port for name, port in {**FACE, **changed}.items() if port}
    with pytest.raises(FaceMismatch) as caught:
        face_of(ports, DESIGN)
    assert said in str(caught.value)


HEADER = """
    VL_IN8(&aclk,0,0);
    VL_OUT16(&m_tdata,15,0);
    VL_INW(&s_tdata,95,0,3);
    VL_INOUT(&wire,31,0);
    VL_IN8((&several)[4],7,0);
    VL_UNCOPYABLE(Vmodule);
"""


def test_verilator_says_which_ports_there_are_and_what_is_wrong() -> None:
    assert verilator.module_ports(HEADER) == {
        "aclk": ("input", 1),
        "m_tdata": ("output", 16),
        "s_tdata": ("input", 96),
        "wire": ("inout", 32),
        "several": ("input", 8),
    }
    words = verilator.verilate("/usr/bin/verilator", "f", ["source0.sv"], ["/home/me"])
    assert words[-2:] == ("-I/home/me", "source0.sv")
    said = "%Warning-X: a\n%Error-PINNOTFOUND: source0.sv:3:5: no pin\n%Error: Exiting due to 1\n"
    assert verilator.first_verilog_error(said, DESIGN) == "/home/me/f.sv:3:5: no pin"
    said = "%Error-NEEDTIMINGOPT: source0.sv:3:5: Use --timing or --no-timing to specify how\n"
    assert verilator.first_verilog_error(said, DESIGN).startswith("/home/me/f.sv:3:5: a delay (#)")
    said = "%Error: Specified --top-module 'f' was not found in design."
    assert verilator.first_verilog_error(said, DESIGN) == "no module f; there is g, h"
    assert verilator.first_verilog_error("a\nsource1.v: b", DESIGN) == "source.v: b"
    assert verilator.first_verilog_error("", DESIGN) == "it said nothing"


def test_the_driver_is_called_with_inputs_limit_shapes_and_outputs() -> None:
    code = verilator.driver_code(DESIGN, PORTS, Face(clock="clk", reset="rst", reset_level=1))
    assert "#define FLOWOS_CLOCK clk\n#define FLOWOS_RESET rst\n" in code
    assert "FLOWOS_STREAM(s)\nFLOWOS_STREAM(m)\nFLOWOS_STREAM(p)\n" in code
    assert (
        "int flowos_run(const void* i0, float i1, std::int8_t i2, std::int64_t i3, "
        "std::int64_t limit, std::int64_t d0_0, std::int64_t d0_1, std::int64_t d1_0, "
        "void* o0, void* o1) {"
    ) in code
    assert ("Source<s_face, 4, 4, 1>{d0_0 * d0_1, {{moving(i0), fixed(&i1), fixed(&i2)}}}") in code
    assert "Sink<m_face, 8>{d1_0, {{moving(o0)}}}, Sink<p_face, 2>{1, {{moving(o1)}}}" in code
    assert verilator.driver_lengths(DESIGN, -1) == [-1, "n", 2, "n"]
    without = verilator.driver_code(DESIGN, PORTS, Face(clock="clk", reset="", reset_level=0))
    assert "FLOWOS_RESET " not in without


def test_tools_get_files_under_names_of_ours() -> None:
    assert source_names(DESIGN) == ["source0.sv", "source1.v"]
    assert with_paths("source1.v:1, source0.sv:2, source7.v", DESIGN) == (
        "source.v:1, /home/me/f.sv:2, source7.v"
    )
    assert with_paths("include0/source0.sv:2 include0/g.vh:1 include5/", DESIGN) == (
        "/home/me/f.sv:2 /home/me/g.vh:1 include5/"
    )
    links = folder_links(DESIGN)
    assert placed_text("source0.sv", *DESIGN.files[0], links).startswith(
        '`line 1 "include0/source0.sv" 0\nmodule g'
    )
    assert placed_text("source1.v", "", "a", links) == "a"


def test_all_in_quotes_may_be_a_file() -> None:
    assert quoted_words('parameter A = "a.hex"; `include "b.vh"\n"\n"') == ["a.hex", "b.vh"]
    writes = (
        '$dumpfile("w"); $writememh ( "w", m); $fopen("w"); $fopen("w", "wb"); $fopen("w","a+")'
    )
    assert quoted_words(writes) == []
    assert quoted_words('$fopen("a", "r"); $readmemh("b", m)') == ["a", "r", "b"]


def test_a_file_that_is_not_there_is_shown_where_it_is_named() -> None:
    design = replace(DESIGN, files=(DESIGN.files[0], ("", 'a\n$readmemh("b.hex", c);')))
    assert named_in(design, "b.hex") == "source.v:2: "
    assert named_in(design, "c.hex") == ""
    assert verilator.stopped_words("there is no file b.hex", design) == (
        "source.v:2: there is no file b.hex"
    )
    assert verilator.stopped_words("source0.sv:3: $finish", design) == "/home/me/f.sv:3: $finish"
    said = "source1.v:0: ERROR: Can not open file `b.hex` for \\$readmemh.\n"
    assert boards.first_yosys_error(said, design) == "source.v:2: there is no file b.hex"
    said = "include0/g.vh:0: ERROR: Can not open file `c.hex` for \\$readmemh.\n"
    assert boards.first_yosys_error(said, design) == "/home/me/g.vh:0: there is no file c.hex"
    said = "ERROR: Unable to place cell 'a', no BELs remaining to implement cell type 'b'\n"
    design = replace(design, board="icestick")
    large = f"module f is too large for icestick: {said.removeprefix('ERROR: ').strip()}"
    assert boards.first_yosys_error(said, design) == large


def one_each(top: str = "f") -> HdlDesign:
    return replace(DESIGN, gives=GIVES[:1], top=top)


def test_a_board_has_the_module_behind_the_bridge() -> None:
    text = tops.board_top(one_each(), Face(clock="clk", reset="rst", reset_level=1), 12)
    assert ".DIVISOR(12), .IN_BYTES(9)," in text
    assert ".OUT_BYTES(8), .DESIGN(32'd" in text
    assert "f module_(.s_tdata(s_tdata)," in text
    assert ".clk(clk), .rst(reset));" in text
    assert ".aresetn(!reset)" in tops.board_top(
        one_each(), Face(clock="aclk", reset="aresetn", reset_level=0), 12
    )
    without = tops.board_top(one_each(), Face(clock="aclk", reset="", reset_level=0), 12)
    assert "reset" not in without.partition("module_(")[2]
    assert boards.pins(boards.BOARDS["icestick"]) == "set_io clk 21\nset_io rx 9\nset_io tx 8\n"


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("xdma", "flowos_xdma_bridge #(.BYTES(BYTES), .IN_BYTES(9),"),
        ("ftdi", "flowos_ftdi_bridge #(.IN_BYTES(9),"),
    ],
)
def test_what_has_no_bitstream_of_ours_has_a_module_for_its_tools(link: str, words: str) -> None:
    text = tops.top_of(link, one_each(), Face(clock="clk", reset="resetn", reset_level=0))
    assert text.startswith(f"module {tops.OF_LINKS[link]}")
    assert words in text
    assert "f module_(.s_tdata(s_tdata)," in text
    assert ".clk(clk), .resetn(!reset));" in text


def test_yosys_and_nextpnr_are_called_and_understood() -> None:
    words = boards.read_ports("yosys", "f", ["a.sv", "b.v"], ["include0"], "ports.json", "read.d")
    assert words[-1] == (
        "read_verilog -sv -Iinclude0 a.sv; read_verilog -Iinclude0 b.v; hierarchy -top f; proc; "
        "json -o ports.json"
    )
    assert boards.synthesize("yosys", boards.BOARDS["icestick"], ["a.v"], [], "n.json")[-1] == (
        "read_verilog a.v; synth_ice40 -top flowos_board -json n.json"
    )
    words = boards.place("nextpnr", boards.BOARDS["icebreaker"], "n.json", "b.pcf", "p.asc")
    assert words[2:5] == ("--up5k", "--package", "sg48")
    assert words[-4:] == ("--freq", "12", "--seed", "1")
    small, ecp5 = boards.BOARDS["icestick"], boards.BOARDS["ulx3s-25f"]
    assert boards.pack("icepack", small, "p.asc", "b.bin") == ("icepack", "p.asc", "b.bin")
    words = boards.place("nextpnr", ecp5, "n.json", "b.lpf", "p.config")
    assert words[2:5] == ("--25k", "--package", "CABGA381")
    assert words[7:11] == ("--lpf", "b.lpf", "--textcfg", "p.config")
    assert boards.synthesize("yosys", ecp5, ["a.v"], [], "n")[-1].endswith(
        "; synth_ecp5 -top flowos_board -json n"
    )
    assert boards.pack("ecppack", ecp5, "p", "b") == ("ecppack", "p", "b", "--compress")
    assert 'LOCATE COMP "rx" SITE "M1";\nIOBUF PORT "rx"' in boards.pins(ecp5)
    said = '{"modules": {"f": {"ports": {"clk": {"direction": "input", "bits": [2]}}}}}'
    assert boards.module_ports_of(said, "f") == {"clk": ("input", 1)}
    assert boards.module_ports_of(said, "g") == {}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("ERROR: Module `f' not found!\n", "no module f; there is g, h"),
        ("source0.sv:2: ERROR: syntax error\n", "/home/me/f.sv:2: syntax error"),
        (
            "Info: a\nERROR: Max frequency for clock 'clk': 9 MHz (FAIL at 12 MHz)\n",
            "Max frequency ",
        ),
        ("killed", "killed"),
        ("", "it said nothing"),
    ],
)
def test_what_yosys_complains_of_is_one_line(said: str, line: str) -> None:
    assert boards.first_yosys_error(said, DESIGN).startswith(line)


@pytest.mark.parametrize(
    ("name", "baud", "said"),
    [
        (None, 1_000_000, ""),
        ("icestick", 3_000_000, ""),
        ("arty", 1_000_000, "board='arty' (str); there is icebreaker, icestick or ulx3s-25f"),
        ("icestick", 4_000_000, "board 'icestick' has no 4000000 baud from a clock of 12 MHz"),
        ("icestick", 2_200_000, "board 'icestick' has no 2200000 baud"),
        ("icestick", "fast", "baud='fast' (str); expected a number above 0"),
        ("icestick", -1, "baud=-1 (int); expected a number above 0"),
    ],
)
def test_a_board_has_some_baud_rates(name: object, baud: object, said: str) -> None:
    if not said:
        boards.check_board("f", name, baud)
        return
    with pytest.raises(WiringError) as caught:
        boards.check_board("f", name, baud)
    assert said in str(caught.value)


def test_a_serial_line_carries_one_stream_each_way() -> None:
    boards.check_one_each("f", one_each())
    with pytest.raises(WiringError, match="2 streams of out=; a serial line carries one each way"):
        boards.check_one_each("f", DESIGN)
    wide = HdlStream(name="s", lanes=(0,) * 33, dtypes=("uint64",) * 33, shape=("n",))
    with pytest.raises(WiringError, match=r"a beat of stream 's' has 2112 bits; .* at most 2040"):
        boards.check_one_each("f", replace(one_each(), takes=(wide,)))


def test_ports_are_what_is_wired() -> None:
    assert isinstance(PORTS, NativePorts)
    assert [stream.name for stream in (*TAKES, *GIVES)] == ["s", "m", "p"]
