#pragma once

namespace flowos::solve {

// Sweeps over all colours by an executor (see threads/thread_executor.h). What a sweep does to a
// colour reads the lines of `vector` that it wrote for the colours before. No other colour reads
// those of the last: they need not be exchanged.

template <class Executor, class T, class Work>
void forward(Executor& executor, T* vector, const Work& work) {
  const int last = executor.colours() - 1;
  for (int colour = 0; colour < last; ++colour) executor.turn(colour, vector, work);
  executor.each(last, last + 1, work);
}

template <class Executor, class T, class Work>
void backward(Executor& executor, T* vector, const Work& work) {
  for (int colour = executor.colours() - 1; colour > 0; --colour) {
    executor.turn(colour, vector, work);
  }
  executor.each(0, 1, work);
}

// A backward sweep of t and then a forward one of s. `both` does both to the first colour, whose
// rows depend on rows of their own block only: it is still in the cache.
template <class Executor, class T, class Back, class Both, class Forth>
void back_and_forth(Executor& executor, T* t, T* s, const Back& back, const Both& both,
                    const Forth& forth) {
  const int last = executor.colours() - 1;
  for (int colour = last; colour > 0; --colour) executor.turn(colour, t, back);
  if (last > 0) {
    executor.turn(0, s, both);
    for (int colour = 1; colour < last; ++colour) executor.turn(colour, s, forth);
    executor.each(last, last + 1, forth);
  } else {
    executor.each(0, 1, both);
  }
}

}  // namespace flowos::solve
