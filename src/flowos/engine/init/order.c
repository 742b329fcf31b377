#define _GNU_SOURCE
#include "order.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "counter.h"
#include "pump.h"
#include "run_folder.h"

enum { MAX_WORDS = 512, MAX_GROUPS = 256 };

/* How many words it takes; 0 if it is none. */
static int take_option(struct order* order, char** words) {
  if (strcmp(words[0], "--counter") == 0) {
    order->counter = true;
    return 1;
  }
  if (strcmp(words[0], "--copy") == 0) {
    if (words[1] == NULL || order->n_copies >= MAX_COPIES) return 0;
    order->copies[order->n_copies++] = words[1];
    return 2;
  }
  if (strcmp(words[0], "--share") == 0) {
    if (words[1] == NULL || words[2] == NULL || words[3] == NULL) return 0;
    if (order->n_shares >= MAX_SHARES) return 0;
    order->shares[order->n_shares++] = (struct share){words[1], words[2], words[3]};
    return 4;
  }
  order->seconds = strtod(words[0], NULL);
  return order->seconds > 0.0 ? 1 : 0;
}

/* The words behind the next --, which ends those before it; NULL if there is none. */
static char** behind_dashes(char** words) {
  while (*words != NULL && strcmp(*words, "--") != 0) words++;
  if (*words == NULL) return NULL;
  *words = NULL;
  return words + 1;
}

bool read_order(struct order* order, char** words) {
  while (*words != NULL && strcmp(*words, "--") != 0) {
    int taken = take_option(order, words);
    if (taken == 0) return false;
    words += taken;
  }
  order->qemu = behind_dashes(words);
  order->inner = order->qemu != NULL ? behind_dashes(order->qemu) : NULL;
  return order->inner != NULL && order->qemu[0] != NULL && order->inner[0] != NULL &&
         order->inner[1] != NULL;
}

const char* run_folder_of(const struct order* order) { return order->inner[1]; }

/* ---- QEMU's words ---- */

static char* text(const char* format, ...) {
  char* made = NULL;
  va_list values;
  va_start(values, format);
  if (vasprintf(&made, format, values) < 0) abort();
  va_end(values);
  return made;
}

/* A comma ends a value in QEMU's options, and two are one. */
static char* escaped(const char* value) {
  char* made = malloc(2 * strlen(value) + 1);
  char* to = made;
  if (made == NULL) abort();
  for (; *value != '\0'; *to++ = *value++)
    if (*value == ',') *to++ = ',';
  *to = '\0';
  return made;
}

static bool is_folder(const char* path) {
  struct stat seen;
  return stat(path, &seen) != 0 || S_ISDIR(seen.st_mode);
}

/* Of a file its folder is shared. */
static char* shared_folder(const char* source) {
  char* path = text("%s", source);
  char* name = strrchr(path, '/');
  if (!is_folder(source)) name[name == path ? 1 : 0] = '\0';
  return path;
}

/* Parameters of the kernel. Those of a person come last, and so have the last word. */
static char* with_counter(char* parameters) {
  long khz = counter_khz();
  return khz > 0 ? text("tsc_early_khz=%ld %s", khz, parameters) : parameters;
}

char** words_for_qemu(const struct order* order, const int* ports) {
  static char* words[MAX_WORDS];
  int n = 0;
  for (bool append = false; order->qemu[n] != NULL && n < MAX_WORDS / 4; n++) {
    words[n] = append && order->counter ? with_counter(order->qemu[n]) : order->qemu[n];
    append = strcmp(order->qemu[n], "-append") == 0;
  }
  words[n++] = "-pidfile"; /* names our folder too, by which it is known to be ours */
  words[n++] = text("%s/qemu.pid", run_folder_of(order));
  for (int port = CONTROL; port <= LAST_PORT; port++) {
    words[n++] = "-chardev";
    words[n++] = text("socket,id=c%d,fd=%d", port, ports[port]);
    words[n++] = "-device";
    words[n++] = text("virtserialport,nr=%d,chardev=c%d", port, port);
  }
  for (int i = 0; i < order->n_shares; i++) {
    bool read_only = strcmp(order->shares[i].mode, "ro") == 0;
    words[n++] = "-fsdev";
    words[n++] =
        text("local,id=s%d,path=%s,security_model=none,multidevs=remap%s", i,
             escaped(shared_folder(order->shares[i].source)), read_only ? ",readonly=on" : "");
    words[n++] = "-device";
    words[n++] = text("virtio-9p-pci,fsdev=s%d,mount_tag=s%d", i, i);
  }
  return words;
}

/* ---- the request ---- */

static void add(struct request* request, const char* field) {
  size_t size = strlen(field) + 1;
  char* larger = realloc(request->data, request->size + size);
  if (larger == NULL) abort();
  request->data = larger;
  memcpy(request->data + request->size, field, size);
  request->size += size;
}

static void add_number(struct request* request, long long number) {
  char field[32];
  snprintf(field, sizeof field, "%lld", number);
  add(request, field);
}

static void add_user(struct request* request) {
  gid_t groups[MAX_GROUPS];
  int n = getgroups(MAX_GROUPS, groups);
  add_number(request, getuid());
  add_number(request, getgid());
  add_number(request, n > 0 ? n : 0);
  for (int i = 0; i < n; i++) add_number(request, groups[i]);
}

struct request make_request(const struct order* order) {
  struct request request = {NULL, 0};
  struct timespec now;
  char name[256] = "";
  add_user(&request);
  clock_gettime(CLOCK_REALTIME, &now);
  add_number(&request, (long long)now.tv_sec);
  add_number(&request, now.tv_nsec);
  gethostname(name, sizeof name - 1);
  add(&request, name);
  add_number(&request, order->n_copies);
  for (int i = 0; i < order->n_copies; i++) {
    char* content = read_file(AT_FDCWD, order->copies[i], NULL);
    add(&request, order->copies[i]);
    add(&request, content != NULL ? content : "");
    free(content);
  }
  add_number(&request, order->n_shares);
  for (int i = 0; i < order->n_shares; i++) {
    const struct share* share = &order->shares[i];
    add(&request, share->target);
    add(&request, share->mode);
    add(&request, is_folder(share->source) ? "" : strrchr(share->source, '/') + 1);
  }
  int n = 0;
  while (order->inner[n] != NULL) n++;
  add_number(&request, n);
  for (int i = 0; i < n; i++) add(&request, order->inner[i]);
  return request;
}
