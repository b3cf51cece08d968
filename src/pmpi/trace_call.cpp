#include "pmpi/trace_call.hpp"

#include <algorithm>

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

std::uint32_t take(HandleList<std::uint32_t>& list, std::uint64_t handle) noexcept {
  TraceShared& s = runtime().tracer.shared();
  s.lock.lock();
  const std::uint32_t comm = list.take(handle);
  s.lock.unlock();
  return comm;
}

}  // namespace

std::uint32_t take_window(MPI_Win window) noexcept { return take(runtime().tracer.shared().windows, handle_key(window)); }
std::uint32_t take_file(MPI_File file) noexcept { return take(runtime().tracer.shared().files, handle_key(file)); }

void TraceCall::probed(MPI_Message message) noexcept {
  TraceShared& s = shared();
  s.lock.lock();
  s.messages.set(handle_key(message), {r_.comm, r_.peer, r_.tag});
  s.lock.unlock();
}

void TraceCall::takes_message(std::uint64_t message) noexcept {
  TraceShared& s = shared();
  s.lock.lock();
  const ProbedMessage found = s.messages.take(message);
  s.lock.unlock();
  r_.comm = found.comm;
  r_.peer = found.peer;
  r_.tag = found.tag;
}

}  // namespace fallow::pmpi
