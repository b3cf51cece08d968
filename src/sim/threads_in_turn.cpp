#include "sim/threads_in_turn.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/synchronizing.hpp"

namespace fallow::sim {

using trace::CallEvent;
using trace::Op;
using trace::OpKind;

namespace {

/// By blocking call, its non-blocking form; Op::other where it has none.
constexpr auto kStarts = [] {
  std::array<Op, trace::kOps> starts{};
  starts.fill(Op::other);
  for (std::size_t i = 0; i < trace::kOps; ++i) {
    const trace::OpTraits& t = trace::traits(static_cast<Op>(i));
    const bool starts_data = (t.bits & trace::kOpStarts) != 0 && (t.bits & trace::kOpCreates) != 0;
    if (t.kind == OpKind::start && starts_data) starts[static_cast<std::size_t>(t.blocking)] = static_cast<Op>(i);
  }
  return starts;
}();

/// Calls that keep their name where they only begin to wait for all ranks, as there is more to them.
bool begins_by_its_name(Op op) noexcept { return makes_topology(op) || synchronizes_after(op); }

/// What the first half of a call is called; Op::other: it is not cut.
Op start_of(Op op) noexcept {
  if (begins_by_its_name(op)) return op;
  if (synchronizes(op)) return Op::ibarrier;
  return trace::has(op, trace::kOpBlocks) ? kStarts[static_cast<std::size_t>(op)] : Op::other;
}

}  // namespace

void ThreadsInTurn::Kept::keep(const CallEvent& e) {
  event = e;
  counts.assign(e.counts.begin(), e.counts.end());
  recv_counts.assign(e.recv_counts.begin(), e.recv_counts.end());
  requests.assign(e.requests.begin(), e.requests.end());
  completed.assign(e.completed.begin(), e.completed.end());
  ended.clear();
  named = false;
}

void ThreadsInTurn::Kept::give(CallEvent& e) const {
  e = event;
  e.counts = counts, e.recv_counts = recv_counts;
  e.requests = requests, e.completed = completed;
}

ThreadsInTurn::ThreadsInTurn(std::unique_ptr<trace::EventSource> source) : source_(std::move(source)), ranks_(source_->info().ranks.size()) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (info().ranks[r].threads > 1) ranks_[r] = std::make_unique<Rank>();
  }
}

/// Of a call in which another begins.
ThreadsInTurn::How ThreadsInTurn::how(const CallEvent& event) noexcept {
  const OpKind kind = trace::traits(event.op).kind;
  const bool looks = kind == OpKind::wait || kind == OpKind::probe || kind == OpKind::test;
  if (looks || event.op == Op::win_wait || event.op == Op::win_test || event.op == Op::win_start) return How::late;
  return start_of(event.op) != Op::other ? How::cut : How::whole;
}

std::uint32_t ThreadsInTurn::take_number(Rank& rank) {
  if (rank.spare.empty()) return rank.numbers++;
  const std::uint32_t number = rank.spare.back();
  rank.spare.pop_back();
  return number;
}

/// Of the requests that a call makes, which are there from its end on.
void ThreadsInTurn::number_made(Rank& rank, Kept& kept) {
  const CallEvent& e = kept.event;
  if (!trace::has(e.op, trace::kOpCreates)) return;
  for (std::uint32_t& n : kept.requests) {
    const Open made{take_number(rank), e.thread, trace::has(e.op, trace::kOpPersistent), e.enter_ns, e.exit_ns};
    if (const auto ahead = rank.ahead.find(n); ahead != rank.ahead.end() && !made.persistent) {
      if (--ahead->second == 0) rank.ahead.erase(ahead);
      n = made.number;
      continue;
    }
    auto& open = rank.requests[n];
    open.insert(std::upper_bound(open.begin(), open.end(), made, [](const Open& a, const Open& b) { return a.made_ns < b.made_ns; }), made);
    n = made.number;
  }
}

/// Of those that a call starts, ends or frees; when all calls are loaded that began before its end, and those that ended before
/// have theirs. What a thread has made itself is still there, so no other thread's request of that number is meant.
void ThreadsInTurn::number_used(Rank& rank, Kept& kept) {
  if (std::exchange(kept.named, true)) return;
  const CallEvent& e = kept.event;
  const auto find = [&](std::uint32_t recorded, bool last, bool waits) {
    auto& open = rank.requests[recorded];
    if (open.empty() && !waits) return take_number(rank);  // which is not there, and is told so
    if (open.empty()) {  // it is made after this, by times that were taken before its number was
      ++rank.ahead[recorded];
      return trace::kNoRequest;
    }
    auto made = std::find_if(open.begin(), open.end(), [&](const Open& o) { return o.made_ns > e.exit_ns; });
    if (made == open.begin()) made = open.end();  // the times of its making and its end are of before its number's
    auto found = std::find_if(open.begin(), made, [&](const Open& o) { return o.thread == e.thread; });
    if (found == made) found = open.begin();
    if (waits && found->begun_ns >= e.exit_ns && !found->persistent) {  // likewise
      open.erase(found);
      return trace::kNoRequest;
    }
    const std::uint32_t number = found->number;
    if (last && (!found->persistent || e.op == Op::request_free)) {
      kept.ended.push_back(number);
      open.erase(found);
    }
    return number;
  };
  if (!trace::has(e.op, trace::kOpCreates)) {
    for (std::uint32_t& n : kept.requests) n = find(n, e.op == Op::request_free, false);
  }
  for (std::uint32_t& n : kept.completed) n = find(n, true, true);
}

