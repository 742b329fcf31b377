// A read-only S3 server over a folder: GET and HEAD with Range, ListObjectsV2.
//
//   s3server [--delay-ms 1] [--mbit 0] FOLDER ADDRESS PORT
//
// The folder's folders are buckets, addressed by path (http://ADDRESS:PORT/BUCKET/KEY), without
// authentication. Each answer is delayed by `--delay-ms`. `--mbit` above 0: all answers share
// one link of that rate, for use without traffic shaping. Port 0: any free one.
//
// Prints a line of JSON with its port once it listens, and one with the bytes sent for each line
// of its standard input. Exits at the end of its standard input.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "http.h"
#include "link.h"
#include "words.h"

namespace {

namespace fs = std::filesystem;
using flowos::bench::Clock;
using flowos::bench::HttpRequest;
using flowos::bench::Link;

constexpr std::size_t kMostHead = 1 << 16;
constexpr std::int64_t kPiece = 1 << 16;
constexpr std::size_t kMostKeys = 1000;

struct Object {
  std::string key;
  std::uint64_t size;
  std::time_t changed;
};
using Objects = std::vector<Object>;

struct Server {
  std::string folder;
  std::chrono::nanoseconds delay;
  bool shaped;
  Link link;
  std::mutex lock;
  std::map<std::string, Objects> buckets;  // listed at the first request
};

std::string escaped_for_xml(const std::string& words) {
  std::string safe;
  for (const char sign : words) {
    switch (sign) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      default:
        safe += sign;
    }
  }
  return safe;
}

std::string in_time_format(std::time_t when, const char* format) {
  std::tm parts{};
  gmtime_r(&when, &parts);
  std::array<char, 64> words{};
  std::strftime(words.data(), words.size(), format, &parts);
  return words.data();
}

std::string tag_of(std::uint64_t size, std::time_t changed) {
  return "\"" + std::to_string(changed) + "-" + std::to_string(size) + "\"";
}

Objects listed(const fs::path& bucket) {
  Objects found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(bucket)) {
    struct stat file{};
    if (stat(entry.path().c_str(), &file) == 0 && S_ISREG(file.st_mode)) {
      found.push_back({entry.path().lexically_relative(bucket).string(),
                       static_cast<std::uint64_t>(file.st_size), file.st_mtime});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Object& one, const Object& other) { return one.key < other.key; });
  return found;
}

bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool answer(int connection, const std::string& status, const std::string& fields,
            std::string_view body) {
  return send_all(connection, "HTTP/1.1 " + status +
                                  "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
                                  fields + "\r\n" + std::string(body));
}

bool refuse(int connection, const std::string& status, const std::string& code) {
  return answer(connection, status, "Content-Type: application/xml\r\n",
                "<Error><Code>" + code + "</Code></Error>");
}

bool key_below(const Object& object, const std::string& key) { return object.key < key; }

// The smallest key above all keys with this prefix.
std::string beyond(std::string prefix) {
  ++prefix.back();
  return prefix;
}

std::string as_xml(const Object& object) {
  return "<Contents><Key>" + escaped_for_xml(object.key) + "</Key><LastModified>" +
         in_time_format(object.changed, "%Y-%m-%dT%H:%M:%S.000Z") + "</LastModified><ETag>" +
         tag_of(object.size, object.changed) + "</ETag><Size>" + std::to_string(object.size) +
         "</Size><StorageClass>STANDARD</StorageClass></Contents>";
}

struct Page {
  std::string keys, folders;  // as XML
  std::size_t count = 0;
  std::string last;
  bool more = false;
};

