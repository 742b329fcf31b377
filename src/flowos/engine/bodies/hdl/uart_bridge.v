// A UART, with frames.v between it and the module.
module flowos_uart_bridge #(
  parameter DIVISOR = 12,          // cycles of clk for a bit, 4 or more
  parameter IN_BYTES = 8, parameter OUT_BYTES = 4, parameter [31:0] DESIGN = 0
) (
  input clk, input rx, output tx, output reset,
  output [8*IN_BYTES-1:0] s_tdata, output s_tvalid, input s_tready, output s_tlast,
  input [8*OUT_BYTES-1:0] m_tdata, input m_tvalid, output m_tready, input m_tlast
);
  wire [7:0] got, send;
  wire got_valid, sends, tx_ready;
  flowos_uart_rx #(.DIVISOR(DIVISOR)) receiver(.clk(clk), .rx(rx), .data(got), .valid(got_valid));
  flowos_uart_tx #(.DIVISOR(DIVISOR))
    sender(.clk(clk), .data(send), .valid(sends), .ready(tx_ready), .tx(tx));
  flowos_frames #(.IN_BYTES(IN_BYTES), .OUT_BYTES(OUT_BYTES), .DESIGN(DESIGN))
    frames(.clk(clk), .got(got), .got_valid(got_valid), .send(send), .sends(sends),
           .tx_ready(tx_ready), .reset(reset),
           .s_tdata(s_tdata), .s_tvalid(s_tvalid), .s_tready(s_tready), .s_tlast(s_tlast),
           .m_tdata(m_tdata), .m_tvalid(m_tvalid), .m_tready(m_tready), .m_tlast(m_tlast));
endmodule

module flowos_uart_rx #(parameter DIVISOR = 12) (
  input clk, input rx, output reg [7:0] data, output reg valid
);
  reg [2:0] line = 3'b111;         // the first two take it into this clock
  reg [3:0] bits = 0;              // that are to come, 10 with start and stop
  reg [15:0] count = 0;
  always @(posedge clk) begin
    line <= {line[1:0], rx};
    valid <= 0;
    if (bits == 0) begin
      if (!line[2]) begin
        bits <= 10;
        count <= DIVISOR / 2 - 1;
      end
    end else if (count != 0) count <= count - 1;
    else begin
      count <= DIVISOR - 1;
      bits <= bits == 10 && line[2] ? 0 : bits - 1;
      if (bits == 1) valid <= line[2];
      else if (bits != 10) data <= {line[2], data[7:1]};
    end
  end
endmodule

module flowos_uart_tx #(parameter DIVISOR = 12) (
  input clk, input [7:0] data, input valid, output ready, output tx
);
  reg [9:0] bits = 10'h3FF;
  reg [3:0] left = 0;
  reg [15:0] count = 0;
  assign ready = left == 0;
  assign tx = bits[0];
  always @(posedge clk) begin
    if (ready) begin
      if (valid) begin
        bits <= {1'b1, data, 1'b0};
        left <= 10;
        count <= DIVISOR - 1;
      end
    end else if (count != 0) count <= count - 1;
    else begin
      count <= DIVISOR - 1;
      left <= left - 1;
      bits <= {1'b1, bits[9:1]};
    end
  end
endmodule
