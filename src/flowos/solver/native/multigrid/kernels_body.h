// The kernels of kernels.h, compiled once for each kind of processor. Nothing that another
// file may have compiled for a lesser one is used here but types.

#include <cstdint>

#include "multigrid/kernels.h"
#include "simd/lane_vectors.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {
namespace {

// How the entries of a level are stored. less: acc - (entries of a step) * x.
struct Full {
  static constexpr bool kKeeps = true;
  template <int, class T>
  static Vector<T> less(const GroupEntries<T>& entries, int step, const T* x, Vector<T> acc) {
    return solve::less(entries, step, x, acc);
  }
};
struct Even {
  static constexpr bool kKeeps = false;
  template <int kAway, class T>
  static Vector<T> less(const GroupEntries<T>& entries, int step, const T* x, Vector<T> acc) {
    return acc - even_sum<kAway>(entries, step, x);
  }
};

template <class T>
Vector<T> inverse_at(const LevelView<T>& a, std::int64_t i) {
  return at(a.inverse + (a.alike ? 0 : i));
}

template <class Stored, class T>
void forward(const LevelView<T>& a, Groups groups, const T* r, T* y, double* ry) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    Vector<T> sum{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> kept = Stored::template less<kAhead>(lower, step, y, at(r + i));
      const Vector<T> result = kept * inverse_at(a, i);
      put(y + i, result);
      sum += kept * result;
    }
    ry[g] = sum_of<T>(sum);
  }
}

template <class Stored, class T>
void forward_update(const LevelView<T>& a, Groups groups, T alpha, const GradientVectors<T>& v,
                    double* rr, double* ry) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    Vector<T> squares{}, sum{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> now = at(v.r + i) - at(v.q + i) * alpha;
      put(v.r + i, now);
      squares += now * now;
      const Vector<T> kept = Stored::template less<kAhead>(lower, step, v.z, now);
      const Vector<T> result = kept * inverse_at(a, i);
      put(v.z + i, result);
      sum += kept * result;
    }
    rr[g] = sum_of<T>(squares);
    ry[g] = sum_of<T>(sum);
  }
}

template <class Stored, class T>
void restrict_within(const LevelView<T>& a, Groups groups, const Within& within, const T* y,
                     T* coarse) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> upper = a.upper[g];
    T* sums = coarse + g * within.coarse_steps * kLanes<T>;
    for (int step = 0; step < within.coarse_steps; ++step) {
      put(sums + step * kLanes<T>, Vector<T>{});
    }
    for (int step = 0; step < a.steps; ++step) {
      const Vector<T> residual = Stored::template less<kAhead>(upper, step, y, Vector<T>{});
      T* sum = sums + within.step[step] * kLanes<T>;
      put(sum, at(sum) + residual);
    }
  }
}

template <class Stored, class T>
void residual(const LevelView<T>& a, Groups groups, const T* y, T* residual) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> upper = a.upper[g];
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      put(residual + i, Stored::template less<kAhead>(upper, step, y, Vector<T>{}));
    }
  }
}

// r - L (y + c) = D y - L c, as r = (D + L) y.
template <class Stored, class T>
void backward(const LevelView<T>& a, Groups groups, const T* c, T* y) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    const GroupEntries<T> spread = a.spread[g], upper = a.upper[g];
    for (int step = a.steps - 1; step >= 0; --step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> lower = Stored::template less<0>(spread, step, c, Vector<T>{});
      const Vector<T> change = Stored::template less<-kAhead>(upper, step, y, lower);
      put(y + i, at(y + i) + change * inverse_at(a, i));
    }
  }
}

template <class Stored, class T>
void backward_keep(const LevelView<T>& a, Groups groups, const T* c, const GradientVectors<T>& v) {
  if constexpr (!Stored::kKeeps) {
    backward<Stored>(a, groups, c, v.z);
    return;
  }
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    const GroupEntries<T> spread = a.spread[g], upper = a.upper[g];
    for (int step = a.steps - 1; step >= 0; --step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> inverse = inverse_at(a, i);
      const Vector<T> lower = Stored::template less<0>(spread, step, c, Vector<T>{});
      const Vector<T> kept = at(v.z + i) + lower * inverse;
      const Vector<T> change = Stored::template less<-kAhead>(upper, step, v.z, Vector<T>{});
      put(v.u + i, kept);
      put(v.z + i, kept + change * inverse);
    }
  }
}

// -A z
template <class Stored, class T>
Vector<T> minus_product(const LevelView<T>& a, std::int64_t g, int step, std::int64_t i,
                        const GradientVectors<T>& v) {
  const Vector<T> inverse = inverse_at(a, i);
  if constexpr (Stored::kKeeps) {
    return Stored::template less<kAhead>(a.lower[g], step, v.z, -(at(v.u + i) / inverse));
  } else {
    const Vector<T> upper =
        Stored::template less<kAhead>(a.upper[g], step, v.z, -(at(v.z + i) / inverse));
    return Stored::template less<kAhead>(a.lower[g], step, v.z, upper);
  }
}

template <class Stored, class T>
void direction(const LevelView<T>& a, Groups groups, T alpha, T beta, const GradientVectors<T>& v,
               double* pq) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    Vector<T> sum{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> old_p = at(v.p + i);
      const Vector<T> p = at(v.z + i) + old_p * beta;
      const Vector<T> q = at(v.q + i) * beta - minus_product<Stored>(a, g, step, i, v);
      put(v.x + i, at(v.x + i) + old_p * alpha);
      put(v.p + i, p);
      put(v.q + i, q);
      sum += p * q;
    }
    pq[g] = sum_of<T>(sum);
  }
}

template <class T>
void dense(std::int64_t rows, const T* a, const T* r, T* y) {
  for (std::int64_t i = 0; i < rows; i += kLanes<T>) {
    Vector<T> sum{};
    for (std::int64_t j = 0; j < rows; ++j) sum += at(a + j * rows + i) * r[j];
    put(y + i, sum);
  }
}

template <class Stored, class T>
constexpr CoarseKernels<T> kernels_with(const CoarseKernels<T>* even) {
  return {.forward = forward<Stored, T>,
          .forward_update = forward_update<Stored, T>,
          .restrict_within = restrict_within<Stored, T>,
          .residual = residual<Stored, T>,
          .backward = backward<Stored, T>,
          .backward_keep = backward_keep<Stored, T>,
          .direction = direction<Stored, T>,
          .dense = dense<T>,
          .even = even};
}

template <class T>
constexpr CoarseKernels<T> kEvenLevels = kernels_with<Even, T>(nullptr);
template <class T>
constexpr CoarseKernels<T> kKernels = kernels_with<Full, T>(&kEvenLevels<T>);

}  // namespace
}  // namespace flowos::solve
