// The page that the ranks of a job share on a node: what each of them is doing and since when, and how one wakes
// another. It is unlinked as soon as all of them have it open, so that nothing is left behind when they are killed.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.hpp"
#include "pmpi/budget.hpp"
#include "pmpi/giving_way.hpp"
#include "pmpi/meeting.hpp"
#include "trace/rank_file.hpp"

namespace fallow::pmpi {

inline constexpr std::uint32_t kNodeSlots = 1024;

enum class SleepWord : std::uint32_t { awake = 0, asleep = 1, woken = 2 };

/// One rank. A pair of lines of its own for what the owner writes often, another for what wakers look at: processors fetch lines in pairs.
struct alignas(128) NodeSlot {
  std::atomic<std::uint32_t> sleep_word{0};   ///< SleepWord; the futex
  std::atomic<std::int32_t> wanted{-1};       ///< world rank that the sleeper waits for, -1: any
  std::atomic<std::uint64_t> wake_tick{0};    ///< when the waker woke it
  std::atomic<std::uint64_t> wake_spent{0};   ///< ticks that others took to wake it and that it has not paid yet
  std::atomic<std::int32_t> world_rank{-1};
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::uint32_t> to_serve{0};     ///< 1: it was woken for what its peer cannot do without it
  std::atomic<std::uint32_t> by_bell{0};      ///< 1: it does not sleep on the futex, but until its bell rings
  std::atomic<std::uint32_t> by_test{0};      ///< 1: what woke it was a test that had found nothing
  std::atomic<std::uint32_t> meeting{0};      ///< CommInfo::members where it sleeps in a call that nobody leaves before all have come to it, else 0
  std::atomic<std::uint64_t> pass_on{0};      ///< ranks of that communicator that it is to wake when it is woken: [low, high half)
  std::atomic<std::uint64_t> tests_from{0};   ///< tick from which on such a test may wake it, one that did nothing
  std::atomic<std::uint64_t> long_tests_from{0};  ///< and one that lasted long enough to have done something
  std::atomic<std::int32_t> processor{0};     ///< where it was when it was last looked at, and one more
  std::atomic<std::int32_t> woken_from{0};    ///< where its waker was, likewise
  alignas(128) std::atomic<std::uint64_t> activity{0};  ///< tick since when << 3 | trace::RankState
  /// Tick until which the rank is predicted not to need the network, while it computes or waits; 0: not predicted.
  std::atomic<std::uint64_t> rest_until{0};
  std::atomic<std::uint64_t> calls{0};  ///< other than tests in vain, where ranks share cores; some of the latest are missing
  /// Ticks at which its latest waits of more than some polls were over, had it not slept; a ring, and how many there were.
  static constexpr std::uint64_t kEndsKept = 4;
  std::atomic<std::uint64_t> wait_ends[kEndsKept]{};
  std::atomic<std::uint64_t> waits{0};
  std::atomic<std::uint64_t> unseen_until{0};  ///< tick until which it may wait unseen: it left a loop of tests for another reason than a find

  void wait_over(std::uint64_t tick) noexcept {
    const std::uint64_t n = waits.load(std::memory_order_relaxed);
    wait_ends[n % kEndsKept].store(tick, std::memory_order_relaxed);
    waits.store(n + 1, std::memory_order_release);
  }

  /// Says what the rank does from `tick` on. The three highest bits of a tick are not needed for 20 years at 3 GHz.
  void doing(trace::RankState state, std::uint64_t tick) noexcept {
    activity.store(tick << 3 | static_cast<std::uint64_t>(state), std::memory_order_relaxed);
  }
};

/// Whether all ranks that the launcher started on the node have attached to the page.
enum class Company : std::uint32_t { unknown = 0, complete = 1, incomplete = 2 };

/// A set of processors that several processes add to. All zero is the empty set.
class Processors {
 public:
  /// Adds those that the calling thread may run on; where the kernel does not tell, all that there can be.
  void add_own() noexcept;
  std::uint32_t count() const noexcept;

