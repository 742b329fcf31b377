// Adds b to a, and is ready or has something at random. Some values of a have it go wrong.
`include "moods.vh"
module moody (
  input aclk, input aresetn,
  input [63:0] s_tdata, input s_tvalid, output s_tready, input s_tlast,
  output [31:0] m_tdata, output m_tvalid, input m_tready, output m_tlast
);
  reg [15:0] random;
  reg [31:0] held;
  reg has, last;
  wire [31:0] a = s_tdata[31:0], b = s_tdata[63:32];
  assign s_tready = !has && random[0];
  assign m_tvalid = has && random[3];
  assign m_tdata = held;
  assign m_tlast = last;
  always @(posedge aclk) begin
    if (!aresetn) begin
      random <= 16'hACE1;
      has <= 0;
    end else begin
      if (!(m_tvalid && !m_tready)) random <= {random[14:0], random[15] ^ random[13] ^ random[12] ^ random[10]};
      if (s_tvalid && s_tready && a != `SWALLOW) begin
        held <= a + b;
        has <= 1;
        last <= (s_tlast || a == `EARLY) && a != `ENDLESS;
      end
      if (m_tvalid && m_tready) has <= 0;
`ifdef VERILATOR
      if (s_tvalid && a == `FINISH) $finish;
`endif
    end
  end
endmodule
