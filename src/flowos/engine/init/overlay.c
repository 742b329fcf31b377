#define _GNU_SOURCE
#include "overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "run_folder.h"

#define OVERLAY_ROOT "overlay-root"

enum { OWN_FAILURE = 125, IS_FOLDER = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static bool write_text(const char* file, const char* text) {
  int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = (ssize_t)strlen(text);
  const bool good = write(fd, text, (size_t)size) == size;
  close(fd);
  return good;
}

/* Namespaces with no user but ours, under our own numbers. */
static bool own_namespaces(void) {
  char users[64];
  char groups[64];
  snprintf(users, sizeof users, "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
  snprintf(groups, sizeof groups, "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_text("/proc/self/setgroups", "deny") &&
         write_text("/proc/self/uid_map", users) && write_text("/proc/self/gid_map", groups);
}

/* Flags that the mount below has already cannot be taken away without being root there. */
static bool bind_read_only(const char* from, const char* to) {
  struct statvfs seen;
  if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) != 0 || statvfs(to, &seen) != 0) return false;
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
  if ((seen.f_flag & ST_NOEXEC) != 0) flags |= MS_NOEXEC;
  return mount(NULL, to, NULL, flags, NULL) == 0;
}

/* By descriptors: a name may hold what overlayfs takes for an end. */
static bool lay_over(const char* points, const char* image, const char* to) {
  char lowers[96];
  int upper = open(points, IS_FOLDER);
  int lower = open(image, IS_FOLDER);
  snprintf(lowers, sizeof lowers, "lowerdir=/proc/self/fd/%d:/proc/self/fd/%d", upper, lower);
  const bool good = upper >= 0 && lower >= 0 &&
                    mount("overlay", to, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, lowers) == 0;
  const int error = errno;
  if (upper >= 0) close(upper);
  if (lower >= 0) close(lower);
  errno = error;
  return good;
}

static bool make_folder(const char* path, mode_t mode) {
  return (mkdir(path, mode) == 0 || errno == EEXIST) && chmod(path, mode) == 0;
}

static bool make_file(const char* path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  return fd >= 0 && close(fd) == 0;
}

/* An empty place in memory over our folder, which still names the image. */
static bool enter_memory(const char* dir) {
  char image[PATH_MAX];
  const ssize_t size = readlink("image", image, sizeof image - 1);
  if (size < 0) return false;
  image[size] = '\0';
  return mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") == 0 && chdir(dir) == 0 &&
         symlink(image, "image") == 0 && make_folder(OVERLAY_ROOT, 0755) &&
         make_folder("points", 0755);
}

static bool do_record(const char* record) {
  char points[PATH_MAX];
  char image[PATH_MAX];
  char root[PATH_MAX];
  char* path = NULL;
  const mode_t mode = (mode_t)strtoul(record + 1, &path, 8);
  path = record[0] == 'd' ? path + 1 : (char*)record + 1;
  if (strlen(path) + sizeof OVERLAY_ROOT "/" >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return false;
  }
  snprintf(points, sizeof points, "points/%s", path);
  snprintf(image, sizeof image, "image/%s", path);
  snprintf(root, sizeof root, OVERLAY_ROOT "/%s", path);
  switch (record[0]) {
    case 'd':
      return make_folder(points, mode);
    case 'f':
      return make_file(points);
    case 'o':
      return lay_over(points, image, root);
    default:
      return bind_read_only(image, root);
  }
}

static bool do_records(const char* records, size_t size) {
  for (const char* r = records; r < records + size; r += strlen(r) + 1)
    if (!do_record(r)) return false;
  return true;
}

static int failed(const char* what) {
  fprintf(stderr, "flowos-init: %s: %s\n", what, strerror(errno));
  return OWN_FAILURE;
}

int enter_overlay(const char* dir, char** argv) {
  size_t size = 0;
  if (chdir(dir) != 0) return failed(dir);
  char* records = read_file(AT_FDCWD, "mounts", &size);
  if (records == NULL) return failed("mounts");
  if (!own_namespaces()) return failed("no user namespace for mount points");
  if (!enter_memory(dir) || !bind_read_only("image", OVERLAY_ROOT) || !do_records(records, size))
    return failed("mount points cannot be laid over the image");
  free(records);
  if (chdir("/") != 0) return failed("/");
  execvp(argv[0], argv);
  return failed(argv[0]);
}
