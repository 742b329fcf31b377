// What StarPU takes for empty tasks. _empty_tasks.py compiles and runs it.
// usage: _starpu TASKS RUNS      one line a run: seconds of all tasks side by side, and of a chain
// Exit 1: a task did not run. Exit 77: StarPU has no worker here.
//
// Tasks, and what those of the chain wait for, are made before the clock starts.

#include <starpu.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_int ran;

static void nothing(void* buffers[], void* argument) {
  (void)buffers;
  (void)argument;
  atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
}

static struct starpu_codelet empty = {.cpu_funcs = {nothing}, .nbuffers = 0};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double run(struct starpu_task* tasks, int count, int chain) {
  for (int i = 0; i < count; i++) {
    starpu_task_init(&tasks[i]);
    tasks[i].cl = &empty;
    tasks[i].destroy = 0;
    struct starpu_task* before = &tasks[i - (i > 0)];
    if (chain && i > 0) starpu_task_declare_deps_array(&tasks[i], 1, &before);
  }
  atomic_store(&ran, 0);
  const double began = now();
  for (int i = 0; i < count; i++)
    if (starpu_task_submit(&tasks[i]) != 0) exit(1);
  starpu_task_wait_for_all();
  const double took = now() - began;
  for (int i = 0; i < count; i++) starpu_task_clean(&tasks[i]);
  if (atomic_load(&ran) != count) exit(1);
  return took;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int count = atoi(argv[1]), runs = atoi(argv[2]);
  struct starpu_task* tasks = calloc((size_t)count, sizeof *tasks);
  if (tasks == NULL || starpu_init(NULL) != 0) return 77;
  run(tasks, count, 0);
  run(tasks, count, 1);
  for (int i = 0; i < runs; i++) {
    const double wide = run(tasks, count, 0);
    printf("%.9f %.9f\n", wide, run(tasks, count, 1));
  }
  starpu_shutdown();
  free(tasks);
  return 0;
}
