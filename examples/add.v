// Adds the two halves of each beat.
module add (
  input aclk, input aresetn,
  input [63:0] s_tdata, input s_tvalid, output s_tready, input s_tlast,
  output reg [31:0] m_tdata, output reg m_tvalid, input m_tready, output reg m_tlast
);
  assign s_tready = m_tready | ~m_tvalid;
  always @(posedge aclk)
    if (!aresetn) m_tvalid <= 0;
    else if (s_tready) begin
      m_tvalid <= s_tvalid;
      m_tlast <= s_tlast;
      m_tdata <= s_tdata[31:0] + s_tdata[63:32];
    end
endmodule
