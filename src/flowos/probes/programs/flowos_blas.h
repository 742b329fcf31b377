/* A BLAS library that is opened at run time: its functions, its threads, its kernels. */
#ifndef FLOWOS_BLAS_H
#define FLOWOS_BLAS_H

#include <dirent.h>
#include <dlfcn.h>

#include "flowos_clock.h"

enum { FM_MAX_KERNELS = 64 };

/* symbol: pattern of Fortran names, as {}_. core: kernels to be forced, or NULL. */
struct fm_blas {
  const char *library, *symbol, *family, *core;
  int cpus[FM_MAX_CPUS], threads;
};

/* Takes one of the options that say which library; others are left to the caller. */
static inline void fm_blas_option(struct fm_blas *blas, const char *name, const char *value) {
  if (!strcmp(name, "--library")) blas->library = value;
  if (!strcmp(name, "--symbol")) blas->symbol = value;
  if (!strcmp(name, "--family")) blas->family = value;
  if (!strcmp(name, "--core")) blas->core = value;
  if (!strcmp(name, "--cpus")) blas->threads = fm_parse_cpus(value, blas->cpus);
}

static inline int fm_blas_is_asked(const struct fm_blas *blas) {
  return blas->library && blas->threads && strstr(blas->symbol, "{}");
}

/* The library's function of this Fortran name; NULL if it has none. */
static inline void *fm_fortran(const struct fm_blas *blas, void *library, const char *function) {
  const char *braces = strstr(blas->symbol, "{}");
  char name[200];
  snprintf(name, sizeof name, "%.*s%s%s", (int)(braces - blas->symbol), blas->symbol, function,
           braces + 2);
  return dlsym(library, name);
}

/* A list of sizes such as 128,1000; returns the count. */
static inline int fm_parse_sizes(const char *list, int64_t *sizes, int most) {
  const char *at = list;
  for (int count = 0; count < most; at++) {
    char *end;
    const long n = strtol(at, &end, 10);
    if (end == at || n < 1 || n > 2000000) fm_fail("--sizes %s: write it as 128,1000,4096", list);
    sizes[count++] = n;
    if (*end == '\0') return count;
    at = end;
  }
  fm_fail("--sizes: more than %d", most);
}

/* The library's function of this name, with the prefixes and suffixes that builds put around it. */
static inline void *fm_find(void *library, const char *name) {
  static const char *const around[][2] = {{"", ""},       {"", "64_"},       {"", "_64_"},
                                          {"scipy_", ""}, {"scipy_", "64_"}, {"scipy_", "_64_"}};
  for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
    char whole[200];
    snprintf(whole, sizeof whole, "%s%s%s", around[i][0], name, around[i][1]);
    void *found = dlsym(library, whole);
    if (found) return found;
  }
  return NULL;
}

/* dlsym gives data pointers; POSIX lets them be functions. */
#define FM_FUNCTION(result, name, library, ...) \
  result (*name)(__VA_ARGS__) = (result(*)(__VA_ARGS__))fm_find(library, #name)

static inline void fm_set_threads(void *library, int threads) {
  FM_FUNCTION(void, openblas_set_num_threads, library, int);
  FM_FUNCTION(void, bli_thread_set_num_threads, library, int64_t);
  FM_FUNCTION(void, MKL_Set_Num_Threads, library, int);
  if (openblas_set_num_threads) openblas_set_num_threads(threads);
  if (bli_thread_set_num_threads) bli_thread_set_num_threads(threads);
  if (MKL_Set_Num_Threads) MKL_Set_Num_Threads(threads);
}

/* BLIS 0.9 takes numbers only, and they differ between versions: ask for the name of each. */
static inline int fm_blis_number(void *library, const char *core) {
  FM_FUNCTION(const char *, bli_arch_string, library, int);
  for (int number = 0; bli_arch_string && number < FM_MAX_KERNELS; number++) {
    const char *name = bli_arch_string(number);
    if (!strcmp(name, core)) return number;
    if (!strcmp(name, "generic")) break; /* the last one */
  }
  return -1;
}

/* The variable that forces the kernels of a library of this family. */
static inline const char *fm_kernel_variable(const char *family) {
  if (!strcmp(family, "openblas")) return "OPENBLAS_CORETYPE";
  if (!strcmp(family, "blis")) return "BLIS_ARCH_TYPE";
  if (!strcmp(family, "mkl")) return "MKL_ENABLE_INSTRUCTIONS";
  return NULL;
}

/* Opens the library with the kernels asked for; OpenBLAS and MKL read the variable right then. */
static inline void *fm_open_blas(const struct fm_blas *blas) {
  const char *variable = fm_kernel_variable(blas->family);
  if (blas->core && !variable) fm_cannot("libraries of this family cannot be forced", "");
  if (blas->core) setenv(variable, blas->core, 1);
  void *library = dlopen(blas->library, RTLD_NOW | RTLD_GLOBAL);
  if (!library) fm_cannot(dlerror(), "reinstall the library, or leave it out");
  if (blas->core && !strcmp(blas->family, "blis")) {
    char number[16];
    snprintf(number, sizeof number, "%d", fm_blis_number(library, blas->core));
    if (number[0] == '-') fm_cannot("this BLIS does not know the kernels asked for", "");
    setenv(variable, number, 1);
  }
  return library;
}

struct fm_mkl_version {
  int major, minor, update;
  char *status, *build, *processor, *platform;
};

/* The kernels that the library chose, as it names them itself. */
static inline const char *fm_kernel_of(void *library) {
  static struct fm_mkl_version mkl;
  FM_FUNCTION(const char *, openblas_get_corename, library, void);
  FM_FUNCTION(int, bli_arch_query_id, library, void);
  FM_FUNCTION(const char *, bli_arch_string, library, int);
  FM_FUNCTION(void, mkl_get_version, library, struct fm_mkl_version *);
  if (openblas_get_corename) return openblas_get_corename();
  if (bli_arch_query_id && bli_arch_string) return bli_arch_string(bli_arch_query_id());
  if (mkl_get_version) mkl_get_version(&mkl);
  return mkl.processor ? mkl.processor : "unknown";
}

/* Notes: the kernels, and VARIABLE=VALUE if they were forced, by us or the environment. */
static inline void fm_describe_blas(const struct fm_blas *blas, void *library, char *notes,
                                    size_t room) {
  const char *variable = fm_kernel_variable(blas->family);
  const char *value = variable ? getenv(variable) : NULL;
  const int plain = value && !value[strcspn(value, "\"\\\n")];
  snprintf(notes, room, "\"kernel\": \"%s\", \"%s\": \"%s%s%s\"", fm_kernel_of(library),
           blas->core ? "forced_by" : "environment", plain ? variable : "", plain ? "=" : "",
           plain ? value : "");
}

/* Gives each of the library's threads a cpu of its own, where it keeps them between products; on a
 * busy machine Linux may leave two on one cpu for long. Those of BLIS live for one product only. */
static inline void fm_spread_threads(const struct fm_blas *blas) {
  static int threads[FM_MAX_CPUS];
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; tasks && (task = readdir(tasks));)
    if (task->d_name[0] != '.' && count < FM_MAX_CPUS) threads[count++] = atoi(task->d_name);
  if (tasks) closedir(tasks);
  for (int i = 0; count == blas->threads && i < count; i++)
    fm_keep_on(threads[i], &blas->cpus[i], 1);
}

#endif