// The entries after a key; with a delimiter, keys that have it after the prefix appear once, up to
// the delimiter.
Page page_of(const Objects& objects, const std::string& prefix, const std::string& after,
             const std::string& delimiter) {
  Page page;
  const bool after_folder = !delimiter.empty() && after.ends_with(delimiter);
  auto object = std::lower_bound(objects.begin(), objects.end(),
                                 std::max(prefix, after_folder ? beyond(after) : after), key_below);
  while (object != objects.end() && object->key.starts_with(prefix)) {
    if (object->key == after) {
      ++object;
      continue;
    }
    page.more = page.count == kMostKeys;
    if (page.more) break;
    ++page.count;
    const std::size_t cut =
        delimiter.empty() ? std::string::npos : object->key.find(delimiter, prefix.size());
    if (cut == std::string::npos) {
      page.last = object->key;
      page.keys += as_xml(*object++);
    } else {
      page.last = object->key.substr(0, cut + delimiter.size());
      page.folders +=
          "<CommonPrefixes><Prefix>" + escaped_for_xml(page.last) + "</Prefix></CommonPrefixes>";
      object = std::lower_bound(object, objects.end(), beyond(page.last), key_below);
    }
  }
  return page;
}

// A page of the bucket's keys; the token is the last key or folder of the page before.
bool list_objects(Server& server, int connection, const HttpRequest& request,
                  const std::string& bucket) {
  const fs::path folder = fs::path(server.folder) / bucket;
  if (!fs::is_directory(folder)) return refuse(connection, "404 Not Found", "NoSuchBucket");
  const auto asked = [&request](const char* name) {
    const auto place = request.query.find(name);
    return place == request.query.end() ? std::string() : place->second;
  };
  std::unique_lock<std::mutex> hold(server.lock);
  const auto [place, fresh] = server.buckets.try_emplace(bucket);
  if (fresh) place->second = listed(folder);
  const Objects& objects = place->second;  // not modified afterwards
  hold.unlock();
  const std::string prefix = asked("prefix");
  const std::string after = std::max(asked("continuation-token"), asked("start-after"));
  const Page page = page_of(objects, prefix, after, asked("delimiter"));
  const std::string token =
      "<NextContinuationToken>" + escaped_for_xml(page.last) + "</NextContinuationToken>";
  return answer(connection, "200 OK", "Content-Type: application/xml\r\n",
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult "
                "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>" +
                    bucket + "</Name><Prefix>" + escaped_for_xml(prefix) + "</Prefix><KeyCount>" +
                    std::to_string(page.count) + "</KeyCount><MaxKeys>" +
                    std::to_string(kMostKeys) + "</MaxKeys><IsTruncated>" +
                    (page.more ? "true" : "false") + "</IsTruncated>" + (page.more ? token : "") +
                    page.keys + page.folders + "</ListBucketResult>");
}

bool send_piece_by_piece(Server& server, int connection, int file, std::int64_t first,
                         std::int64_t last) {
  off_t place = first;
  Clock::time_point due = Clock::now();
  while (place <= last) {
    const auto size = static_cast<std::size_t>(
        server.shaped ? std::min<std::int64_t>(kPiece, last + 1 - place) : last + 1 - place);
    const off_t end = place + static_cast<off_t>(size);
    due = server.link.carried(size, due);  // a piece is sent once the one before has arrived
    if (server.shaped) std::this_thread::sleep_until(due);
    while (place < end) {
      const ssize_t sent =
          sendfile(connection, file, &place, static_cast<std::size_t>(end - place));
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
    }
  }
  return true;
}

bool get_object(Server& server, int connection, const HttpRequest& request,
                const std::string& path) {
  const int file = open((server.folder + path).c_str(), O_RDONLY | O_CLOEXEC);
  struct stat found{};
  if (file < 0 || fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) {
    if (file >= 0) close(file);
    return refuse(connection, "404 Not Found", "NoSuchKey");
  }
  const auto field = request.fields.find("range");
  const bool partly = field != request.fields.end();
  const auto range = flowos::bench::range_of(partly ? field->second : "", found.st_size);
  if (!range) {
    close(file);
    return refuse(connection, "416 Range Not Satisfiable", "InvalidRange");
  }
  const auto [first, last] = *range;
  const std::string head =
      std::string("HTTP/1.1 ") + (partly ? "206 Partial Content" : "200 OK") +
      "\r\nContent-Length: " + std::to_string(last - first + 1) +
      "\r\nContent-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\nETag: " +
      tag_of(static_cast<std::uint64_t>(found.st_size), found.st_mtime) +
      "\r\nLast-Modified: " + in_time_format(found.st_mtime, "%a, %d %b %Y %H:%M:%S GMT") + "\r\n" +
      (partly ? "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                    std::to_string(found.st_size) + "\r\n"
              : "") +
      "\r\n";
  const bool body = request.method == "GET";
  const bool sent = send(connection, head.data(), head.size(),
                         MSG_NOSIGNAL | (body ? MSG_MORE : 0)) == static_cast<ssize_t>(head.size());
  const bool whole = sent && (!body || send_piece_by_piece(server, connection, file, first, last));
  close(file);
  return whole;
}

