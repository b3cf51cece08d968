#include "pmpi/rank_writer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/errno_guard.hpp"
#include "base/signal_guard.hpp"
#include "pmpi/launcher.hpp"
#include "pmpi/loaded_object.hpp"

namespace fallow::pmpi {
namespace {

using trace::RankHeader;

std::uint64_t round_up(std::uint64_t n, std::uint64_t to) noexcept { return (n + to - 1) / to * to; }

constexpr std::uint64_t kPage = 4096;
constexpr int kPopulateForWriting = 23;  // MADV_POPULATE_WRITE, from Linux 5.14 on; fails without harm elsewhere

/// Reserves the space before it is mapped: a full disk must not show up as SIGBUS in the program.
void* map_file(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  // Beyond the limit on file sizes the kernel would send the program a signal.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur) {
    errno = EFBIG;
    return MAP_FAILED;
  }
  if (const int error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes)); error != 0) {
    errno = error;
    return MAP_FAILED;
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, static_cast<off_t>(offset));
  // What is shared is populated for reading only: each page's first write would cost the call that makes it a microsecond or two.
  if (memory != MAP_FAILED) madvise(memory, bytes, kPopulateForWriting);
  return memory;
}

void* map_anonymous(std::uint64_t bytes) noexcept {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

Status RankWriter::open(const Options& options, std::int32_t world_rank, std::string& problem) noexcept try {
  const std::uint32_t ring = std::bit_ceil(options.ring_events), sites = std::bit_ceil(options.site_slots);
  block_bytes_ = round_up(sizeof(trace::ThreadCounters) + trace::kMaxOps * sizeof(trace::OpStats) +
                              sites * sizeof(trace::SiteStats) + ring * sizeof(trace::Event), kPage);
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  Status status = Status::ok;
  void* memory = MAP_FAILED;
  if (options.dir.empty()) {
    status = Status::unsupported;
  } else {
    char name[160];
    std::snprintf(name, sizeof name, "/rank-%06d-%s-%d.fallow", world_rank < 0 ? 0 : world_rank, host, getpid());
    const std::string path = absolute(options.dir) + name;
    if (create(path, memory)) {
      path_ = path;
    } else {
      problem = "no report will be written: " + path + ": " + std::strerror(errno);
      status = Status::failed;
    }
  }
  if (memory == MAP_FAILED) memory = map_anonymous(trace::kHeaderBytes);
  if (memory == MAP_FAILED) return Status::failed;
  header_ = static_cast<RankHeader*>(memory);
  RankHeader& h = *header_;
  h.version = trace::kRankVersion;
  h.header_bytes = trace::kHeaderBytes;
  h.block_bytes = block_bytes_;
  h.op_slots = trace::kMaxOps;
  h.site_slots = sites;
  h.ring_events = ring;
  h.bins = trace::kHistogramBins;
  h.op_info_bytes = sizeof(trace::OpInfo);
  h.counters_bytes = sizeof(trace::ThreadCounters);
  h.op_stats_bytes = sizeof(trace::OpStats);
  h.site_stats_bytes = sizeof(trace::SiteStats);
  h.event_bytes = sizeof(trace::Event);
  std::snprintf(h.host, sizeof h.host, "%s", host);
  const ssize_t n = readlink("/proc/self/exe", h.program, sizeof h.program - 1);
  if (n < 0) h.program[0] = 0;
  std::memcpy(h.magic, trace::kRankMagic, sizeof h.magic);  // last: a reader finds a complete header
  return status;
} catch (...) {
  return Status::failed;
}

/// Makes the file with its header and the first thread's block, without which it is of no use. If one of them cannot
/// be had, errno says why and no file stays.
bool RankWriter::create(const std::string& path, void*& header) noexcept {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  void* const first = map_file(fd, 0, trace::kHeaderBytes);
  void* const block = first == MAP_FAILED ? MAP_FAILED : map_file(fd, block_offset(0), block_bytes_);
  const int error = errno;
  close(fd);
  if (block == MAP_FAILED) {
    if (first != MAP_FAILED) munmap(first, trace::kHeaderBytes);
    unlink(path.c_str());
    errno = error;
    return false;
  }
  header = first;
  blocks_[0] = block;
  return true;
}

void* RankWriter::map_block(std::uint32_t index) noexcept {
  void* memory = MAP_FAILED;
  if (path_.empty()) {
    memory = map_anonymous(block_bytes_);
  } else if (const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC); fd >= 0) {
    memory = map_file(fd, block_offset(index), block_bytes_);
    close(fd);
  }
  return memory == MAP_FAILED ? nullptr : memory;
}

