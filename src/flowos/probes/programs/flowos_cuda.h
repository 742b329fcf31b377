/* Memory of a GPU for messages, through NVIDIA's driver: opened where there is one, so that nothing
 * of CUDA is needed to compile. A function that fails leaves the reason in `fm_cuda_fault`. */
#ifndef FLOWOS_CUDA_H
#define FLOWOS_CUDA_H

#include <dlfcn.h>
#include <string.h>

#include "flowos_measure.h"

typedef unsigned long long FmDevicePointer;

static const char *fm_cuda_fault = "";

static struct {
  int (*init)(unsigned);
  int (*count)(int *);
  int (*device)(int *, int);
  int (*retain)(void **, int);
  int (*set_current)(void *);
  int (*allocate)(FmDevicePointer *, size_t);
  int (*to_device)(FmDevicePointer, const void *, size_t);
  int (*to_host)(void *, FmDevicePointer, size_t);
} fm_cuda;

static inline int fm_cuda_fails(const char *why) {
  fm_cuda_fault = why;
  return 0;
}

static inline int fm_cuda_open(void) {
  const struct {
    const char *name;
    void *to;
  } functions[] = {
      {"cuInit", &fm_cuda.init},
      {"cuDeviceGetCount", &fm_cuda.count},
      {"cuDeviceGet", &fm_cuda.device},
      {"cuDevicePrimaryCtxRetain", &fm_cuda.retain},
      {"cuCtxSetCurrent", &fm_cuda.set_current},
      {"cuMemAlloc_v2", &fm_cuda.allocate},
      {"cuMemcpyHtoD_v2", &fm_cuda.to_device},
      {"cuMemcpyDtoH_v2", &fm_cuda.to_host},
  };
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return fm_cuda_fails("the driver of NVIDIA, libcuda.so.1, does not open");
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *const found = dlsym(library, functions[i].name);
    if (!found) return fm_cuda_fails("libcuda.so.1 lacks a function of CUDA 7 or newer");
    memcpy(functions[i].to, &found, sizeof found);
  }
  return 1;
}

/* The number of this process among those of its node, as the one that started it says. */
static inline int fm_local_rank(void) {
  const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                               "MPI_LOCALRANKID", "SLURM_LOCALID"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (getenv(names[i])) return atoi(getenv(names[i]));
  return 0;
}

/* Takes the GPU of this local rank, in turns if there are fewer: its number, or -1. Before
 * MPI_Init, as some MPIs look there for the context. */
static inline int fm_cuda_take(void) {
  int count = 0, device = 0;
  void *context = NULL;
  if (!fm_cuda_open()) return -1;
  if (fm_cuda.init(0) || fm_cuda.count(&count) || count < 1) {
    fm_cuda_fails("the driver shows no GPU");
    return -1;
  }
  const int number = fm_local_rank() % count;
  if (fm_cuda.device(&device, number) || fm_cuda.retain(&context, device) ||
      fm_cuda.set_current(context)) {
    fm_cuda_fails("the GPU cannot be used");
    return -1;
  }
  return number;
}

static inline void *fm_cuda_memory(size_t bytes) {
  FmDevicePointer at = 0;
  if (fm_cuda.allocate(&at, bytes)) fm_fail("no memory on the GPU for the messages");
  return (void *)(size_t)at;
}

static inline void fm_cuda_put(void *device, const void *host, size_t bytes) {
  if (fm_cuda.to_device((FmDevicePointer)(size_t)device, host, bytes))
    fm_fail("the messages cannot be written to the GPU");
}

static inline void fm_cuda_get(void *host, const void *device, size_t bytes) {
  if (fm_cuda.to_host(host, (FmDevicePointer)(size_t)device, bytes))
    fm_fail("the messages cannot be read from the GPU");
}

/* Does this MPI say that it takes pointers to memory of CUDA? */
static inline int fm_mpi_takes_cuda(void) {
  int (*open_mpi)(void) = NULL, (*mpich)(int, int *) = NULL, is = 0;
  void *const known = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
  void *const other = dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
  memcpy(&open_mpi, &known, sizeof known);
  memcpy(&mpich, &other, sizeof other);
  if (open_mpi) return open_mpi();
  return mpich && mpich(0 /* MPIX_GPU_SUPPORT_CUDA */, &is) == 0 && is;
}

#endif
