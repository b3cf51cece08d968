// A call that a rank is blocked in, or that it computes up to: what replaying and telling of it need. All ranks have
// one at a time, so it leaves out the times and packs the lists.
#pragma once

#include <cstdint>
#include <span>

#include "trace/event.hpp"

namespace fallow::sim {

class KeptCall {
 public:
  void keep(const trace::CallEvent& c) noexcept {
    op_ = c.op;
    flags_ = c.flags;
    comm_ = c.comm;
    site_ = c.site;
    peer_ = c.peer, tag_ = c.tag, recv_peer_ = c.recv_peer, recv_tag_ = c.recv_tag, root_ = c.root;
    bytes_ = c.bytes, recv_bytes_ = c.recv_bytes;
    counts_ = List<std::uint64_t>(c.counts), recv_counts_ = List<std::uint64_t>(c.recv_counts);
    requests_ = List<std::uint32_t>(c.requests), completed_ = List<std::uint32_t>(c.completed);
  }
  /// All but times, of which none is left.
  void restore(trace::CallEvent& c) const noexcept {
    c.op = op_;
    c.flags = flags_;
    c.comm = comm_;
    c.site = site_;
    c.peer = peer_, c.tag = tag_, c.recv_peer = recv_peer_, c.recv_tag = recv_tag_, c.root = root_;
    c.bytes = bytes_, c.recv_bytes = recv_bytes_;
    c.counts = counts_.get(), c.recv_counts = recv_counts_.get();
    c.requests = requests_.get(), c.completed = completed_.get();
  }

 private:
  /// A span in twelve bytes.
  template <class T>
  class List {
   public:
    List() = default;
    explicit List(std::span<const T> s) noexcept : at_(s.data()), count_(static_cast<std::uint32_t>(s.size())) {}
    std::span<const T> get() const noexcept { return {at_, count_}; }

   private:
    const T* at_ = nullptr;
    std::uint32_t count_ = 0;
  } __attribute__((packed, aligned(4)));

  trace::Op op_ = trace::Op::other;
  std::uint16_t flags_ = 0;
  std::uint32_t comm_ = trace::kCommNone, site_ = 0;
  std::int32_t peer_ = trace::kNoPeer, tag_ = trace::kNoTag;
  std::int32_t recv_peer_ = trace::kNoPeer, recv_tag_ = trace::kNoTag, root_ = trace::kNoPeer;
  std::uint64_t bytes_ = 0, recv_bytes_ = 0;
  List<std::uint64_t> counts_, recv_counts_;
  List<std::uint32_t> requests_, completed_;
};
static_assert(sizeof(KeptCall) == 96);

}  // namespace fallow::sim
