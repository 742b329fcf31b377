// AXI streams over PCIe: between those of Xilinx's XDMA and a module. What is said is in
// drivers/hdl/xdma_talk.py: blocks of 64 bytes, a head and the beats of the stream to the card, the
// beats that the module gave and a tail back. Nothing depends on tlast or tkeep of XDMA, which its
// driver sets where a chain of descriptors ends.
module flowos_xdma_bridge #(
  parameter BYTES = 32,            // of XDMA's streams: 8, 16, 32 or 64
  parameter IN_BYTES = 8,          // of a beat, up to 255
  parameter OUT_BYTES = 4,
  parameter [31:0] DESIGN = 0,     // what the card says that it is
  parameter GONE = 30              // a host that moves no word for 2**GONE cycles is gone
) (
  input clk, input resetn,
  input [8*BYTES-1:0] h2c_tdata, input h2c_tvalid, output h2c_tready,
  output [8*BYTES-1:0] c2h_tdata, output c2h_tvalid, input c2h_tready, output c2h_tlast,
  output reset,                    // of the module
  output [8*IN_BYTES-1:0] s_tdata, output s_tvalid, input s_tready, output s_tlast,
  input [8*OUT_BYTES-1:0] m_tdata, input m_tvalid, output m_tready, input m_tlast
);
  localparam [63:0] MAGIC = "1amdxolf"; // "floxdma1" as bytes
  localparam WORDS = 64 / BYTES;   // of a block
  localparam SHIFT = BYTES == 8 ? 3 : BYTES == 16 ? 2 : BYTES == 32 ? 1 : 0;
  localparam [7:0] WELL = 0, SHORT = 1, LONG = 2, NO_END = 3, OTHER = 4;
  localparam [1:0] IDLE = 0, RESETTING = 1, RUN = 2;

  reg [1:0] state = IDLE;
  wire in_moves = h2c_tvalid && h2c_tready, out_moves = c2h_tvalid && c2h_tready;

  // The head of a call. What begins with another word is of a call that was cut short.
  reg [511:0] head = 0;
  reg [3:0] head_words = 0;
  wire [511+8*BYTES:0] head_next = {h2c_tdata, head};
  wire [63:0] nonce = head[127:64], limit = head[447:384];
  wire [47:0] takes = head[175:128], gives = head[239:192];
  wire [47:0] in_words = head[303:256] << SHIFT, out_words = head[367:320] << SHIFT;
  wire [31:0] wanted = head[479:448];
  wire other = head[487:480] != IN_BYTES || head[495:488] != OUT_BYTES
    || (DESIGN != 0 && wanted != DESIGN);

  reg [3:0] resetting = 0;
  reg ended = 0;
  reg [7:0] status = WELL;
  reg [47:0] taken = 0, given = 0, got = 0, sent = 0, cycles = 0;
  reg [3:0] tail_words = 0;
  assign reset = state != RUN || ended;

  // Words become beats. What is left of the stream after the end is read away.
  wire enough = ended || taken == takes;
  wire in_ready, in_valid;
  flowos_gearbox #(.IN(BYTES), .OUT(IN_BYTES)) in_gear(
    .clk(clk), .clear(state != RUN), .in(h2c_tdata), .in_valid(h2c_tvalid && state == RUN
      && got != in_words && !enough), .in_ready(in_ready), .out(s_tdata), .out_valid(in_valid),
    .out_ready(s_tvalid && s_tready));
  assign h2c_tready = state == IDLE || (state == RUN && got != in_words && (enough || in_ready));
  assign s_tvalid = in_valid && !enough && state == RUN;
  assign s_tlast = taken + 1 == takes;

  // Beats become words, zeros after the end, so that the host always gets what it waits for.
  wire out_ready, out_valid;
  wire [8*BYTES-1:0] out_word;
  wire m_moves = m_tvalid && m_tready;
  wire answers = state == RUN && sent != out_words;
  flowos_gearbox #(.IN(OUT_BYTES), .OUT(BYTES)) out_gear(
    .clk(clk), .clear(state != RUN), .in(ended ? {8*OUT_BYTES{1'b0}} : m_tdata),
    .in_valid(ended || m_moves), .in_ready(out_ready), .out(out_word), .out_valid(out_valid),
    .out_ready(answers && c2h_tready));
  assign m_tready = out_ready && state == RUN && !ended;

  wire [511:0] tail = {128'd0, 16'd0, cycles, 16'd0, given, 16'd0, taken,
                       8'd0, status, OUT_BYTES[7:0], IN_BYTES[7:0], DESIGN, nonce, MAGIC};
  wire tells = state == RUN && sent == out_words && ended && tail_words != WORDS;
  wire [511:0] tail_rest = tail >> (8 * BYTES * tail_words);
  assign c2h_tdata = answers ? out_word : tail_rest[8*BYTES-1:0];
  assign c2h_tvalid = answers ? out_valid : tells;
  assign c2h_tlast = !answers && tail_words + 1 == WORDS;

  // The module's time passes while it has what it needs, else that of the host.
  wire waits = ended || (!enough && !in_valid) || (m_tvalid && !m_tready);
  wire late = {16'd0, cycles} == limit;
  reg [GONE:0] idle = 0;

  always @(posedge clk) begin
    if (state == IDLE) begin
      if (in_moves && (head_words != 0 || h2c_tdata[63:0] == MAGIC)) begin
        head <= head_next[511+8*BYTES:8*BYTES];
        head_words <= head_words + 1;
        if (head_words + 1 == WORDS) begin
          head_words <= 0;
          resetting <= 15;
          state <= RESETTING;
        end
      end
      {taken, given, got, sent, cycles} <= 0;
      tail_words <= 0;
      idle <= 0;
    end else if (state == RESETTING) begin
      resetting <= resetting - 1;
      ended <= other;
      status <= other ? OTHER : WELL;
      if (resetting == 0) state <= RUN;
    end else begin
      if (in_moves) got <= got + 1;
      if (s_tvalid && s_tready) taken <= taken + 1;
      if (m_moves) given <= given + 1;
      if (out_moves && answers) sent <= sent + 1;
      if (out_moves && !answers) tail_words <= tail_words + 1;
      if (!waits && !late) cycles <= cycles + 1;
      if (m_moves && (m_tlast || given + 1 == gives)) begin
        ended <= 1;
        status <= !m_tlast ? LONG : given + 1 == gives ? WELL : SHORT;
      end else if (!ended && late) begin
        ended <= 1;
        status <= NO_END;
      end
      idle <= in_moves || out_moves || !waits ? 0 : idle + 1;
      if ((tail_words == WORDS && got == in_words) || idle[GONE]) state <= IDLE;
    end
    if (!resetn) begin
      state <= IDLE;
      head_words <= 0;
    end
  end
endmodule

// Takes words of IN bytes and gives words of OUT bytes, the first bytes in the lowest bits.
module flowos_gearbox #(parameter IN = 32, parameter OUT = 8) (
  input clk, input clear,
  input [8*IN-1:0] in, input in_valid, output in_ready,
  output [8*OUT-1:0] out, output out_valid, input out_ready
);
  reg [8*(IN+OUT)-1:0] held = 0;   // zeros from `count` bytes on
  reg [9:0] count = 0;
  wire gives = out_valid && out_ready, takes = in_valid && in_ready;
  wire [9:0] left = count - (gives ? OUT : 0);
  wire [8*(IN+OUT)-1:0] rest = gives ? held >> 8 * OUT : held;
  wire [8*(IN+OUT)-1:0] added = {{8*OUT{1'b0}}, in} << {left, 3'd0};
  assign in_ready = count <= OUT;
  assign out_valid = count >= OUT;
  assign out = held[8*OUT-1:0];
  always @(posedge clk) begin
    held <= clear ? 0 : takes ? rest | added : rest;
    count <= clear ? 0 : left + (takes ? IN : 0);
  end
endmodule
