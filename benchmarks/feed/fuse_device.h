#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "words.h"

namespace flowos::bench {

// A request of the kernel's FUSE client, and the structure that follows its head.
struct Request {
  fuse_in_header head;
  std::array<std::byte, 8192> rest;  // the minimum size that the kernel accepts

  template <typename Structure>
  Structure as() const {
    Structure found;
    std::memcpy(&found, rest.data(), sizeof found);
    return found;
  }
  const char* name(std::size_t after = 0) const {
    return reinterpret_cast<const char*>(rest.data() + after);
  }
};

// The kernel's FUSE device, used without libfuse: that of Debian 12 (3.14.0) never sets the flag
// for parallel lookups in a folder, so that the kernel does them one by one.
class FuseDevice {
 public:
  // Mounts by fusermount3, which also unmounts when this process ends. Exits if it cannot.
  FuseDevice(const std::string& mountpoint, bool writable) {
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) give_up("slowfs: no socket pair");
    const pid_t child = fork();
    if (child == 0) {
      close(pair[0]);
      setenv("_FUSE_COMMFD", std::to_string(pair[1]).c_str(), 1);
      const std::string how = writable ? "rw" : "ro";
      const std::string options = how + ",nosuid,nodev,fsname=slowfs,auto_unmount";
      execlp("fusermount3", "fusermount3", "-o", options.c_str(), "--", mountpoint.c_str(),
             nullptr);
      give_up("slowfs: there is no fusermount3: apt install fuse3");
    }
    close(pair[1]);
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);  // stays open: fusermount3 watches for its end
    fd_ = received(pair[0]);
    if (fd_ < 0) {
      waitpid(child, nullptr, 0);  // it has printed the reason
      std::exit(1);
    }
  }

  // Returns false once unmounted. Thread-safe.
  bool next(Request& request) const {
    while (true) {
      const std::array<iovec, 2> parts{
          {{&request.head, sizeof request.head}, {request.rest.data(), request.rest.size()}}};
      if (readv(fd_, parts.data(), parts.size()) >= 0) return true;
      if (errno != EINTR && errno != EAGAIN && errno != ENOENT) return false;
    }
  }

  // error 0: success, and `bytes` are the answer.
  void answer(std::uint64_t unique, int error, const void* bytes, std::size_t size) const {
    fuse_out_header head{};
    head.len = static_cast<std::uint32_t>(sizeof head + size);
    head.error = -error;
    head.unique = unique;
    const std::array<iovec, 2> parts{{{&head, sizeof head}, {const_cast<void*>(bytes), size}}};
    while (writev(fd_, parts.data(), parts.size()) < 0 && errno == EINTR) {
    }
  }
  void refuse(std::uint64_t unique, int error) const { answer(unique, error, nullptr, 0); }
  template <typename Structure>
  void answer(std::uint64_t unique, const Structure& structure) const {
    answer(unique, 0, &structure, sizeof structure);
  }

 private:
  static int received(int socket) {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0) return -1;
    const cmsghdr* found = CMSG_FIRSTHDR(&message);
    if (found == nullptr || found->cmsg_type != SCM_RIGHTS) return -1;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(found), sizeof fd);
    return fd;
  }

  int fd_ = -1;
};

}  // namespace flowos::bench