/// Of the calls under way that ended by then, in that order.
void ThreadsInTurn::number_until(Rank& rank, std::uint64_t ns) {
  for (;;) {
    Thread* first = nullptr;
    for (Thread& t : rank.threads) {
      if (t.pending && !t.late.named && t.exit_ns <= ns && (first == nullptr || t.exit_ns < first->exit_ns)) first = &t;
    }
    if (first == nullptr) return;
    number_used(rank, first->late);
  }
}

void ThreadsInTurn::load(std::uint32_t number, Rank& rank) {
  if (rank.loaded || rank.ended) return;
  CallEvent e;
  rank.ended = !source_->next(number, e);
  if (rank.ended) return;
  rank.coming.keep(e);
  number_made(rank, rank.coming);
  rank.loaded = true;
  if (e.thread >= rank.threads.size()) rank.threads.resize(std::size_t{e.thread} + 1);
}

/// The rank's next event is at `ns`: what it has computed since the last one becomes due. `own_ns`: what its thread has, if it
/// comes from outside of MPI; else kInside.
void ThreadsInTurn::compute_until(Rank& rank, std::uint64_t ns, const Thread& thread, std::uint64_t own_ns) const {
  std::uint64_t computed = 0;
  if (info().clock == trace::ComputeClock::cpu) {
    const std::uint64_t meanwhile = rank.charged_ns - thread.charged_ns;  // by others, at the same time as it
    if (own_ns != kInside && own_ns > meanwhile) computed = own_ns - meanwhile;
  } else if (rank.charged_ns == 0 && rank.mark_ns == 0) {
    computed = own_ns;
  } else {
    const bool outside = own_ns != kInside || std::any_of(rank.threads.begin(), rank.threads.end(), [](const Thread& t) { return t.seen && !t.pending; });
    if (outside && ns > rank.mark_ns) computed = ns - rank.mark_ns;
  }
  rank.mark_ns = std::max(rank.mark_ns, ns);
  rank.charged_ns += computed;
  rank.owed_ns += computed;
}

void ThreadsInTurn::give(Rank& rank, CallEvent& event) {
  rank.given.event.compute_ns = std::exchange(rank.owed_ns, 0);
  rank.spare.insert(rank.spare.end(), rank.given.ended.begin(), rank.given.ended.end());
  rank.given.give(event);
}

/// What ends before the next call begins, and so is to come before it.
bool ThreadsInTurn::give_late(Rank& rank, CallEvent& event) const {
  Thread* first = nullptr;
  for (Thread& t : rank.threads) {
    if (t.pending && (first == nullptr || t.exit_ns < first->exit_ns)) first = &t;
  }
  if (first == nullptr || (!rank.ended && rank.coming.event.enter_ns < first->exit_ns)) return false;
  compute_until(rank, first->exit_ns, *first, kInside);
  number_used(rank, first->late);
  first->pending = false;
  first->charged_ns = rank.charged_ns;
  std::swap(rank.given, first->late);
  give(rank, event);
  return true;
}

bool ThreadsInTurn::next(std::uint32_t number, CallEvent& event) {
  if (ranks_[number] == nullptr) return source_->next(number, event);
  Rank& rank = *ranks_[number];
  for (;;) {
    load(number, rank);
    if (give_late(rank, event)) return true;
    if (rank.ended) return false;
    std::swap(rank.given, rank.coming);
    rank.loaded = false;
    load(number, rank);
    CallEvent& call = rank.given.event;
    Thread& thread = rank.threads[call.thread];
    const bool shared = !rank.ended && rank.coming.event.enter_ns < call.exit_ns;
    const How done = shared ? how(call) : How::whole;
    compute_until(rank, call.enter_ns, thread, call.compute_ns);
    thread.seen = true;
    thread.exit_ns = call.exit_ns;
    thread.pending = done != How::whole;
    if (done == How::late) {
      std::swap(rank.given, thread.late);
      continue;
    }
    if (done == How::cut) {
      CallEvent end;
      end.op = Op::wait;
      end.site = call.site, end.thread = call.thread;
      const bool exchanges = call.op == Op::sendrecv || call.op == Op::sendrecv_replace;
      end.flags = may_end_early(call.op) ? kEventEndsEarly : exchanges ? kEventExchanged : std::uint16_t{0};
      end.enter_ns = end.exit_ns = call.exit_ns;
      thread.late.keep(end);
      const std::uint32_t made = take_number(rank);
      thread.late.completed.assign(1, made);
      thread.late.ended.assign(1, made);
      rank.given.requests.assign(1, made);
      thread.late.named = rank.given.named = true;
      call.op = makes_topology(call.op) && call.comm == trace::kCommNone ? Op::ibarrier : start_of(call.op);
      if (begins_by_its_name(call.op)) call.flags |= kEventStarts;
      call.exit_ns = call.enter_ns;
    } else {
      rank.mark_ns = std::max(rank.mark_ns, call.exit_ns);
      thread.charged_ns = rank.charged_ns;
    }
    number_until(rank, rank.ended ? thread.exit_ns : std::min(thread.exit_ns, rank.coming.event.enter_ns));
    number_used(rank, rank.given);
    give(rank, event);
    return true;
  }
}

void ThreadsInTurn::again(std::uint32_t number, CallEvent& event) {
  if (ranks_[number] == nullptr) return source_->again(number, event);
  ranks_[number]->given.give(event);
}

void ThreadsInTurn::rewind(std::uint32_t number) {
  source_->rewind(number);
  if (ranks_[number] != nullptr) *ranks_[number] = Rank{};
}

std::unique_ptr<trace::EventSource> with_threads_in_turn(std::unique_ptr<trace::EventSource> source) {
  const auto& ranks = source->info().ranks;
  const bool several = std::any_of(ranks.begin(), ranks.end(), [](const trace::RankInfo& r) { return r.threads > 1; });
  if (!several) return source;
  return std::make_unique<ThreadsInTurn>(std::move(source));
}

}  // namespace fallow::sim
