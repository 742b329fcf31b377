// The kernels of coarse_kernels.h, compiled once for each kind of processor. Nothing that another
// file may have compiled for a lesser one is used here but types.

#include <cstdint>

#include "coarse_kernels.h"
#include "coarse_level.h"
#include "lane_vectors.h"

namespace flowos::solve {
namespace {

template <class T>
void forward(const LevelView<T>& a, Groups groups, const T* r, T* y) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      put(y + i, less(lower, step, y, at(r + i)) * at(a.inverse + i));
    }
  }
}

template <class T>
void forward_update(const LevelView<T>& a, Groups groups, T alpha, const T* p, const T* q, T* x,
                    T* r, T* y, double* sums) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    Vector<T> rr{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> now = at(r + i) - at(q + i) * alpha;
      rr += now * now;
      put(r + i, now);
      put(x + i, at(x + i) + at(p + i) * alpha);
      put(y + i, less(lower, step, y, now) * at(a.inverse + i));
    }
    sums[g] = sum_of<T>(rr);
  }
}

template <class T>
void restrict_within(const LevelView<T>& a, Groups groups, const Within& within, const T* y,
                     T* coarse) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> upper = a.upper[g];
    T* sums = coarse + g * within.coarse_steps * kLanes<T>;
    for (int step = 0; step < within.coarse_steps; ++step) {
      put(sums + step * kLanes<T>, Vector<T>{});
    }
    for (int step = 0; step < a.steps; ++step) {
      const Vector<T> residual = less(upper, step, y, Vector<T>{});
      T* sum = sums + within.step[step] * kLanes<T>;
      put(sum, at(sum) + residual);
    }
  }
}

template <class T>
void residual(const LevelView<T>& a, Groups groups, const T* y, T* residual) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> upper = a.upper[g];
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      put(residual + i, less(upper, step, y, Vector<T>{}));
    }
  }
}

template <class T>
void prolong_within(const LevelView<T>& a, Groups groups, const Within& within, const T* coarse,
                    T* y) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const T* from = coarse + g * within.coarse_steps * kLanes<T>;
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      put(y + i, at(y + i) + at(from + within.step[step] * kLanes<T>));
    }
  }
}

template <class T>
void backward(const LevelView<T>& a, Groups groups, const T* r, T* y) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    const GroupEntries<T> lower = a.lower[g], upper = a.upper[g];
    for (int step = a.steps - 1; step >= 0; --step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> kept = less(lower, step, y, at(r + i));
      put(y + i, less(upper, step, y, kept) * at(a.inverse + i));
    }
  }
}

template <class T>
void backward_keep(const LevelView<T>& a, Groups groups, const T* r, T* y, T* v, double* sums) {
  for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
    const GroupEntries<T> lower = a.lower[g], upper = a.upper[g];
    Vector<T> ry{};
    for (int step = a.steps - 1; step >= 0; --step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      const Vector<T> now = at(r + i);
      const Vector<T> kept = less(lower, step, y, now);
      const Vector<T> result = less(upper, step, y, kept) * at(a.inverse + i);
      put(v + i, kept);
      put(y + i, result);
      ry += now * result;
    }
    sums[g] = sum_of<T>(ry);
  }
}

template <class T>
void direction(const LevelView<T>& a, Groups groups, const T* z, const T* v, T beta, T* p, T* q,
               double* sums) {
  for (std::int64_t g = groups.first; g < groups.past; ++g) {
    const GroupEntries<T> lower = a.lower[g];
    Vector<T> pq{};
    for (int step = 0; step < a.steps; ++step) {
      const std::int64_t i = (g * a.steps + step) * kLanes<T>;
      // less() takes L z away: so all is done with the signs turned.
      const Vector<T> az = -less(lower, step, z, -at(v + i));
      const Vector<T> new_p = at(z + i) + at(p + i) * beta;
      const Vector<T> new_q = az + at(q + i) * beta;
      put(p + i, new_p);
      put(q + i, new_q);
      pq += new_p * new_q;
    }
    sums[g] = sum_of<T>(pq);
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

template <class T>
constexpr CoarseKernels<T> kKernels{.forward = forward<T>,
                                    .forward_update = forward_update<T>,
                                    .restrict_within = restrict_within<T>,
                                    .residual = residual<T>,
                                    .prolong_within = prolong_within<T>,
                                    .backward = backward<T>,
                                    .backward_keep = backward_keep<T>,
                                    .direction = direction<T>,
                                    .dense = dense<T>};

}  // namespace
}  // namespace flowos::solve
