#include "trace/file_writer.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/cancel_guard.hpp"
#include "trace/block_format.hpp"
#include "trace/coding.hpp"
#include "trace/crc32c.hpp"

namespace fallow::trace {
namespace {

/// A definition being put together; grows as it must.
struct Definition {
  std::vector<std::byte> bytes;

  void number(std::uint64_t v) {
    std::byte memory[kMaxVarint];
    ByteWriter w(memory);
    w.varint(v);
    bytes.insert(bytes.end(), w.bytes().begin(), w.bytes().end());
  }
  void text(std::string_view s) {
    number(s.size());
    const auto b = std::as_bytes(std::span(s));
    bytes.insert(bytes.end(), b.begin(), b.end());
  }
  void group(const Group& g) {
    number(g.runs().size());
    for (const Group::Run& r : g.runs()) {
      number(zigzag(r.first));
      number(zigzag(r.stride));
      number(r.count);
    }
  }
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

constexpr std::size_t kMostWaiting = std::size_t{16} << 20;  // bytes kept for a program without descriptors

/// Beyond the limit on file sizes the kernel would send the program a signal.
std::uint64_t size_limit() noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : ~std::uint64_t{0};
}

}  // namespace

Status FileWriter::open(const char* path, const FileOptions& options, std::string& problem) noexcept try {
  close();
  fd_ = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    problem = std::string(path) + ": " + std::strerror(errno);
    return Status::failed;
  }
  struct stat identity {};
  if (!options.keep_open && ::fstat(fd_, &identity) == 0) {
    path_ = path;
    device_ = identity.st_dev;
    node_ = identity.st_ino;
  }
  opened_ = true;
  keep_open_ = options.keep_open;
  failed_ = false;
  keep_index_ = options.parts != 1;
  offset_ = 0;
  comms_ = kFirstComm;
  sites_ = 1;
  index_.clear();
  chunk_.clear();
  constexpr std::size_t kUsualChunk = 512 * 1024;
  chunk_.reserve(kUsualChunk);
  FileHead h{};
  std::memcpy(h.magic, kTraceMagic, sizeof h.magic);
  h.version = kTraceVersion;
  h.head_bytes = sizeof h;
  h.world_size = options.world_size;
  h.clock = static_cast<std::uint32_t>(options.clock);
  h.start_wall_ns = options.start_wall_ns;
  h.parts = options.parts;
  h.crc = crc32c(bytes_of(h).first(offsetof(FileHead, crc)));
  if (write_all(bytes_of(h))) {
    if (!keep_open_) ::close(fd_), fd_ = -1;
    return Status::ok;
  }
  problem = std::string(path) + ": " + std::strerror(errno);
  close();
  return Status::failed;
} catch (...) {
  close();
  return Status::failed;
}

void FileWriter::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  opened_ = false;
}

/// The file that open() made, unless another has taken its place. `may_wait`: a program that has every descriptor may let
/// go of some.
bool FileWriter::reopen(bool may_wait) noexcept {
  struct stat identity {};
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  const bool same = fd_ >= 0 && ::fstat(fd_, &identity) == 0 && identity.st_dev == device_ && identity.st_ino == node_;
  if (same) return true;
  problem_ = fd_ >= 0 ? ESTALE : errno;
  failed_ = !may_wait || (problem_ != EMFILE && problem_ != ENFILE);
  if (fd_ >= 0) ::close(fd_), fd_ = -1;
  return false;
}

