// Drives a module that Verilator made with arrays of the host, over its AXI streams. Included by
// generated code, which names the module's class, clock, reset and streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Of the runtime: what the last run of a thread came to.
extern "C" std::int64_t* flowos_state();  // cycles, the stream at fault, the beats of each stream
extern "C" void flowos_stopped(const char* by);

namespace flowos_sim {

// What a run came to, for the person: 0, or one of these.
enum Fault : int { kNone, kNoEnd, kTooShort, kTooLong, kStopped };

constexpr int kResetCycles = 4;

struct Lane {
  unsigned char* at;
  bool moves;
};
inline Lane moving(const void* array) {
  return {static_cast<unsigned char*>(const_cast<void*>(array)), true};
}
inline Lane fixed(const void* scalar) {
  return {static_cast<unsigned char*>(const_cast<void*>(scalar)), false};
}

// The elements of a beat, side by side: Verilator has all widths as little-endian words.
template <std::size_t... kWidths>
struct Lanes {
  std::array<Lane, sizeof...(kWidths)> each;

  template <typename Copy>
  void next(unsigned char* beat, Copy copy) {
    std::size_t offset = 0;
    std::size_t number = 0;
    (
        [&] {
          Lane& lane = each[number++];
          copy(beat + offset, lane.at, std::integral_constant<std::size_t, kWidths>{});
          if (lane.moves) lane.at += kWidths;
          offset += kWidths;
        }(),
        ...);
  }
};

// What a module takes: offered until it is ready, tlast with the last beat.
template <typename Face, std::size_t... kWidths>
struct Source {
  std::int64_t beats;
  Lanes<kWidths...> lanes;
  std::int64_t moved = 0;

  void offer(Vmodule& top) {
    Face::valid(top) = moved < beats;
    if (moved == beats) return;
    Face::last(top) = moved + 1 == beats;
    lanes.next(Face::data(top), [](unsigned char* beat, const unsigned char* at, auto width) {
      std::memcpy(beat, at, width);
    });
  }
  bool moves(Vmodule& top) const { return Face::valid(top) && Face::ready(top); }
  void clocked(Vmodule& top) {
    ++moved;
    offer(top);
  }
};

// What a module gives: always taken, until tlast.
template <typename Face, std::size_t... kWidths>
struct Sink {
  std::int64_t beats;
  Lanes<kWidths...> lanes;
  std::int64_t moved = 0;

  void offer(Vmodule& top) { Face::ready(top) = moved < beats; }
  Fault take(Vmodule& top) {
    if (!Face::valid(top) || moved == beats) return kNone;
    lanes.next(Face::data(top), [](const unsigned char* beat, unsigned char* at, auto width) {
      std::memcpy(at, beat, width);
    });
    ++moved;
    if (static_cast<bool>(Face::last(top)) == (moved == beats)) return kNone;
    return moved == beats ? kTooLong : kTooShort;
  }
};

template <typename Each, typename Act, std::size_t... kNumbers>
void for_each(Each& each, Act act, std::index_sequence<kNumbers...> /*numbers*/) {
  (act(std::get<kNumbers>(each), kNumbers), ...);
}
template <typename... Parts, typename Act>
void for_each(std::tuple<Parts...>& each, Act act) {
  for_each(each, act, std::index_sequence_for<Parts...>{});
}

// Where $readmemh finds a file: next to the sources, as it does when a bitstream is made.
inline std::string located(const std::string& name) {
  for (const std::string& folder : std::vector<std::string>{FLOWOS_FOLDERS}) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (std::filesystem::exists(path)) return path.string();
  }
  if (name[0] == '/' && std::filesystem::exists(name)) return name;
  throw std::runtime_error("there is no file " + name);
}
template <typename Part>
decltype(auto) with_located(Part&& part) {
  if constexpr (std::is_same_v<std::decay_t<Part>, std::string>) {
    return located(part);
  } else {
    return std::forward<Part>(part);
  }
}
template <typename... Parts>
void read_memory(Parts&&... parts) {
  VL_READMEM_N(with_located(std::forward<Parts>(parts))...);
}

