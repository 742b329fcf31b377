/* Memory of a GPU for messages, through NVIDIA's driver: opened where there is one, so that nothing
 * of CUDA is needed to compile. A function that fails leaves the reason in `fm_cuda_fault`. */
#ifndef FLOWOS_CUDA_H
#define FLOWOS_CUDA_H

#include <dlfcn.h>
#include <string.h>

#include "flowos_measure.h"

static const char *fm_cuda_fault = "";

/* CUdeviceptr is as wide as a pointer. */
static struct {
  int (*init)(unsigned);
  int (*count)(int *);
  int (*device)(int *, int);
  int (*retain)(void **, int);
  int (*set_current)(void *);
  int (*allocate)(void **, size_t);
  int (*to_device)(void *, const void *, size_t);
  int (*to_host)(void *, const void *, size_t);
} fm_cuda;

static inline int fm_cuda_fails(const char *why) {
  fm_cuda_fault = why;
  return 0;
}

/* Sets the pointer to a function at `to`. */
static inline int fm_find(void *library, const char *name, void *to) {
  void *const found = dlsym(library, name);
  memcpy(to, (const void *)&found, sizeof found);
  return found != NULL;
}

static inline int fm_cuda_open(void) {
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return fm_cuda_fails("the driver of NVIDIA, libcuda.so.1, does not open");
  const int found = fm_find(library, "cuInit", (void *)&fm_cuda.init) &&
                    fm_find(library, "cuDeviceGetCount", (void *)&fm_cuda.count) &&
                    fm_find(library, "cuDeviceGet", (void *)&fm_cuda.device) &&
                    fm_find(library, "cuDevicePrimaryCtxRetain", (void *)&fm_cuda.retain) &&
                    fm_find(library, "cuCtxSetCurrent", (void *)&fm_cuda.set_current) &&
                    fm_find(library, "cuMemAlloc_v2", (void *)&fm_cuda.allocate) &&
                    fm_find(library, "cuMemcpyHtoD_v2", (void *)&fm_cuda.to_device) &&
                    fm_find(library, "cuMemcpyDtoH_v2", (void *)&fm_cuda.to_host);
  return found || fm_cuda_fails("libcuda.so.1 lacks a function of CUDA 7 or newer");
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
  void *at = NULL;
  if (fm_cuda.allocate(&at, bytes)) fm_fail("mpi_pairs: no memory on the GPU for the messages");
  return at;
}

static inline void fm_cuda_put(void *device, const void *host, size_t bytes) {
  if (fm_cuda.to_device(device, host, bytes))
    fm_fail("mpi_pairs: the messages cannot be written to the GPU");
}

static inline void fm_cuda_get(void *host, const void *device, size_t bytes) {
  if (fm_cuda.to_host(host, device, bytes))
    fm_fail("mpi_pairs: the messages cannot be read from the GPU");
}

/* Does this MPI say that it takes pointers to memory of CUDA? */
static inline int fm_mpi_takes_cuda(void) {
  int (*takes)(void) = NULL, (*supports)(int, int *) = NULL, is = 0;
  if (fm_find(RTLD_DEFAULT, "MPIX_Query_cuda_support", (void *)&takes)) return takes();
  if (!fm_find(RTLD_DEFAULT, "MPIX_GPU_query_support", (void *)&supports)) return 0;
  return supports(0 /* MPIX_GPU_SUPPORT_CUDA */, &is) == 0 && is;
}

#endif
