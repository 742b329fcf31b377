#pragma once

// Lanes as vectors of 64 bytes, for kernels that are compiled once for each kind of processor: all
// of it lies in each file alone, as another may have compiled it for a lesser one.

#include <cstddef>
#include <cstdint>

#include "simd/even_lanes.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {
namespace {

template <class T>
struct LaneVector;
template <>
struct LaneVector<float> {
  typedef float type __attribute__((vector_size(64), may_alias));
};
template <>
struct LaneVector<double> {
  typedef double type __attribute__((vector_size(64), may_alias));
};
template <class T>
using Vector = typename LaneVector<T>::type;

template <class T>
inline Vector<T> at(const T* from) {
  return *reinterpret_cast<const Vector<T>*>(from);
}

template <class T>
inline void put(T* to, const Vector<T>& value) {
  *reinterpret_cast<Vector<T>*>(to) = value;
}

template <class T>
inline double sum_of(const Vector<T>& lanes) {
  double sum = 0;
  for (int lane = 0; lane < kLanes<T>; ++lane) sum += static_cast<double>(lanes[lane]);
  return sum;
}

template <class T>
inline Vector<T> gathered(const T* from, const std::int32_t* places) {
  Vector<T> result{};
#pragma GCC unroll 16
  for (int lane = 0; lane < kLanes<T>; ++lane) result[lane] = from[places[lane]];
  return result;
}

// acc - (entries of a step) * x
template <class T>
inline Vector<T> less(const GroupEntries<T>& entries, int step, const T* x, Vector<T> acc) {
  const std::int32_t past = entries.starts[step + 1];
  for (std::int32_t e = entries.starts[step]; e < past; ++e) {
    const std::int32_t code = entries.codes[e];
    const Vector<T> factor = code >= 0 ? at(x + code) : gathered(x, entries.indices + ~code);
    acc -= at(entries.values + static_cast<std::ptrdiff_t>(e) * kLanes<T>) * factor;
  }
  return acc;
}

constexpr int kAhead = kCodesAround;

// The sum of (entries of a step) * x, where an entry has one value. What other groups have for the
// entries kAway after these (before, if negative; 0: none) is called for: no processor guesses
// where it lies.
template <int kAway, class T>
inline Vector<T> even_sum(const GroupEntries<T>& entries, int step, const T* x) {
  const std::int32_t past = entries.starts[step + 1];
  Vector<T> sum{};
  for (std::int32_t e = entries.starts[step]; e < past; ++e) {
    const std::int32_t code = entries.codes[e];
    if constexpr (kAway != 0) __builtin_prefetch(x + entries.codes[e + kAway]);
    const Vector<T> factor = code >= 0 ? at(x + code) : gathered(x, entries.indices + ~code);
    sum += factor * entries.values[e];
  }
  return sum;
}

}  // namespace
}  // namespace flowos::solve