bool RankWriter::attach(Thread& thread) noexcept {
  const WholeLock lock(mutex_);
  std::uint32_t index = header_->blocks_used;
  if (free_blocks_ != 0) {
    index = static_cast<std::uint32_t>(std::countr_zero(free_blocks_));
    free_blocks_ &= free_blocks_ - 1;
  } else {
    if (index < trace::kMaxBlocks && blocks_[index] == nullptr) blocks_[index] = map_block(index);
    if (index >= trace::kMaxBlocks || blocks_[index] == nullptr) {
      ++header_->threads_dropped;
      return false;
    }
    header_->blocks_used = index + 1;
  }
  auto* at = static_cast<std::byte*>(blocks_[index]);
  thread.index = index;
  thread.counters = reinterpret_cast<trace::ThreadCounters*>(at);
  at += sizeof(trace::ThreadCounters);
  thread.ops = reinterpret_cast<trace::OpStats*>(at);
  at += trace::kMaxOps * sizeof(trace::OpStats);
  thread.sites = reinterpret_cast<trace::SiteStats*>(at);
  at += header_->site_slots * sizeof(trace::SiteStats);
  thread.ring = reinterpret_cast<trace::Event*>(at);
  thread.ring_mask = header_->ring_events - 1;
  thread.site_mask = header_->site_slots - 1;
  // A block that another thread has left goes on where that one ended: readers find its last events by their number.
  thread.recorded = thread.totalled = thread.foreseen = thread.counters->events;
  thread.counters->thread_id = static_cast<std::uint64_t>(syscall(SYS_gettid));
  return true;
}

void RankWriter::release(const Thread& thread) noexcept {
  const WholeLock lock(mutex_);
  free_blocks_ |= std::uint64_t{1} << thread.index;
}

void RankWriter::part_from(const Thread& thread) noexcept {
  mmap(blocks_[thread.index], block_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

std::uint32_t RankWriter::module_of(const void* address) noexcept {
  const ErrnoGuard kept;  // realpath() sets it also where it succeeds
  const SignalGuard unbroken;  // the linker's lock is taken too, and the allocator's
  LoadedObject object;
  if (!find_loaded_object(address, object)) return trace::kNoModule;  // takes the linker's lock: not under ours
  RankHeader& h = *header_;
  const char* const known = *object.path != 0 ? object.path : h.program;
  // Loaded by a path from where the program was, and still is in most cases. Not on the stack, which may be a small one.
  const std::unique_ptr<char, decltype(&std::free)> whole(*known != '/' ? realpath(known, nullptr) : nullptr, &std::free);
  const char* const path = whole != nullptr ? whole.get() : known;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < h.modules_used; ++i) {
    const trace::Module& m = h.modules[i];
    const bool same = m.base == object.base && std::strncmp(m.path, path, sizeof m.path - 1) == 0;
    if (same) return i;  // else another one was loaded where that had been
  }
  if (h.modules_used >= trace::kMaxModules) return trace::kNoModule;
  trace::Module& m = h.modules[h.modules_used];
  m.base = object.base;
  m.end = object.end;
  std::memcpy(m.path, path, std::min(std::strlen(path), sizeof m.path - 1));  // the rest is zero
  return h.modules_used++;
}

}  // namespace fallow::pmpi
