#include "pmpi/sockets.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace fallow::pmpi {
namespace {

/// The kernel's struct tcp_info as far as it is needed here: libc's ends before the byte counts.
struct TcpInfo {
  std::uint8_t state;
  std::uint8_t others[119];
  std::uint64_t bytes_acked, bytes_received;  // since Linux 4.1
};
static_assert(offsetof(TcpInfo, bytes_received) == 128);

bool info_of(int fd, TcpInfo& info) noexcept {
  socklen_t length = sizeof info;
  info = {};
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
}

/// Whether something can come over it: a connection, or one that is being made.
bool is_open(const TcpInfo& info) noexcept {
  return info.state == TCP_ESTABLISHED || info.state == TCP_SYN_SENT || info.state == TCP_SYN_RECV || info.state == TCP_LISTEN;
}

/// Of a directory entry in /proc/self/fd; below 0: none.
int number_of(const char* name) noexcept {
  int fd = 0;
  for (const char* c = name; *c != 0; ++c) {
    if (*c < '0' || *c > '9' || fd > 1 << 24) return -1;
    fd = fd * 10 + (*c - '0');
  }
  return fd;
}

struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

/// Calls `visit` with each descriptor of the process, without memory of the heap.
template <class Visit>
void each_descriptor(Visit&& visit) noexcept {
  const int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  alignas(Entry) char buffer[4096];
  for (long n; (n = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      const int fd = number_of(entry->name);
      if (fd >= 0 && fd != directory) visit(fd);
      at += entry->length;
    }
  }
  close(directory);
}

timespec after(double ns) noexcept {
  timespec t{};
  t.tv_sec = static_cast<time_t>(ns * 1e-9);
  t.tv_nsec = static_cast<long>(std::max(1.0, ns - static_cast<double>(t.tv_sec) * 1e9));
  return t;
}

}  // namespace

void Sockets::keep(int fd) noexcept {
  TcpInfo info;
  if (count_ > kMost || !info_of(fd, info) || !is_open(info)) return;
  if (count_ < kMost) sockets_[count_] = {fd, 0, false};
  ++count_;
}

void Sockets::find() noexcept {
  const std::array<Socket, kMost> before = sockets_;
  const std::size_t known = std::min(count_, kMost);
  count_ = 0;
  each_descriptor([this](int fd) { keep(fd); });
  for (std::size_t i = 0; i < std::min(count_, kMost); ++i) {
    for (std::size_t k = 0; k < known; ++k) {
      if (before[k].fd == sockets_[i].fd) sockets_[i] = before[k];
    }
  }
}

bool Sockets::usable() noexcept {
  if (!enabled_) return false;
  if (until_look_ == 0) {
    find();
    until_look_ = look_again_;
    look_again_ = std::min(look_again_ * 2, kLongest);
  }
  const bool some = count_ != 0 && count_ <= kMost;
  if (!some) --until_look_;
  return some;
}

Sockets::End Sockets::sleep(double ns, int bell) noexcept {
  --until_look_;
  for (std::size_t i = 0; i < count_; ++i) polled_[i] = {sockets_[i].ignored ? -1 : sockets_[i].fd, POLLIN | POLLOUT, 0};
  const timespec now{};
  bool ready = false;
  if (ppoll(polled_.data(), count_, &now, nullptr) < 0) return End::ready;
  std::size_t n = 0, left = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    Socket s = sockets_[i];
    const short found = polled_[i].revents;
    if ((found & (POLLERR | POLLHUP | POLLNVAL)) != 0) {  // closed, or about to be: what there is instead is to be found
      until_look_ = std::min(until_look_, kFirstLook);
      continue;
    }
    const bool waits = (found & POLLIN) != 0;
    s.strikes = waits ? s.strikes + 1 : 0;
    s.ignored = s.ignored || s.strikes >= kStrikes;
    sockets_[left++] = s;
    ready = ready || (waits && !s.ignored);
    if (waits || s.ignored) continue;
    // What cannot be written to, the library may be waiting to write to.
    polled_[n++] = {s.fd, static_cast<short>((found & POLLOUT) != 0 ? POLLIN : POLLIN | POLLOUT), 0};
  }
  count_ = left;
  if (ready) return End::ready;
  const std::size_t sockets = n;
  if (bell >= 0) polled_[n++] = {bell, POLLIN, 0};
  const timespec timeout = after(ns);
  const int ended = ppoll(polled_.data(), n, &timeout, nullptr);
  if (ended <= 0) return End::time;
  for (std::size_t i = 0; i < sockets; ++i) {
    if (polled_[i].revents != 0) return End::data;
  }
  return End::bell;
}

std::uint64_t Sockets::received() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < std::min(count_, kMost); ++i) {
    TcpInfo info;
    if (!sockets_[i].ignored && info_of(sockets_[i].fd, info)) bytes += info.bytes_received;
  }
  return bytes;
}

void Sockets::came(bool over_sockets) noexcept {
  trust_.tell(over_sockets);
  if (!over_sockets) until_look_ = std::min(until_look_, kFirstLook);  // maybe over one that is new
}

}  // namespace fallow::pmpi
