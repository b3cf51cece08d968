#include "pmpi/node_page.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/cancel_guard.hpp"
#include "pmpi/launcher.hpp"

namespace fallow::pmpi {
namespace {

// MPI_Init lets no rank go long before the others: whoever has not come after 0.2 s in which nobody came will not.
constexpr long kPauseNs = 200'000;
constexpr int kWaitsForOthers = 1000;
constexpr int kHighDescriptor = 512;  // programs expect the low numbers for what they open

/// Names of the processes that start a job's ranks on a node.
constexpr std::array kLaunchers = {"orted", "prted", "mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy", "prterun", "orterun",
                                   "slurmstepd", "pmi_proxy", "mpirun.openmpi", "mpiexec.openmpi"};

struct Process {
  std::string comm;
  long parent = 0;
  unsigned long long started = 0;  ///< clock ticks since the machine's start
};

/// False if it is gone.
bool read_stat(long pid, Process& process) {
  char path[64], line[512];
  std::snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, line, sizeof line - 1);
  close(fd);
  if (n <= 0) return false;
  line[n] = 0;
  const char* open_paren = std::strchr(line, '(');
  const char* close_paren = std::strrchr(line, ')');
  if (open_paren == nullptr || close_paren == nullptr) return false;
  constexpr const char* kFields = " %*c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu";
  if (std::sscanf(close_paren + 1, kFields, &process.parent, &process.started) != 2) return false;
  process.comm.assign(open_paren + 1, close_paren);
  return true;
}

struct Launcher {
  long pid;
  std::uint32_t mark;  ///< tells it from others of that number, before it and in other containers
};

Launcher find_launcher() {
  constexpr int kDeepest = 32;  // shells and scripts between the launcher and the rank
  long pid = getppid();
  for (int depth = 0; depth < kDeepest && pid > 0; ++depth) {
    Process process;
    if (!read_stat(pid, process)) break;
    for (const char* name : kLaunchers) {
      if (process.comm != std::string(name).substr(0, 15)) continue;  // the kernel keeps 15 characters
      struct stat space {};
      if (stat("/proc/self/ns/pid", &space) != 0) space.st_ino = 0;
      return {pid, static_cast<std::uint32_t>(process.started) * 2654435761u ^ static_cast<std::uint32_t>(space.st_ino)};
    }
    pid = process.parent;
  }
  return {getppid(), 0};  // ranks may be in containers of their own, which do not show the launcher
}

/// The abstract address of a slot's bell: no file, and gone with the process.
socklen_t bell_address(const std::string& bells, std::size_t index, sockaddr_un& address) noexcept {
  address = {};
  address.sun_family = AF_UNIX;
  const int n = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s-%zu", bells.c_str(), index);
  const std::size_t used = std::min(static_cast<std::size_t>(std::max(n, 0)), sizeof address.sun_path - 2);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + used);
}

}  // namespace

std::string job_key() {
  char text[64];
  const Launcher launcher = find_launcher();
  std::snprintf(text, sizeof text, "%ld-%08x", launcher.pid, launcher_hash() ^ launcher.mark);  // the name may hold any character
  return text;
}

std::uint64_t link_rests_until(NodePage& page, std::uint32_t ranks, std::uint64_t now) noexcept {
  page.link_asked.store(1, std::memory_order_relaxed);
  std::uint64_t first = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < ranks && i < kNodeSlots; ++i) {
    const NodeSlot& slot = page.slots[i];
    const std::uint64_t until = slot.rest_until.load(std::memory_order_relaxed);
    switch (static_cast<trace::RankState>(slot.activity.load(std::memory_order_relaxed) & 7u)) {
      case trace::RankState::ended:
        break;
      case trace::RankState::computing:
      case trace::RankState::waiting:
      case trace::RankState::asleep:
        if (until <= now) return 0;
        first = until < first ? until : first;
        break;
      default:
        return 0;
    }
  }
  return first;
}

