// The FIFO of an FT232H in its synchronous mode (FT245), with frames.v between it and the module.
module flowos_ftdi_bridge #(
  parameter DEPTH = 12,            // bytes that wait for the module, as a power of 2, up to 15
  parameter IN_BYTES = 8, parameter OUT_BYTES = 4, parameter [31:0] DESIGN = 0
) (
  input clk,                       // of the chip, 60 MHz
  input rxf_n, input txe_n, output reg rd_n, output wr_n, output reg oe_n,
  input [7:0] data_in, output [7:0] data_out, output drive,     // its bus, driven from here or not
  output reset,
  output [8*IN_BYTES-1:0] s_tdata, output s_tvalid, input s_tready, output s_tlast,
  input [8*OUT_BYTES-1:0] m_tdata, input m_tvalid, output m_tready, input m_tlast
);
  // The bus is driven by neither side for a clock when it turns, and read a clock after oe_n.
  localparam [2:0] WRITES = 0, LEAVES = 1, ENABLES = 2, READS = 3, RETURNS = 4;
  reg [2:0] phase = WRITES;
  initial {rd_n, oe_n} = 2'b11;

  reg [7:0] got = 0, held = 0;
  reg got_valid = 0, has = 0;
  wire [7:0] send;
  wire sends;
  wire writes = phase == WRITES && has && !txe_n;
  assign drive = phase == WRITES;
  assign wr_n = !(phase == WRITES && has);
  assign data_out = held;

  always @(posedge clk) begin
    got <= data_in;
    got_valid <= phase == READS && !rxf_n;
    if (sends) held <= send;
    has <= sends || (has && !writes);
    case (phase)
      WRITES: if (!rxf_n) phase <= LEAVES;
      LEAVES: begin
        oe_n <= 0;
        phase <= ENABLES;
      end
      ENABLES: begin
        rd_n <= 0;
        phase <= READS;
      end
      READS: if (rxf_n) begin
        {rd_n, oe_n} <= 2'b11;
        phase <= RETURNS;
      end
      default: phase <= WRITES;
    endcase
  end

  flowos_frames #(.DEPTH(DEPTH), .IN_BYTES(IN_BYTES), .OUT_BYTES(OUT_BYTES), .DESIGN(DESIGN))
    frames(.clk(clk), .got(got), .got_valid(got_valid), .send(send), .sends(sends),
           .tx_ready(!has || writes), .reset(reset),
           .s_tdata(s_tdata), .s_tvalid(s_tvalid), .s_tready(s_tready), .s_tlast(s_tlast),
           .m_tdata(m_tdata), .m_tvalid(m_tvalid), .m_tready(m_tready), .m_tlast(m_tlast));
endmodule
