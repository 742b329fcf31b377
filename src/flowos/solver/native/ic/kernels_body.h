// The kernels of kernels.h, compiled once for each kind of processor.

#include <cstdint>

#include "ic/kernels.h"
#include "simd/lane_vectors.h"

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
void both_steps(const LevelView<T>& a, Groups groups, T alpha, T beta, const CholeskyVectors<T>& v,
                double* rr, double* pw, double* ww) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    backward_step(a, {g, g + 1}, alpha, beta, v, rr);
    forward_step(a, {g, g + 1}, v, pw, ww);
  }
}

template <class T>
void even_forward_solve(const LevelView<T>& a, Groups groups, T* y, double* sums) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    Vector<T> squares{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> inverse = at(a.inverse + i);
      const Vector<T> now = (at(y + i) - even_sum<kAhead>(lower, step, y)) * inverse;
      put(y + i, now);
      squares += now * now / inverse;
    }
    sums[g] = sum_of<T>(squares);
  }
}

template <class T>
void even_backward_solve(const LevelView<T>& a, Groups groups, T* y) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    const GroupEntries<T> upper = a.upper[g];
    for (int step = a.steps - 1; step >= 0; --step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      put(y + i, at(y + i) - even_sum<-kAhead>(upper, step, y) * at(a.inverse + i));
    }
  }
}

template <class T>
void even_backward_step(const LevelView<T>& a, Groups groups, T alpha, T beta,
                        const CholeskyVectors<T>& v, double* rr) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    const GroupEntries<T> upper = a.upper[g];
    Vector<T> squares{};
    for (int step = a.steps - 1; step >= 0; --step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> t = at(v.t + i), inverse = at(a.inverse + i);
      const Vector<T> r = at(v.r + i) - (t + at(v.s + i)) * alpha;
      const Vector<T> p = r + at(v.p + i) * beta;
      put(v.r + i, r);
      put(v.p + i, p);
      put(v.x + i, at(v.x + i) + t * alpha);
      put(v.t + i, p - even_sum<-kAhead>(upper, step, v.t) * inverse);
      squares += r * r / inverse;
    }
    rr[g] = sum_of<T>(squares);
  }
}

template <class T>
void even_forward_step(const LevelView<T>& a, Groups groups, const CholeskyVectors<T>& v,
                       double* pw, double* ww) {
  const T diagonal = v.diagonal;
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    Vector<T> with_p{}, squares{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> p = at(v.p + i), t = at(v.t + i), inverse = at(a.inverse + i);
      const Vector<T> from = p + (inverse * diagonal - T(2)) * t;
      const Vector<T> s = from - even_sum<kAhead>(lower, step, v.s) * inverse;
      put(v.s + i, s);
      const Vector<T> w = t + s, scaled = w / inverse;
      with_p += p * scaled;
      squares += w * scaled;
    }
    pw[g] = sum_of<T>(with_p);
    ww[g] = sum_of<T>(squares);
  }
}

template <class T>
void even_both_steps(const LevelView<T>& a, Groups groups, T alpha, T beta,
                     const CholeskyVectors<T>& v, double* rr, double* pw, double* ww) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    even_backward_step(a, {g, g + 1}, alpha, beta, v, rr);
    even_forward_step(a, {g, g + 1}, v, pw, ww);
  }
}

template <class T>
constexpr CholeskyKernels<T> kEvenKernels{.forward = even_forward_solve<T>,
                                          .backward = even_backward_solve<T>,
                                          .backward_step = even_backward_step<T>,
                                          .forward_step = even_forward_step<T>,
                                          .both_steps = even_both_steps<T>};

template <class T>
constexpr CholeskyKernels<T> kCholeskyKernels{.forward = forward_solve<T>,
                                              .backward = backward_solve<T>,
                                              .backward_step = backward_step<T>,
                                              .forward_step = forward_step<T>,
                                              .both_steps = both_steps<T>,
                                              .even = &kEvenKernels<T>};

}  // namespace
}  // namespace flowos::solve
