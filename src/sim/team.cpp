#include "sim/team.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <thread>

namespace fallow::sim {
namespace {

// std::atomic::wait yields the core many times before it sleeps: among many other programs each yield costs as long as
// all of them may run.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

void Barrier::wait() noexcept {
  constexpr int kSpins = 1000;  // some 10 us, about what a window takes: after that somebody lacks a core
  const std::uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) != 0) wake_all(round_);
    return;
  }
  for (int i = 0; i < kSpins; ++i) {
    if (round_.load(std::memory_order_acquire) != round) return;
    __builtin_ia32_pause();
  }
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  while (round_.load(std::memory_order_seq_cst) == round) sleep_while(round_, round);
  sleeping_.fetch_sub(1, std::memory_order_relaxed);
}

Team::Team(Engine& leader) : members_(leader.threads()), barrier_(leader.threads()), window_(leader.machine_.link.latency) {
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    Member& m = members_[i];
    m.engine = i == 0 ? &leader : leader.others_[i - 1].get();
    for (auto& boxes : m.outgoing) boxes.resize(members_.size());
  }
}

void Team::run() {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 1; i < members_.size(); ++i) threads.emplace_back([this, i] { work(i); });
  work(0);
  for (std::thread& t : threads) t.join();
  const Member* first = nullptr;
  for (const Member& m : members_) {
    if (!m.error) continue;
    if (first == nullptr || m.error_time < first->error_time || (m.error_time == first->error_time && m.error_tie < first->error_tie)) first = &m;
  }
  if (first != nullptr) std::rethrow_exception(first->error);
}

/// What one thread does. All see the same times after a barrier, so all leave after the same window.
void Team::work(std::uint32_t index) {
  Member& own = members_[index];
  own.engine->begin();
  own.next[0] = own.engine->next_time();
  for (std::uint32_t parity = 0;; parity ^= 1) {
    barrier_.wait();
    const Time begin = earliest(parity);
    if (begin == kNever) return;
    collect(index, parity);
    replay(own, parity ^ 1, begin + window_);
  }
}

/// The beginning of the next window; kNever if there is none, or if a member has failed.
Time Team::earliest(std::uint32_t parity) const noexcept {
  Time t = kNever;
  for (const Member& m : members_) {
    if (m.failed[parity]) return kNever;
    t = std::min(t, m.next[parity]);
  }
  return t;
}

/// Takes what the others have sent to this member in the last window.
void Team::collect(std::uint32_t index, std::uint32_t parity) {
  Engine& engine = *members_[index].engine;
  for (Member& from : members_) {
    for (const Mail& mail : from.outgoing[parity][index]) engine.network_.accept(mail);
    from.outgoing[parity][index].clear();
  }
}

void Team::replay(Member& m, std::uint32_t parity, Time end) noexcept {
  m.engine->network_.mail_to(m.outgoing[parity]);
  try {
    m.engine->replay(end);
  } catch (...) {
    m.error = std::current_exception();
    m.error_time = m.engine->clock_;
    m.error_tie = m.engine->tie_;
    m.failed[parity] = true;
  }
  Time next = m.engine->next_time();
  for (const Mailbox& box : m.outgoing[parity]) {
    for (const Mail& mail : box) next = std::min(next, mail.event.time);
  }
  m.next[parity] = next;
}

}  // namespace fallow::sim