inline void clock(Vmodule& top, bool level) {
  top.FLOWOS_CLOCK = level;
  top.eval();
}

inline void reset(Vmodule& top) {
#ifdef FLOWOS_RESET
  top.FLOWOS_RESET = FLOWOS_RESET_LEVEL;
  for (int half = 0; half < 2 * kResetCycles; ++half) clock(top, half % 2 != 0);
  top.FLOWOS_RESET = !FLOWOS_RESET_LEVEL;
#endif
}

template <typename Sources, typename Sinks>
class Run {
 public:
  Run(std::int64_t limit, Sources sources, Sinks sinks)
      : sources_(std::move(sources)), sinks_(std::move(sinks)), limit_(limit) {
    std::int64_t beats = 0;
    for_each(sources_, [&](const auto& each, std::size_t) { beats += each.beats; });
    for_each(sinks_,
             [&](const auto& each, std::size_t) { beats += each.beats, left_ += each.beats; });
    if (limit_ < 0) limit_ = FLOWOS_LEAST_CYCLES + FLOWOS_CYCLES_A_BEAT * beats;
  }

  Fault run() {
    if (left_ == 0) return kNone;  // there is nothing to be computed
    const auto context = std::make_unique<VerilatedContext>();
    context->threads(1);  // it would start some, though a module runs in this one
    const auto top = std::make_unique<Vmodule>(context.get());
    reset(*top);
    for_each(sources_, [&](auto& each, std::size_t) { each.offer(*top); });
    for_each(sinks_, [&](auto& each, std::size_t) { each.offer(*top); });
    while (left_ > 0 && fault_ == kNone) {
      if (cycles_ == limit_) return kNoEnd;
      cycle(*top);
    }
    top->final();
    return fault_;
  }

  void tell() {
    std::size_t number = 2;
    std::int64_t* state = flowos_state();
    state[0] = cycles_;
    state[1] = stream_;
    const auto note = [&](const auto& each, std::size_t) { state[number++] = each.moved; };
    for_each(sources_, note);
    for_each(sinks_, note);
  }

 private:
  void cycle(Vmodule& top) {
    clock(top, false);
    std::array<bool, std::tuple_size_v<Sources>> moves;
    for_each(sources_, [&](auto& each, std::size_t n) { moves[n] = each.moves(top); });
    for_each(sinks_, [&](auto& each, std::size_t n) {
      const std::int64_t before = each.moved;
      const Fault fault = each.take(top);
      left_ -= each.moved - before;
      if (fault == kNone) return;
      fault_ = fault;
      stream_ = static_cast<std::int64_t>(n);
    });
    clock(top, true);
    for_each(sources_, [&](auto& each, std::size_t n) {
      if (moves[n]) each.clocked(top);
    });
    if constexpr (std::tuple_size_v<Sinks> > 1) {
      for_each(sinks_, [&](auto& each, std::size_t) { each.offer(top); });
    }
    ++cycles_;
  }

  Sources sources_;
  Sinks sinks_;
  std::int64_t limit_, left_ = 0, cycles_ = 0, stream_ = 0;
  Fault fault_ = kNone;
};

template <typename Sources, typename Sinks>
int run(std::int64_t limit, Sources sources, Sinks sinks) {
  Run<Sources, Sinks> one(limit, std::move(sources), std::move(sinks));
  Fault fault = kStopped;
  try {
    fault = one.run();
  } catch (const std::exception& error) {  // $finish, $stop, or what Verilator calls fatal
    flowos_stopped(error.what());
  }
  one.tell();
  return fault;
}

}  // namespace flowos_sim

#define VL_READMEM_N flowos_sim::read_memory
#define FLOWOS_STREAM(NAME)                                         \
  struct NAME##_face {                                              \
    static unsigned char* data(Vmodule& top) {                      \
      return reinterpret_cast<unsigned char*>(&top.NAME##_tdata);   \
    }                                                               \
    static CData& valid(Vmodule& top) { return top.NAME##_tvalid; } \
    static CData& ready(Vmodule& top) { return top.NAME##_tready; } \
    static CData& last(Vmodule& top) { return top.NAME##_tlast; }   \
  };