bool FileWriter::write_all(std::span<const std::byte> bytes) noexcept {
  const std::uint64_t start = offset_;
  const std::uint64_t most = size_limit();
  while (!bytes.empty()) {
    const bool fits = bytes.size() <= most && offset_ <= most - bytes.size();
    if (!fits) errno = EFBIG;
    const ssize_t n = !fits ? -1 : ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int cause = n == 0 ? ENOSPC : errno;
      problem_ = cause;
      failed_ = true;
      offset_ = start;
      if (::ftruncate(fd_, static_cast<off_t>(start)) != 0) {
        // The reader stops before a torn chunk anyway.
      }
      errno = cause;
      return false;
    }
    offset_ += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Status FileWriter::append(ChunkType type, std::initializer_list<std::span<const std::byte>> parts) noexcept try {
  const CancelGuard whole;
  const std::lock_guard lock(mutex_);
  if (!ok()) return Status::failed;
  std::size_t bytes = 0;
  for (const auto part : parts) bytes += part.size();
  if (bytes > kMaxChunkBytes) return Status::failed;
  const std::size_t waiting = chunk_.size(), all = waiting + sizeof(ChunkHead) + bytes;
  if (chunk_.capacity() < all) chunk_.reserve(std::max(all, 2 * chunk_.capacity()));
  chunk_.resize(waiting + sizeof(ChunkHead));
  for (const auto part : parts) chunk_.insert(chunk_.end(), part.begin(), part.end());
  ChunkHead h{kChunkMagic, static_cast<std::uint32_t>(type), static_cast<std::uint32_t>(bytes), 0};
  h.crc = crc32c(std::span<const std::byte>(chunk_).subspan(waiting + sizeof h),
                 crc32c(bytes_of(h).subspan(offsetof(ChunkHead, type), 2 * sizeof(std::uint32_t))));
  std::memcpy(chunk_.data() + waiting, &h, sizeof h);
  if (type == ChunkType::events && keep_index_) note_block(std::span<const std::byte>(chunk_).subspan(waiting + sizeof h), offset_ + waiting);
  return write_waiting(chunk_.size() < kMostWaiting);
} catch (...) {
  return Status::failed;
}

Status FileWriter::write_waiting(bool may_wait) noexcept {
  if (!keep_open_ && !reopen(may_wait)) return failed_ ? Status::failed : Status::ok;
  const bool written = write_all(chunk_);
  chunk_.clear();
  if (!keep_open_) ::close(fd_), fd_ = -1;
  return written ? Status::ok : Status::failed;
}

Status FileWriter::flush() noexcept {
  const CancelGuard whole;
  const std::lock_guard lock(mutex_);
  if (!ok()) return Status::failed;
  return chunk_.empty() ? Status::ok : write_waiting(false);
}

void FileWriter::note_block(std::span<const std::byte> block, std::uint64_t offset) noexcept {
  if (block.size() < sizeof(BlockHead)) return;
  BlockHead h;
  std::memcpy(&h, block.data(), sizeof h);
  try {
    index_.push_back({offset, static_cast<std::uint32_t>(block.size()), h.rank, h.events, h.thread, 0, h.first_event, h.first_ns, h.last_ns});
  } catch (...) {
    keep_index_ = false;  // the reader finds the blocks without
  }
}

Status FileWriter::define_rank(std::uint32_t rank, const RankText& text, std::uint64_t shift_ns) noexcept try {
  Definition d;
  d.number(rank);
  d.number(shift_ns);
  d.text(text.host);
  d.text(text.program);
  d.text(text.mpi_version);
  return append(ChunkType::rank, {d.bytes});
} catch (...) {
  return Status::failed;
}

std::uint32_t FileWriter::define_comm(std::uint32_t rank, const Group& group, const Group& remote, const CommOrigin& origin) noexcept try {
  const std::lock_guard lock(numbers_mutex_);
  Definition d;
  d.number(rank);
  d.number(comms_);
  d.number(static_cast<std::uint64_t>(remote.size() != 0 ? CommKind::inter : CommKind::intra));
  d.group(group);
  if (remote.size() != 0) d.group(remote);
  d.number(origin.parent);
  d.number(origin.tag);
  return append(ChunkType::comm, {d.bytes}) == Status::ok ? comms_++ : kCommNone;
} catch (...) {
  return kCommNone;
}

std::uint32_t FileWriter::define_site(std::uint32_t rank, std::string_view module, std::uint64_t offset, std::string_view label) noexcept try {
  const std::lock_guard lock(numbers_mutex_);
  Definition d;
  d.number(rank);
  d.number(sites_);
  d.number(offset);
  d.text(module);
  d.text(label);
  return append(ChunkType::site, {d.bytes}) == Status::ok ? sites_++ : 0;
} catch (...) {
  return 0;
}

Status FileWriter::write_block(std::span<const std::byte> block) noexcept {
  return block.empty() ? Status::ok : append(ChunkType::events, {block});
}

Status FileWriter::end_rank(std::uint32_t rank, std::uint32_t dropped, std::uint64_t left_out) noexcept try {
  Definition d;
  d.number(rank);
  d.number(dropped);
  if (left_out != 0) d.number(left_out);
  return append(ChunkType::end, {d.bytes});
} catch (...) {
  return Status::failed;
}

Status FileWriter::write_chunk(ChunkType type, std::span<const std::byte> payload) noexcept { return append(type, {payload}); }

Status FileWriter::write_index() noexcept {
  if (!keep_index_) return Status::unsupported;
  std::sort(index_.begin(), index_.end(), [](const IndexEntry& a, const IndexEntry& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.first_ns != b.first_ns ? a.first_ns < b.first_ns : a.offset < b.offset;
  });
  FileTail t{offset_, kTailMagic, 0};
  t.crc = crc32c(bytes_of(t).first(offsetof(FileTail, crc)));
  if (append(ChunkType::index, {std::as_bytes(std::span(index_))}) != Status::ok) return Status::failed;
  const std::lock_guard lock(mutex_);
  return write_all(bytes_of(t)) ? Status::ok : Status::failed;
}

}  // namespace fallow::trace
