#include "trace/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fallow::trace {
namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(int fd, std::uint64_t size) noexcept : fd_(fd), size_(size) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { ::close(fd_); }

  std::uint64_t size() const override { return size_; }
  bool read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      offset += static_cast<std::uint64_t>(n);
      out = out.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }

 private:
  int fd_;
  std::uint64_t size_;
};

}  // namespace

std::unique_ptr<ByteSource> open_regular_file(const std::string& path, std::string& reason) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not keep us waiting
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
  return std::make_unique<FileSource>(fd, static_cast<std::uint64_t>(s.st_size));
}

}  // namespace fallow::trace
