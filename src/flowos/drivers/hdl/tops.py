"""The modules that synthesis begins with: a link's bridge, and the person's module behind it."""

from flowos.drivers.hdl.module_face import Face, connections
from flowos.drivers.hdl.uart_talk import design_number
from flowos.model import HdlDesign

BOARD = "flowos_board"
OF_LINKS = {"xdma": "flowos_card", "ftdi": "flowos_fifo"}
"""Of links to what has no bitstream of ours: the name of the top."""


def board_top(design: HdlDesign, face: Face, cycles: int) -> str:
    """A board with a UART, of which a bit has so many cycles of its clock."""
    pins = ".rx(rx), .tx(tx)"
    inside = _inside(design, face, "uart", f".DIVISOR({cycles}), ", pins)
    return f"module {BOARD}(input clk, input rx, output tx);\n{inside}"


def top_of(link: str, design: HdlDesign, face: Face) -> str:
    """Of a link in OF_LINKS."""
    return _card_top(design, face) if link == "xdma" else _fifo_top(design, face)


def _card_top(design: HdlDesign, face: Face) -> str:
    """Between the streams of XDMA."""
    pins = """.resetn(aresetn),
           .h2c_tdata(s_axis_tdata), .h2c_tvalid(s_axis_tvalid), .h2c_tready(s_axis_tready),
           .c2h_tdata(m_axis_tdata), .c2h_tvalid(m_axis_tvalid), .c2h_tready(m_axis_tready),
           .c2h_tlast(m_axis_tlast)"""
    return f"""module {OF_LINKS["xdma"]} #(parameter BYTES = 32) (
  input aclk, input aresetn,
  input [8*BYTES-1:0] s_axis_tdata, input [BYTES-1:0] s_axis_tkeep, input s_axis_tlast,
  input s_axis_tvalid, output s_axis_tready,
  output [8*BYTES-1:0] m_axis_tdata, output [BYTES-1:0] m_axis_tkeep, output m_axis_tlast,
  output m_axis_tvalid, input m_axis_tready
);
  wire clk = aclk;
  assign m_axis_tkeep = {{BYTES{{1'b1}}}};
{_inside(design, face, "xdma", ".BYTES(BYTES), ", pins)}"""


def _fifo_top(design: HdlDesign, face: Face) -> str:
    """At the pins of an FT232H; those of its bus have three sides, which each vendor's tools join
    in their own way."""
    pins = """.rxf_n(rxf_n), .txe_n(txe_n), .rd_n(rd_n), .wr_n(wr_n), .oe_n(oe_n),
           .data_in(data_in), .data_out(data_out), .drive(drive)"""
    return f"""module {OF_LINKS["ftdi"]}(
  input clk, input rxf_n, input txe_n, output rd_n, output wr_n, output oe_n,
  input [7:0] data_in, output [7:0] data_out, output drive
);
{_inside(design, face, "ftdi", "", pins)}"""


def _inside(design: HdlDesign, face: Face, link: str, parameters: str, pins: str) -> str:
    """From the wires of the streams on. parameters, pins: those that only this bridge has."""
    (take,), (give,) = design.takes, design.gives
    return f"""  wire reset, s_tvalid, s_tready, s_tlast, m_tvalid, m_tready, m_tlast;
  wire [{take.bits - 1}:0] s_tdata;
  wire [{give.bits - 1}:0] m_tdata;
  flowos_{link}_bridge #({parameters}.IN_BYTES({take.bits // 8}),
                       .OUT_BYTES({give.bits // 8}), .DESIGN(32'd{design_number(design)}))
    bridge(.clk(clk), {pins}, .reset(reset),
           .s_tdata(s_tdata), .s_tvalid(s_tvalid), .s_tready(s_tready), .s_tlast(s_tlast),
           .m_tdata(m_tdata), .m_tvalid(m_tvalid), .m_tready(m_tready), .m_tlast(m_tlast));
  {design.top} module_({connections(design, face)});
endmodule
"""