bool others_stopped_waiting(const NodePage& page, std::uint32_t ranks, const NodeSlot& own, std::uint64_t from,
                            std::uint64_t to) noexcept {
  if (page.unseen.load(std::memory_order_relaxed) != 0) return true;
  for (std::uint32_t i = 0; i < ranks && i < kNodeSlots; ++i) {
    const NodeSlot& slot = page.slots[i];
    if (&slot == &own) continue;
    if (from < slot.unseen_until.load(std::memory_order_relaxed)) return true;
    const std::uint64_t waits = slot.waits.load(std::memory_order_acquire);
    std::uint64_t oldest = to;
    for (std::uint64_t k = 0; k < waits && k < NodeSlot::kEndsKept; ++k) {
      const std::uint64_t end = slot.wait_ends[k].load(std::memory_order_relaxed);
      if (end >= from && end <= to) return true;
      oldest = end < oldest ? end : oldest;
    }
    if (waits > NodeSlot::kEndsKept && oldest >= from) return true;
  }
  return false;
}

void Processors::add_own() noexcept {
  static_assert(sizeof(cpu_set_t) == sizeof words_);
  std::array<std::uint64_t, CPU_SETSIZE / 64> own{};
  if (sched_getaffinity(0, sizeof own, reinterpret_cast<cpu_set_t*>(own.data())) != 0) own.fill(~std::uint64_t{0});
  for (std::size_t i = 0; i < own.size(); ++i) words_[i].fetch_or(own[i], std::memory_order_relaxed);
}

std::uint32_t Processors::count() const noexcept {
  int n = 0;
  for (const std::atomic<std::uint64_t>& word : words_) n += std::popcount(word.load(std::memory_order_relaxed));
  return static_cast<std::uint32_t>(n);
}

Node::~Node() { detach(); }

void Node::fall_back() noexcept {
  static NodePage* const private_page = new (std::nothrow) NodePage;
  page_ = private_page;
  own_ = page_ != nullptr ? &page_->slots[0] : nullptr;
  shared_ = false;
}

