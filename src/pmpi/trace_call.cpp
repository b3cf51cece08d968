#include "pmpi/trace_call.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "trace/crc32c.hpp"

namespace fallow::pmpi {

void keep_requests(ThreadTrace& trace, std::int64_t count, const MPI_Request* requests) noexcept {
  const std::size_t n = count > 0 ? static_cast<std::size_t>(count) : 0;
  if (n > trace.handles.size()) {
    try {
      trace.handles.resize(n);
    } catch (...) {
      // completed() leaves out those that found no room.
    }
  }
  const std::size_t kept = std::min(n, trace.handles.size());
  for (std::size_t i = 0; i < kept; ++i) {
    trace.handles[i] = requests[i] == MPI_REQUEST_NULL ? 0 : handle_key(requests[i]);
  }
}

namespace {

template <class Value>
Value take(HandleList<Value>& list, std::uint64_t handle) noexcept {
  TraceShared& s = runtime().tracer.shared();
  s.lock.lock();
  const Value found = list.take(handle);
  s.lock.unlock();
  return found;
}

}  // namespace

std::uint32_t take_window(MPI_Win window) noexcept { return take(runtime().tracer.shared().windows, handle_key(window)).comm; }
std::uint32_t take_file(MPI_File file) noexcept { return take(runtime().tracer.shared().files, handle_key(file)); }
ProbedMessage take_message(MPI_Message message) noexcept { return take(runtime().tracer.shared().messages, handle_key(message)); }

void TraceCall::cancels(MPI_Request request) noexcept {
  if (request == MPI_REQUEST_NULL) return;
  TraceShared& s = shared();
  s.lock.lock();
  const std::uint32_t id = s.requests.find(handle_key(request));
  s.doubts.cancelling(id);
  s.lock.unlock();
  name(id);
}

/// Of request number `i` of those given to the call, which is still known.
std::uint64_t TraceCall::outcome_of(std::int64_t i, const MPI_Status& status) noexcept {
  const std::uint64_t handle = i >= 0 && static_cast<std::size_t>(i) < t_.handles.size() ? t_.handles[static_cast<std::size_t>(i)] : 0;
  if (handle == 0) return trace::kOutcomeUnsaid;
  TraceShared& s = shared();
  s.lock.lock();
  const std::uint32_t id = s.requests.completing(handle, own_thread());
  const bool open = s.doubts.is_open(id), cancelling = s.doubts.is_cancelling(id);
  s.lock.unlock();
  int cancelled = 0;
  if (cancelling) runtime().mpi.test_cancelled(&status, &cancelled);
  if (cancelled != 0) return trace::kOutcomeCancelled;
  if (open && status.MPI_SOURCE >= 0) return trace::kOutcomeFrom + static_cast<std::uint64_t>(status.MPI_SOURCE);
  return cancelling ? trace::kOutcomeMatched : trace::kOutcomeUnsaid;
}

void TraceCall::add_outcomes(std::int64_t count, const int* indices, const MPI_Status* statuses) noexcept try {
  if (count <= 0 || statuses == nullptr || statuses == MPI_STATUSES_IGNORE || !has_status(statuses)) return;
  auto& found = t_.outcomes;
  found.clear();
  bool any = false;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t i = indices != nullptr ? indices[k] : k;
    const bool given = i >= 0 && static_cast<std::size_t>(i) < t_.handles.size() && t_.handles[static_cast<std::size_t>(i)] != 0;
    if (!given) continue;  // completed() leaves it out too
    const std::uint64_t outcome = outcome_of(i, statuses[k]);
    any = any || outcome != trace::kOutcomeUnsaid;
    found.push_back(outcome);
    found.push_back(outcome >= trace::kOutcomeFrom ? static_cast<std::uint64_t>(statuses[k].MPI_TAG) : 0);
  }
  if (!any) return;
  for (std::size_t k = 0; k < found.size(); k += 2) t_.recorder.add_count(r_, found[k]);
  for (std::size_t k = 1; k < found.size(); k += 2) t_.recorder.add_recv_count(r_, found[k]);
} catch (...) {
  flag(trace::kEventCountsLost);  // no memory
}

void TraceCall::made_between(MPI_Comm made, const char* tag) noexcept {
  const std::string_view text(tag != nullptr ? tag : "");
  runtime().comms.insert_made(made, {.tag = trace::crc32c(std::as_bytes(std::span(text)))});
}

void TraceCall::probed(MPI_Message message) noexcept {
  TraceShared& s = shared();
  s.lock.lock();
  s.messages.set(handle_key(message), {r_.comm, r_.peer, r_.tag});
  s.lock.unlock();
}

void TraceCall::topology(MPI_Comm made) noexcept try {
  if (made == MPI_COMM_NULL) {
    comm_number(trace::kCommNone);
    return;
  }
  comm(made);
  if (info_ == nullptr || info_->neighbors + info_->in_neighbors == 0) return;
  std::vector<int> to, from;
  find_neighbors(made, *info_, to, from);
  const auto named = [](int rank) { return rank >= 0 ? static_cast<std::uint64_t>(rank) + 1 : 0; };
  for (const int rank : to) t_.recorder.add_count(r_, named(rank));
  for (const int rank : from) t_.recorder.add_recv_count(r_, named(rank));
} catch (...) {
  flag(trace::kEventCountsLost);
}

void TraceCall::members(MPI_Group group) noexcept try {
  int size = 0;
  runtime().mpi.group_size(group, &size);
  const auto world = runtime().world.ranks(runtime().mpi, group, size);
  if (std::find(world.begin(), world.end(), -1) != world.end()) return;
  for (const int rank : world) t_.recorder.add_count(r_, static_cast<std::uint64_t>(rank));
} catch (...) {
  flag(trace::kEventCountsLost);
}

}  // namespace fallow::pmpi
