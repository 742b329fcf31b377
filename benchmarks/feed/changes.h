#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "fuse_device.h"

namespace flowos::bench {

// What a request changes in a folder of this machine; each returns 0 or an error.

inline int make_folder(int folder, const std::string& path, const fuse_mkdir_in& asked) {
  return mkdirat(folder, path.c_str(), asked.mode & ~asked.umask) != 0 ? errno : 0;
}

// Opens it, too.
inline int make_file(int folder, const std::string& path, const fuse_create_in& asked, int& made) {
  const int flags = static_cast<int>(asked.flags) | O_CREAT | O_CLOEXEC;
  made = openat(folder, path.c_str(), flags, asked.mode & ~asked.umask);
  return made < 0 ? errno : 0;
}

// Its times are left as they are.
inline int set_attributes(int folder, const std::string& path, const fuse_setattr_in& asked) {
  if ((asked.valid & FATTR_MODE) != 0 && fchmodat(folder, path.c_str(), asked.mode, 0) != 0) {
    return errno;
  }
  if ((asked.valid & FATTR_SIZE) == 0) return 0;
  const int file = openat(folder, path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = ftruncate(file, static_cast<off_t>(asked.size)) != 0 ? errno : 0;
  close(file);
  return error;
}

// How many bytes are `written`; they follow the head of the request.
inline int write_file(const Request& request, std::uint32_t& written) {
  const auto asked = request.as<fuse_write_in>();
  if (asked.size > request.rest.size() - sizeof asked) return EIO;
  const ssize_t put = pwrite(static_cast<int>(asked.fh), request.rest.data() + sizeof asked,
                             asked.size, static_cast<off_t>(asked.offset));
  if (put < 0) return errno;
  written = static_cast<std::uint32_t>(put);
  return 0;
}

inline fuse_kstatfs room_of(int folder, int& error) {
  struct statvfs found{};
  error = fstatvfs(folder, &found) != 0 ? errno : 0;
  fuse_kstatfs room{};
  room.blocks = found.f_blocks;
  room.bfree = found.f_bfree;
  room.bavail = found.f_bavail;
  room.files = found.f_files;
  room.ffree = found.f_ffree;
  room.bsize = static_cast<std::uint32_t>(found.f_bsize);
  room.frsize = static_cast<std::uint32_t>(found.f_frsize);
  room.namelen = static_cast<std::uint32_t>(found.f_namemax);
  return room;
}

}  // namespace flowos::bench