 private:
  std::atomic<std::uint64_t> words_[CPU_SETSIZE / 64]{};
};

struct NodePage {
  std::atomic<std::uint32_t> company{0};       ///< Company: 0 until the first rank knows
  std::atomic<std::uint32_t> attached{0};      ///< slots in use
  std::atomic<std::uint32_t> said{0};          ///< bits of the messages that some rank has printed
  std::atomic<std::uint32_t> mute{0};          ///< set if some rank wakes nobody
  std::atomic<std::uint32_t> unseen{0};        ///< set once some rank has tested whose tests are not watched, or has threads: it waits unseen
  std::atomic<std::uint32_t> threads{0};       ///< set once some rank has two threads in MPI: what it does is not told by one
  Processors processors;                       ///< that the ranks attached so far may use
  std::atomic<std::uint64_t> rivals_until{0};  ///< tick until which a few threads that are no ranks are taken to want cores
  alignas(128) std::atomic<std::uint32_t> sleepers{0};  ///< ranks asleep or about to be
  std::atomic<std::uint32_t> link_asked{0};             ///< set once somebody has asked until when the link rests
  alignas(128) Budget budget;
  GivingWay giving_way;
  alignas(128) Arrivals arrivals;
  NodeSlot slots[kNodeSlots];
};

/// Tick until which the link that the first `ranks` slots share may rest, as seen at `now`: all of these ranks must be
/// computing or waiting and predicted to go on with it. 0: it may not rest. A slot without an owner counts as busy, one
/// whose rank has ended as at rest for good (all ones if that is so of all). Ranks tell how long their gaps and waits last from the first
/// time on that this is asked.
std::uint64_t link_rests_until(NodePage& page, std::uint32_t ranks, std::uint64_t now) noexcept;

/// Whether a wait of a rank other than that of `own` was over within [from, to], or may have been, as the rank has waited too
/// often since or waits in ways that are not seen.
bool others_stopped_waiting(const NodePage& page, std::uint32_t ranks, const NodeSlot& own, std::uint64_t from,
                            std::uint64_t to) noexcept;

/// This rank's view of the page. When it cannot be had, a private page stands in for it and nobody is woken.
class Node {
 public:
  ~Node();

  /// Attaches to the page of the job on this node. `local_size`: ranks expected here, 0 if unknown; `wakes`: this one
  /// wakes others; `user`: whose page it may be.
  Status attach(const std::string& run_id, std::int32_t world_rank, std::uint32_t local_size, bool wakes = true,
                uid_t user = geteuid()) noexcept;
  void detach() noexcept;

  /// Waits until `local_size` ranks have attached, as long as they keep coming. False if some have not: they run without Fallow, or have
  /// a shared memory of their own, as in containers; and if one wakes nobody. All ranks get the same answer, also who comes too late.
  bool is_complete(std::uint32_t local_size) noexcept;

  /// False where there was no memory even for a page of its own: then there is nothing to be had here.
  bool usable() const noexcept { return page_ != nullptr; }
  NodePage& page() noexcept { return *page_; }
  NodeSlot& own() noexcept { return *own_; }
  bool shared() const noexcept { return shared_; }
  std::uint32_t attached() const noexcept;

  /// Slot of a world rank on this node, or null. A scan once per rank, then a table.
  NodeSlot* slot_of(std::int32_t world_rank) noexcept;

  /// Whether one of these world ranks has been computing since before this tick, as far as they are on this node. The caller's own
  /// state is told before: of those who ask at the same time one at least sees the others.
  bool some_compute_since(std::span<const std::int32_t> ranks, std::uint64_t tick) noexcept;

  /// Wakes the owner of a slot if it sleeps. True if a system call was made.
  bool wake(NodeSlot& slot, std::uint64_t now) noexcept;

  /// Makes what bell() gives, and what others' bells are rung with. Before there are other threads.
  void hang_bell() noexcept;
  /// A descriptor that can be read once wake() was called for this rank while its slot says `by_bell`; below 0: there is none,
  /// or the program has closed it.
  int bell() const noexcept { return bell_is_ours() ? bell_ : -1; }
  /// Forgets who has rung.
  void hush() noexcept;

  /// True for the first process on the node that asks for this message (0..31).
  bool first_to_say(unsigned message) noexcept;

 private:
  void fall_back() noexcept;
  void ring(const NodeSlot& slot) noexcept;
  bool bell_is_ours() const noexcept;

  NodePage* page_ = nullptr;
  NodeSlot* own_ = nullptr;
  bool shared_ = false;
  std::string name_;
  std::string bells_;  ///< what the names of bells begin with
  int bell_ = -1;
  std::uint64_t bell_inode_ = 0;
};

/// Identifies the job on this node: the process that launched its ranks, and the name space that the launcher gave.
std::string job_key();

}  // namespace fallow::pmpi
