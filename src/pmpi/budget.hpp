// The slowdown budget: what sleeping may cost, and what it has cost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace fallow::pmpi {

/// What one node's account earns of the accepted slowdown: all nodes together as much as is accepted. Where ranks wait for each
/// other, delays of nodes that sleep at different times follow one another. `local` ranks of `world` are here; 0: not known.
constexpr double share_of_node(std::int32_t world, std::int32_t local) noexcept {
  const std::int32_t nodes = local > 0 ? (world + local - 1) / local : 0;
  return 1.0 / std::max(nodes, 2);
}

/// The account of a job's ranks on one node, in ticks. Run time earns `slowdown` x time, once for all of them; delays
/// caused by sleeping are paid from it, those of several ranks at the same time once. It never holds more than what
/// `kHorizonSeconds` earn, so that a quiet hour does not pay for a slow minute.
///
/// Lies in shared memory: all zero is the state before open(), any process may call any member at any time.
class Budget {
 public:
  /// The first rank opens it, the others find it open.
  void open(double slowdown, double ticks_per_second, std::uint64_t now) noexcept {
    std::uint64_t never = 0;
    if (!last_.compare_exchange_strong(never, std::max<std::uint64_t>(now, 1))) return;
    const double cap = std::max(slowdown * kHorizonSeconds, kLeastSeconds) * ticks_per_second;
    slowdown_.store(slowdown, std::memory_order_relaxed);
    cap_.store(cap, std::memory_order_relaxed);
    least_.store(static_cast<std::uint64_t>(kEarningSeconds * ticks_per_second), std::memory_order_relaxed);
    add(cap / 4);  // the first waits are sleepable before anything was earned
  }

  /// Only looks, while the last time was less than kEarningSeconds ago: ranks that wait ask all the time, and where each of many writes
  /// to the account, each waits for the others.
  void earn(std::uint64_t now) noexcept {
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    do {
      if (now <= last || now - last < least_.load(std::memory_order_relaxed)) return;
    } while (!last_.compare_exchange_weak(last, now, std::memory_order_relaxed));
    add(slowdown_.load(std::memory_order_relaxed) * static_cast<double>(now - last));
    const double over = balance() - cap_.load(std::memory_order_relaxed);
    if (over > 0) add(-over);
  }

  /// Pays for a delay from tick `due` to `end`, as far as that time is not paid for. Returns what was paid. Delays are told in any order:
  /// of those that overlap, one that began earlier may come after one that lasted longer. How far back others are paid for is known of
  /// the latest stretch of time alone; before that, of what followed another, nothing is paid twice.
  std::uint64_t pay(std::uint64_t due, std::uint64_t end) noexcept {
    if (end <= due) return 0;
    std::uint64_t until = paid_until_.load(std::memory_order_relaxed);
    while (end > until && !paid_until_.compare_exchange_weak(until, end, std::memory_order_relaxed)) {
    }
    std::uint64_t paid = 0;
    if (due > until) {
      paid_before_.store(until, std::memory_order_relaxed);
      paid_from_.store(due, std::memory_order_relaxed);
      paid = end - due;
    } else {
      paid = end > until ? end - until : 0;
      const std::uint64_t earliest = std::max(due, paid_before_.load(std::memory_order_relaxed));
      std::uint64_t from = paid_from_.load(std::memory_order_relaxed);
      const auto reaches_back = [&] { return earliest < from && earliest < end; };
      while (reaches_back() && !paid_from_.compare_exchange_weak(from, earliest, std::memory_order_relaxed)) {
      }
      if (reaches_back()) paid += std::min(from, end) - earliest;
    }
    note_share(end - due, paid);
    pay(paid);
    return paid;
  }

  /// Pays for ticks that somebody lost.
  void pay(std::uint64_t ticks) noexcept { add(-static_cast<double>(ticks)); }

  /// Gives back what was paid for a delay that turned out to cost nobody anything.
  void pay_back(std::uint64_t ticks) noexcept { add(static_cast<double>(ticks)); }

  double balance() const noexcept { return balance_.load(std::memory_order_relaxed); }

  /// More was paid than there was, by more than a delay or two: nothing may sleep.
  bool in_debt() const noexcept { return balance() < -cap_.load(std::memory_order_relaxed) / 8; }

  /// The largest delay, in ticks, that leaves enough for those after it.
  double bearable() const noexcept { return std::max(balance(), cap_.load(std::memory_order_relaxed) / 16) / 8; }

  /// Of the latest delays, the part that was paid: while another holds up the job, delay costs nothing more.
  double own_share() const noexcept {
    const double unknown = cap_.load(std::memory_order_relaxed) * kUnknownShare;
    const double lasted = lasted_.load(std::memory_order_relaxed), shared = shared_.load(std::memory_order_relaxed);
    return 1.0 - std::clamp(shared / std::max(lasted, unknown), 0.0, 1.0);
  }

  /// What a tick of delay costs against a tick of sleep saved: 1 with a full account, more as it runs out, all with debts. For whom
  /// does as others do, less: they hold up the job anyway.
  double price(bool with_others) const noexcept {
    const double cap = cap_.load(std::memory_order_relaxed), left = balance();
    if (in_debt()) return kNoSleep;
    return left <= cap * 1e-3 ? 1e3 : std::max(1.0, (with_others ? own_share() : 1.0) * cap / left);
  }

 private:
  static constexpr double kNoSleep = 1e12;
  static constexpr double kHorizonSeconds = 2.0;
  static constexpr double kLeastSeconds = 0.001;
  static constexpr double kEarningSeconds = 20e-6;  // earns 200 ns at 1 %: less than any delay

  static constexpr double kUnknownShare = 1.0 / 64, kShareMemory = 1.0 / 16;  // delays, as parts of what the account holds

  void add(double ticks) noexcept { balance_.fetch_add(ticks, std::memory_order_relaxed); }

  /// Half of what is known is forgotten now and then; that several do so at a time does no harm.
  void note_share(std::uint64_t delay, std::uint64_t paid) noexcept {
    const double lasted = lasted_.fetch_add(static_cast<double>(delay), std::memory_order_relaxed);
    const double shared = shared_.fetch_add(static_cast<double>(delay - paid), std::memory_order_relaxed);
    if (lasted <= cap_.load(std::memory_order_relaxed) * kShareMemory) return;
    lasted_.store(lasted / 2, std::memory_order_relaxed);
    shared_.store(shared / 2, std::memory_order_relaxed);
  }

  std::atomic<double> slowdown_{0}, cap_{0}, balance_{0};
  std::atomic<double> lasted_{0}, shared_{0};  // the latest delays, and what of them others paid
  std::atomic<std::uint64_t> last_{0}, least_{0};
  std::atomic<std::uint64_t> paid_before_{0}, paid_from_{0}, paid_until_{0};  // the latest stretch, and when the one before it was over
};

}  // namespace fallow::pmpi
