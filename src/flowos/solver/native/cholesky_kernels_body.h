// The kernels of cholesky_kernels.h, compiled once for each kind of processor.

#include <cstdint>

#include "cholesky_kernels.h"
#include "lane_vectors.h"

namespace flowos::solve {
namespace {

template <class T>
void forward_solve(const LevelView<T>& a, Groups groups, T* y, double* sums) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    Vector<T> squares{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> now = less(lower, step, y, at(y + i));
      put(y + i, now);
      squares += now * now;
    }
    sums[g] = sum_of<T>(squares);
  }
}

template <class T>
void backward_solve(const LevelView<T>& a, Groups groups, T* y) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    const GroupEntries<T> upper = a.upper[g];
    for (int step = a.steps - 1; step >= 0; --step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      put(y + i, less(upper, step, y, at(y + i)));
    }
  }
}

template <class T>
void backward_step(const LevelView<T>& a, Groups groups, T alpha, T beta,
                   const CholeskyVectors<T>& v, double* rr) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    const GroupEntries<T> upper = a.upper[g];
    Vector<T> squares{};
    for (int step = a.steps - 1; step >= 0; --step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> t = at(v.t + i);
      const Vector<T> r = at(v.r + i) - (t + at(v.s + i)) * alpha;
      const Vector<T> p = r + at(v.p + i) * beta;
      put(v.r + i, r);
      put(v.p + i, p);
      put(v.x + i, at(v.x + i) + t * alpha);
      put(v.t + i, less(upper, step, v.t, p));
      squares += r * r;
    }
    rr[g] = sum_of<T>(squares);
  }
}

template <class T>
void forward_step(const LevelView<T>& a, Groups groups, const CholeskyVectors<T>& v, double* pw,
                  double* ww) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    Vector<T> with_p{}, squares{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> p = at(v.p + i), t = at(v.t + i);
      const Vector<T> s = less(lower, step, v.s, p + at(v.middle + i) * t);
      put(v.s + i, s);
      const Vector<T> w = t + s;
      with_p += p * w;
      squares += w * w;
    }
    pw[g] = sum_of<T>(with_p);
    ww[g] = sum_of<T>(squares);
  }
}

template <class T>
constexpr CholeskyKernels<T> kCholeskyKernels{.forward = forward_solve<T>,
                                              .backward = backward_solve<T>,
                                              .backward_step = backward_step<T>,
                                              .forward_step = forward_step<T>};

}  // namespace
}  // namespace flowos::solve