Status Node::attach(const std::string& run_id, std::int32_t world_rank, std::uint32_t local_size,
                    bool wakes, uid_t user) noexcept try {
  fall_back();
  if (!usable()) return Status::failed;
  own_->world_rank.store(world_rank, std::memory_order_relaxed);
  name_ = "/fallow-" + (run_id.empty() ? std::to_string(getuid()) : run_id) + "-" + (local_size == 1 ? std::to_string(getpid()) : job_key());
  const int fd = shm_open(name_.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0) return Status::failed;
  // The name can be guessed: who made the page before may write into it, and cut it off, which would end the program.
  if (struct stat found {}; fstat(fd, &found) != 0 || found.st_uid != user) {
    close(fd);
    return Status::failed;
  }
  // The pages must be there before they are touched: a full /dev/shm would answer with SIGBUS.
  if (posix_fallocate(fd, 0, sizeof(NodePage)) != 0) {
    close(fd);
    shm_unlink(name_.c_str());
    return Status::failed;
  }
  void* const address = mmap(nullptr, sizeof(NodePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (address == MAP_FAILED) return Status::failed;
  page_ = static_cast<NodePage*>(address);  // all zero is the initial state, wanted and world_rank apart
  page_->processors.add_own();
  if (!wakes) page_->mute.store(1, std::memory_order_relaxed);
  const std::uint32_t index = page_->attached.fetch_add(1);
  if (index >= kNodeSlots) {
    munmap(address, sizeof(NodePage));
    fall_back();
    return Status::unsupported;
  }
  own_ = &page_->slots[index];
  own_->wanted.store(-1, std::memory_order_relaxed);
  own_->world_rank.store(world_rank, std::memory_order_relaxed);
  own_->doing(trace::RankState::computing, 0);
  own_->pid.store(getpid(), std::memory_order_release);  // last: it says that the rest holds, which was zero before
  shared_ = true;
  bells_ = name_;
  if (local_size != 0 && index + 1 >= local_size) {
    shm_unlink(name_.c_str());
    name_.clear();
  }
  return Status::ok;
} catch (...) {
  fall_back();
  return Status::failed;
}

bool Node::is_complete(std::uint32_t local_size) noexcept {
  if (!shared_ || local_size > kNodeSlots) return false;
  std::uint32_t seen = 0;
  for (int waits = 0; waits < kWaitsForOthers; ++waits) {
    const std::uint32_t here = attached();
    if (here >= local_size || page_->company.load() != 0) break;
    if (here != seen) waits = 0;
    seen = here;
    const timespec pause{0, kPauseNs};
    syscall(SYS_nanosleep, &pause, nullptr);  // not by its name, which may be a tool's that stops the clock
  }
  std::uint32_t known = static_cast<std::uint32_t>(Company::unknown);
  const bool relied_upon = attached() >= local_size && page_->mute.load(std::memory_order_relaxed) == 0;
  const Company found = relied_upon ? Company::complete : Company::incomplete;
  if (page_->company.compare_exchange_strong(known, static_cast<std::uint32_t>(found))) return found == Company::complete;
  return known == static_cast<std::uint32_t>(Company::complete);
}

void Node::detach() noexcept {
  if (!shared_) return;
  own_->doing(trace::RankState::ended, 0);
  if (!name_.empty()) shm_unlink(name_.c_str());
  name_.clear();
  if (bell_is_ours()) close(bell_);
  bell_ = -1;
}

std::uint32_t Node::attached() const noexcept {
  const std::uint32_t n = shared_ ? page_->attached.load(std::memory_order_acquire) : 1;
  return n < kNodeSlots ? n : kNodeSlots;
}

NodeSlot* Node::slot_of(std::int32_t world_rank) noexcept {
  if (!shared_ || world_rank < 0) return nullptr;
  const std::uint32_t n = attached();
  // Launchers start ranks in order, so the slot is mostly near the rank's place among the local ones.
  const std::uint32_t guess = static_cast<std::uint32_t>(world_rank) % n;
  for (std::uint32_t i = 0; i < n; ++i) {
    NodeSlot& slot = page_->slots[(guess + i) % n];
    if (slot.pid.load(std::memory_order_acquire) != 0 && slot.world_rank.load(std::memory_order_relaxed) == world_rank) return &slot;
  }
  return nullptr;
}

bool Node::some_compute_since(std::span<const std::int32_t> ranks, std::uint64_t tick) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return std::any_of(ranks.begin(), ranks.end(), [&](std::int32_t rank) {
    const NodeSlot* const slot = slot_of(rank);
    const std::uint64_t activity = slot != nullptr ? slot->activity.load(std::memory_order_relaxed) : 0;
    return slot != nullptr && (activity & 7u) == static_cast<std::uint64_t>(trace::RankState::computing) && activity >> 3 < tick;
  });
}

bool Node::wake(NodeSlot& slot, std::uint64_t now) noexcept {
  std::uint32_t asleep = static_cast<std::uint32_t>(SleepWord::asleep);
  if (slot.sleep_word.load(std::memory_order_relaxed) != asleep) return false;
  slot.wake_tick.store(now, std::memory_order_relaxed);
  const std::int32_t here = sched_getcpu() + 1;
  own_->processor.store(here, std::memory_order_relaxed);
  slot.woken_from.store(here, std::memory_order_relaxed);
  if (!slot.sleep_word.compare_exchange_strong(asleep, static_cast<std::uint32_t>(SleepWord::woken))) return false;
  if (slot.by_bell.load() != 0) {
    ring(slot);
  } else {
    syscall(SYS_futex, &slot.sleep_word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  return true;
}

/// The program may have closed it, and have something else by its number.
bool Node::bell_is_ours() const noexcept {
  struct stat found {};
  return bell_ >= 0 && fstat(bell_, &found) == 0 && found.st_ino == bell_inode_;
}

void Node::hang_bell() noexcept {
  if (!shared_ || bell_ >= 0) return;
  const int low = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (low < 0) return;
  const int high = fcntl(low, F_DUPFD_CLOEXEC, kHighDescriptor);
  const int fd = high >= 0 ? high : low;
  if (high >= 0) close(low);
  sockaddr_un address;
  const socklen_t length = bell_address(bells_, static_cast<std::size_t>(own_ - page_->slots), address);
  struct stat made {};
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0 || fstat(fd, &made) != 0) {
    close(fd);
    return;
  }
  bell_inode_ = made.st_ino;
  bell_ = fd;
}

void Node::ring(const NodeSlot& slot) noexcept {
  if (!bell_is_ours()) return;
  const CancelGuard whole;
  sockaddr_un address;
  const socklen_t length = bell_address(bells_, static_cast<std::size_t>(&slot - page_->slots), address);
  sendto(bell_, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length);
}

void Node::hush() noexcept {
  char rung;
  while (recv(bell_, &rung, 1, MSG_DONTWAIT) > 0) {
  }
}

bool Node::first_to_say(unsigned message) noexcept {
  const std::uint32_t bit = 1u << (message & 31u);
  return (page_->said.fetch_or(bit) & bit) == 0;
}

}  // namespace fallow::pmpi