bool serve_request(Server& server, int connection, const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    refuse(connection, "405 Method Not Allowed", "MethodNotAllowed");
    return false;  // a body may follow, which is not supported
  }
  std::this_thread::sleep_until(Clock::now() + server.delay);
  std::string bucket = request.path.substr(std::min<std::size_t>(1, request.path.size()));
  while (!bucket.empty() && bucket.back() == '/') bucket.pop_back();
  if (request.path.find("/../") != std::string::npos) {
    return refuse(connection, "404 Not Found", "NoSuchKey");
  }
  if (bucket.find('/') == std::string::npos) {
    return list_objects(server, connection, request, bucket);
  }
  return get_object(server, connection, request, request.path);
}

// Reads a whole head; returns false if the connection was closed, or sends no valid head.
bool read_next(int connection, std::string& read, std::string& head) {
  std::array<char, 16384> some{};
  while (true) {
    const std::size_t end = read.find("\r\n\r\n");
    if (end != std::string::npos) {
      head = read.substr(0, end);
      read.erase(0, end + 4);
      return true;
    }
    const ssize_t got = recv(connection, some.data(), some.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || read.size() > kMostHead) return false;
    read.append(some.data(), static_cast<std::size_t>(got));
  }
}

void serve_connection(Server& server, int connection) {
  const int yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  std::string read, head;
  while (read_next(connection, read, head)) {
    const std::optional<HttpRequest> request = flowos::bench::read_head(head);
    if (!request || !serve_request(server, connection, *request)) break;
    const auto wish = request->fields.find("connection");
    if (wish != request->fields.end() && wish->second == "close") break;
  }
  close(connection);
}

int listening(const std::string& address, std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) {
    flowos::bench::give_up("s3server: '" + address + "' is no IPv4 address, such as 127.0.0.1");
  }
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  // NOLINTNEXTLINE(misc-include-cleaner): sys/socket.h brings them, from elsewhere
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(listener, 4096) != 0) {
    flowos::bench::give_up("s3server: cannot listen on " + address + ":" + std::to_string(port) +
                           ": " + std::strerror(errno));
  }
  socklen_t length = sizeof at;
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length);
  std::cout << "{\"port\": " << ntohs(at.sin_port) << "}\n" << std::flush;
  return listener;
}

}  // namespace

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(misc-include-cleaner): csignal brings it
  const flowos::bench::Words asked(count, words, {{"delay-ms", 1}, {"mbit", 0}}, 3,
                                   "s3server [--delay-ms 1] [--mbit 0] FOLDER ADDRESS PORT");
  if (!fs::is_directory(asked[0])) flowos::bench::give_up("s3server: no folder " + asked[0]);
  const double mbit = asked.number("mbit");
  // Not on the stack: threads of connections may outlive main.
  auto* server = new Server{
      asked[0], std::chrono::nanoseconds(static_cast<std::int64_t>(1e6 * asked.number("delay-ms"))),
      mbit > 0, {1e6 / 8 * mbit, std::chrono::nanoseconds(0)},
      {},       {}};
  const int listener =
      listening(asked[1], static_cast<std::uint16_t>(std::strtoul(asked[2].c_str(), nullptr, 10)));
  std::thread([server, listener] {
    for (;;) {
      const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection >= 0) std::thread(serve_connection, std::ref(*server), connection).detach();
    }
  }).detach();
  flowos::bench::serve_questions([server] {
    return "{\"reads\": " + std::to_string(server->link.reads()) +
           ", \"bytes\": " + std::to_string(server->link.bytes()) + "}";
  });
  std::_Exit(0);
}
