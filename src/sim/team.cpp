#include "sim/team.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <stdexcept>
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

Team::Team(Engine& leader) : members_(leader.threads()) {
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

/// What one thread does. All see the same boards, so all leave after the same window.
void Team::work(std::uint32_t index) {
  Member& own = members_[index];
  own.engine->begin();
  own.boards[0].next = own.engine->next_time();
  own.boards[0].reaches = own.engine->network_.reaches_others(0, own.boards[0].next);
  for (std::uint32_t windows = 1;; ++windows) {
    tell(own.boards[(windows & 1) ^ 1], windows);
    const Window window = next_window(windows);
    if (window.begin == kNever) return;
    if (window.over != kNever) own.engine->network_.over(window.over);
    replay(index, windows & 1, window.end);
  }
}

/// After `windows` of them; from kNever on if there is none, or if a member has failed.
Team::Window Team::next_window(std::uint32_t windows) {
  Window w;
  w.over = 0;
  bool failed = false;
  for (Member& m : members_) {
    Board& board = m.boards[(windows & 1) ^ 1];
    wait_for(board, windows);
    failed = failed || board.failed;
    w.begin = std::min(w.begin, board.next);
    w.end = std::min(w.end, board.reaches);
    w.over = std::max(w.over, board.ended);
  }
  return failed ? Window{} : w;
}

void Team::wait_for(Board& board, std::uint32_t windows) noexcept {
  constexpr int kSpins = 1000;  // some 10 us, several windows: after that somebody lacks a core
  for (int i = 0; i < kSpins; ++i) {
    if (board.windows.load(std::memory_order_acquire) == windows) return;
    __builtin_ia32_pause();
  }
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  for (std::uint32_t seen; (seen = board.windows.load(std::memory_order_seq_cst)) != windows;) sleep_while(board.windows, seen);
  sleeping_.fetch_sub(1, std::memory_order_relaxed);
}

/// The board is written; it tells of `windows` of them.
void Team::tell(Board& board, std::uint32_t windows) noexcept {
  board.windows.store(windows, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0) wake_all(board.windows);
}

/// Takes what the others have sent to this member in the last window.
void Team::collect(std::uint32_t index, std::uint32_t parity) {
  Engine& engine = *members_[index].engine;
  for (Member& from : members_) {
    if ((from.boards[parity].letters >> index % 64 & 1) == 0) continue;
    for (const Mail& mail : from.outgoing[parity][index]) {
      if (mail.event.time < members_[index].replayed) [[unlikely]] throw std::logic_error("a message came from another share after its time");
      engine.network_.accept(mail);
    }
    from.outgoing[parity][index].clear();
  }
}

void Team::replay(std::uint32_t index, std::uint32_t parity, Time end) noexcept {
  Member& m = members_[index];
  Board& board = m.boards[parity];
  m.engine->network_.mail_to(m.outgoing[parity]);
  try {
    collect(index, parity ^ 1);
    m.engine->replay(end);
  } catch (...) {
    m.error = std::current_exception();
    m.error_time = m.engine->clock_;
    m.error_tie = m.engine->tie_;
    board.failed = true;
  }
  m.replayed = end;
  board.next = m.engine->next_time();
  board.ended = m.engine->ended_at();
  board.letters = 0;
  for (std::size_t to = 0; to < members_.size(); ++to) {
    const Mailbox& box = m.outgoing[parity][to];
    if (!box.empty()) board.letters |= std::uint64_t{1} << to % 64;
    for (const Mail& mail : box) board.next = std::min(board.next, mail.event.time);
  }
  board.reaches = m.engine->network_.reaches_others(end, board.next);
}

}  // namespace fallow::sim
