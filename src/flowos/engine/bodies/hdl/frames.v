// AXI streams as frames of bytes: what a program sends is a stream for the module behind it, and what
// that gives is sent back. What is said is in drivers/hdl/uart_talk.py; what moves the bytes, in the
// bridge of each link.
module flowos_frames #(
  parameter DEPTH = 10,            // bytes that wait for the module, as a power of 2, up to 15
  parameter IN_BYTES = 8,          // of a beat, up to 255
  parameter OUT_BYTES = 4,
  parameter [31:0] DESIGN = 0      // what the board says that it is
) (
  input clk,
  input [7:0] got, input got_valid,               // there is always room for a byte
  output [7:0] send, output sends, input tx_ready,
  output reg reset,                // of the module
  output [8*IN_BYTES-1:0] s_tdata, output reg s_tvalid, input s_tready, output reg s_tlast,
  input [8*OUT_BYTES-1:0] m_tdata, input m_tvalid, output m_tready, input m_tlast
);
  localparam [7:0] END = 8'hC0, ESC = 8'hDB, ESC_END = 8'hDC, ESC_ESC = 8'hDD;
  localparam [7:0] RESET = "R", DATA = "D", LAST = "L", TAKEN = "A", FAULT = "E";

  function [15:0] crc16(input [15:0] crc, input [7:0] data);
    integer i;
    begin
      crc16 = crc ^ {data, 8'd0};
      for (i = 0; i < 8; i = i + 1) crc16 = crc16[15] ? (crc16 << 1) ^ 16'h1021 : crc16 << 1;
    end
  endfunction

  // Bytes come in frames. Those of a frame are there for the module once its CRC was right.
  reg [8:0] held [0:(1<<DEPTH)-1]; // a byte, and whether it is the last of the stream
  reg [8:0] next;
  reg [DEPTH:0] written = 0, kept = 0, taken = 0;
  reg escaped = 0, overflow = 0;
  reg [15:0] crc_in = 16'hFFFF;
  reg [2:0] count_in = 0;          // bytes in `late`, up to 4
  reg [31:0] late = 0;             // the last four: payload, kind, CRC
  wire [7:0] plain = !escaped ? got : got == ESC_END ? END : ESC;
  wire is_end = got_valid && got == END;
  wire is_byte = got_valid && got != END && !(got == ESC && !escaped);
  wire sound = count_in >= 3 && crc_in == 0 && !overflow;
  wire [7:0] kind = late[23:16];
  wire begins = is_end && sound && kind == RESET;
  wire store = (is_byte && count_in == 4)
    || (is_end && sound && count_in == 4 && (kind == DATA || kind == LAST));
  wire full = written - taken == (1 << DEPTH);

  always @(posedge clk) begin
    if (store && !full) held[written[DEPTH-1:0]] <= {is_end && kind == LAST, late[31:24]};
    next <= held[taken[DEPTH-1:0]];
  end

  reg hello = 0, fault = 0;        // to be said
  reg [7:0] fault_code = 0;
  reg said_hello, said_fault;
  always @(posedge clk) begin
    if (said_hello) hello <= 0;
    if (said_fault) fault <= 0;
    if (got_valid) escaped <= got == ESC && !escaped;
    if (is_byte) begin
      crc_in <= crc16(crc_in, plain);
      late <= {late[23:0], plain};
      if (count_in != 4) count_in <= count_in + 1;
      else if (full) overflow <= 1;
      else written <= written + 1;
    end
    if (is_end) begin
      crc_in <= 16'hFFFF;
      count_in <= 0;
      overflow <= 0;
      if (store && !full) begin
        written <= written + 1;
        kept <= written + 1;
      end else begin
        written <= kept;
        if (count_in != 0 && !sound) begin
          fault <= 1;
          fault_code <= overflow ? 2 : 1;
        end
      end
    end
    if (begins) begin
      written <= 0;
      kept <= 0;
      hello <= 1;
      fault <= 0;
    end
  end

  // The module is reset for 16 cycles, at first too.
  reg [3:0] resetting = 15;
  always @(posedge clk) begin
    reset <= begins || resetting != 0;
    resetting <= begins ? 15 : resetting - (resetting != 0);
  end

  // Bytes become beats.
  reg [8*IN_BYTES-1:0] beat = 0;
  reg [7:0] count_beat = 0;
  reg fetched = 0;
  reg [15:0] taken_bytes = 0;
  wire [8*IN_BYTES+7:0] shifted = {next[7:0], beat};
  assign s_tdata = beat;
  always @(posedge clk) begin
    fetched <= 0;
    if (s_tvalid && s_tready) s_tvalid <= 0;
    if (fetched) begin
      beat <= shifted[8*IN_BYTES+7:8];
      taken <= taken + 1;
      taken_bytes <= taken_bytes + 1;
      count_beat <= count_beat + 1;
      if (count_beat == IN_BYTES - 1) begin
        count_beat <= 0;
        s_tvalid <= 1;
        s_tlast <= next[8];
      end
    end else if (!s_tvalid && !reset && taken != kept) fetched <= 1;
    if (reset || begins) begin
      s_tvalid <= 0;
      s_tlast <= 0;
      fetched <= 0;
      count_beat <= 0;
      taken <= 0;
      taken_bytes <= 0;
    end
  end

  // What is sent: END, payload, kind, CRC, END.
  localparam [2:0] IDLE = 0, START = 1, PAYLOAD = 2, KIND = 3, CRC_HIGH = 4, CRC_LOW = 5, STOP = 6;
  localparam ROOM = OUT_BYTES > 8 ? OUT_BYTES : 8;
  reg [2:0] state = IDLE;
  reg [8*ROOM-1:0] payload = 0;
  reg [7:0] left = 0, kind_out = 0;
  reg [5:0] beats = 0;             // of this frame
  reg [15:0] crc_out = 16'hFFFF, said_taken = 0;
  reg escaping = 0;
  wire [7:0] raw = state == PAYLOAD ? payload[7:0] : state == KIND ? kind_out
    : state == CRC_HIGH ? crc_out[15:8] : state == CRC_LOW ? crc_out[7:0] : END;
  wire is_mark = state == START || state == STOP;
  wire special = !is_mark && (raw == END || raw == ESC);
  assign send = !special ? raw : !escaping ? ESC : raw == END ? ESC_END : ESC_ESC;
  assign sends = state != IDLE && !(state == PAYLOAD && left == 0) && tx_ready;
  wire passes = sends && (!special || escaping);
  wire more = state == PAYLOAD && left == 0 && kind_out == DATA && beats != 32;
  wire [15:0] untold = taken_bytes - said_taken;
  wire tells = untold >= (1 << (DEPTH - 4));
  assign m_tready = !reset && m_tvalid && (more || (state == IDLE && !hello && !fault && !tells));

  always @(posedge clk) begin
    said_hello <= 0;
    said_fault <= 0;
    if (sends) escaping <= special && !escaping;
    if (state == IDLE) begin
      crc_out <= 16'hFFFF;
      beats <= 0;
      if (!reset && !said_hello && !said_fault) begin
        if (hello) begin
          payload <= {DESIGN, DEPTH[7:0], OUT_BYTES[7:0], IN_BYTES[7:0], 8'd1};
          left <= 8; kind_out <= RESET; said_hello <= 1; state <= START;
        end else if (fault) begin
          payload <= fault_code;
          left <= 1; kind_out <= FAULT; said_fault <= 1; state <= START;
        end else if (tells) begin
          payload <= taken_bytes; said_taken <= taken_bytes;
          left <= 2; kind_out <= TAKEN; state <= START;
        end
      end
    end
    if (m_tready) begin
      payload <= m_tdata;
      left <= OUT_BYTES;
      kind_out <= m_tlast ? LAST : DATA;
      beats <= beats + 1;
      if (state == IDLE) state <= START;
    end else if (state == PAYLOAD && left == 0 && tx_ready) state <= KIND;
    if (passes) begin
      if (state == PAYLOAD || state == KIND) crc_out <= crc16(crc_out, raw);
      if (state == PAYLOAD) begin
        payload <= payload >> 8;
        left <= left - 1;
      end else state <= state == STOP ? IDLE : state + 1;
    end
    if (begins) begin
      state <= IDLE;
      escaping <= 0;
      said_taken <= 0;
      said_hello <= 0;
    end
  end
endmodule
