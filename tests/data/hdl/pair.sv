// Two streams in, two out: x with a key of each beat, 96 bits wide, and y on its own, shifted by
// what a file says.
module pair #(parameter SHIFT = "pair.hex") (
  input logic clk, rst,
  input logic [95:0] x_tdata, input logic x_tvalid, x_tlast, output logic x_tready,
  input logic [15:0] y_tdata, input logic y_tvalid, y_tlast, output logic y_tready,
  output logic [95:0] p_tdata, output logic p_tvalid, p_tlast, input logic p_tready,
  output logic [15:0] q_tdata, output logic q_tvalid, q_tlast, input logic q_tready
);
  assign x_tready = p_tready, p_tvalid = x_tvalid && !rst, p_tlast = x_tlast;
  assign p_tdata = {x_tdata[95:64], x_tdata[63:0] + 64'(x_tdata[95:64])};
  assign y_tready = q_tready && half, q_tvalid = y_tvalid && half, q_tlast = y_tlast;
  assign q_tdata = y_tdata << by[0];
  logic [3:0] by[1];
  initial $readmemh(SHIFT, by);
  logic half;
  always_ff @(posedge clk) half <= rst ? 0 : !half;
endmodule
