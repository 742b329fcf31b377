#pragma once

// The two passes over memory of an iteration by Eisenstat's trick (SIAM Journal on Scientific and
// Statistical Computing 2, 1981). The matrix is scaled so that all pivots are 1: L + D + L', and
// the preconditioner (I + L)(I + L').

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../coarse_level.h"
#include "../coarse_line.h"
#include "../exact_sum.h"

namespace flowos::solve {

template <class Value>
struct LanesOf;
template <>
struct LanesOf<float> {
  typedef float type __attribute__((vector_size(64), may_alias));
};
template <>
struct LanesOf<double> {
  typedef double type __attribute__((vector_size(64), may_alias));
};
template <class Value>
using Lanes = typename LanesOf<Value>::type;

template <class Value>
inline Lanes<Value> lanes_at(const Value* from) {
  return *reinterpret_cast<const Lanes<Value>*>(from);
}

template <class Value>
inline void put_lanes(Value* to, const Lanes<Value>& lanes) {
  *reinterpret_cast<Lanes<Value>*>(to) = lanes;
}

template <class Value>
inline double sum_of(const Lanes<Value>& lanes) {
  double sum = 0;
  for (int lane = 0; lane < kLanes<Value>; lane++) sum += static_cast<double>(lanes[lane]);
  return sum;
}

// rest - (entries of a step) * vector
template <class Value>
inline Lanes<Value> less(const GroupEntries<Value>& entries, int step, const Value* vector,
                         Lanes<Value> rest) {
  for (std::int32_t at = entries.starts[step]; at < entries.starts[step + 1]; at++) {
    const std::int32_t code = entries.codes[at];
    Lanes<Value> factor;
    if (code >= 0) {
      factor = lanes_at(vector + code);
    } else {
      const std::int32_t* places = entries.indices + ~code;
      for (int lane = 0; lane < kLanes<Value>; lane++) factor[lane] = vector[places[lane]];
    }
    rest -= lanes_at(entries.values + static_cast<std::ptrdiff_t>(at) * kLanes<Value>) * factor;
  }
  return rest;
}

// What an iteration works on, by place. w = t + s is the preconditioned matrix times p.
template <class Value>
struct Vectors {
  explicit Vectors(std::size_t places)
      : middle(places, 0), r(places, 0), p(places, 0), t(places, 0), s(places, 0), x(places, 0) {}

  Line<Value> middle;  // the scaled diagonal less 2
  Line<Value> r, p, t, s, x;
};

template <class Value>
class Sweeps {
 public:
  Sweeps(const LevelView<Value>& matrix, Vectors<Value>& vectors)
      : steps_(matrix.steps), matrix_(matrix), v_(vectors) {}

  // r -= alpha w, p = r + beta p, x += alpha t, then (I + L') t = p. Answers r'r of the group.
  double backward(std::int64_t group, Value alpha, Value beta) {
    const GroupEntries<Value> upper = matrix_.upper[group];
    Lanes<Value> squares{};
    for (int step = steps_ - 1; step >= 0; step--) {
      const std::size_t at = place(group, step);
      const Lanes<Value> t = lanes_at(&v_.t[at]);
      const Lanes<Value> r = lanes_at(&v_.r[at]) - alpha * (t + lanes_at(&v_.s[at]));
      const Lanes<Value> p = r + beta * lanes_at(&v_.p[at]);
      put_lanes(&v_.r[at], r);
      put_lanes(&v_.p[at], p);
      put_lanes(&v_.x[at], lanes_at(&v_.x[at]) + alpha * t);
      put_lanes(&v_.t[at], less(upper, step, v_.t.data(), p));
      squares += r * r;
    }
    return sum_of<Value>(squares);
  }

  // (I + L) s = p + middle t. Answers p'w and w'w of the group.
  struct Products {
    double pw, ww;
  };
  Products forward(std::int64_t group) {
    const GroupEntries<Value> lower = matrix_.lower[group];
    Lanes<Value> pw{}, ww{};
    for (int step = 0; step < steps_; step++) {
      const std::size_t at = place(group, step);
      const Lanes<Value> p = lanes_at(&v_.p[at]), t = lanes_at(&v_.t[at]);
      const Lanes<Value> s = less(lower, step, v_.s.data(), p + lanes_at(&v_.middle[at]) * t);
      put_lanes(&v_.s[at], s);
      const Lanes<Value> w = t + s;
      pw += p * w;
      ww += w * w;
    }
    return {.pw = sum_of<Value>(pw), .ww = sum_of<Value>(ww)};
  }

  // (I + L) r = r. Answers r'r of the group.
  double begin(std::int64_t group) {
    const GroupEntries<Value> lower = matrix_.lower[group];
    Lanes<Value> squares{};
    for (int step = 0; step < steps_; step++) {
      const std::size_t at = place(group, step);
      const Lanes<Value> r = less(lower, step, v_.r.data(), lanes_at(&v_.r[at]));
      put_lanes(&v_.r[at], r);
      squares += r * r;
    }
    return sum_of<Value>(squares);
  }

  // What the step alpha would have changed in the next backward sweep.
  void step(std::int64_t group, Value alpha) {
    for (int step = 0; step < steps_; step++) {
      const std::size_t at = place(group, step);
      const Lanes<Value> t = lanes_at(&v_.t[at]);
      put_lanes(&v_.r[at], lanes_at(&v_.r[at]) - alpha * (t + lanes_at(&v_.s[at])));
      put_lanes(&v_.x[at], lanes_at(&v_.x[at]) + alpha * t);
    }
  }

 private:
  std::size_t place(std::int64_t group, int step) const {
    return static_cast<std::size_t>((group * steps_ + step) * kLanes<Value>);
  }

  int steps_;
  LevelView<Value> matrix_;
  Vectors<Value>& v_;
};

}  // namespace flowos::solve
