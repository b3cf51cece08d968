#include "trace/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fallow::trace {
namespace {

constexpr int kHow = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a pipe must not keep us waiting

class FileSource final : public ByteSource {
 public:
  FileSource(int fd, std::uint64_t size, std::string path) noexcept : fd_(fd), size_(size), path_(std::move(path)) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { hold(false); }

  std::uint64_t size() const override { return size_; }
  bool read(std::uint64_t offset, std::span<std::byte> out) const override {
    const int fd = fd_ >= 0 ? fd_ : open_again(path_);
    const bool whole = fd >= 0 && read_from(fd, offset, out);
    if (fd_ < 0 && fd >= 0) ::close(fd);
    return whole;
  }
  void hold(bool on) override {
    if (on && fd_ < 0) fd_ = open_again(path_);
    if (!on && fd_ >= 0) ::close(fd_), fd_ = -1;
  }

 private:
  static int open_again(const std::string& path) noexcept { return ::open(path.c_str(), kHow); }
  static bool read_from(int fd, std::uint64_t offset, std::span<std::byte> out) noexcept {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      offset += static_cast<std::uint64_t>(n);
      out = out.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }

  int fd_;  ///< -1: opened for each read
  std::uint64_t size_;
  std::string path_;
};

}  // namespace

std::unique_ptr<ByteSource> open_regular_file(const std::string& path, std::string& reason) {
  const int fd = ::open(path.c_str(), kHow);
  if (fd < 0) {
    reason = std::strerror(errno);
    return nullptr;
  }
  struct stat s {};
  if (::fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
    ::close(fd);
    reason = "not a regular file";
    return nullptr;
  }
  return std::make_unique<FileSource>(fd, static_cast<std::uint64_t>(s.st_size), path);
}

}  // namespace fallow::trace
