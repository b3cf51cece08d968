#include "trace_columns.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace nb = nanobind;

namespace fallow {
namespace {

constexpr std::size_t kNumbers = 16;     // fields of a call that are one number
constexpr std::size_t kListed = 1 << 22;  // numbers in lists, after which a batch ends: their places fit in int32

struct List {
  std::vector<std::int32_t> begins{0};
  std::vector<std::uint64_t> values;

  template <class T>
  void add(std::span<const T> more) {
    values.insert(values.end(), more.begin(), more.end());
    begins.push_back(static_cast<std::int32_t>(values.size()));
  }
};

struct Columns {
  std::array<std::vector<std::int64_t>, kNumbers> numbers;
  std::array<List, 4> lists;
  std::size_t calls = 0;

  void add(const trace::CallEvent& e);
  bool long_lists() const {
    return std::ranges::any_of(lists, [](const List& l) { return l.values.size() >= kListed; });
  }
};

void Columns::add(const trace::CallEvent& e) {
  const std::array<std::int64_t, kNumbers> row{
      static_cast<std::int64_t>(e.op), e.flags, e.thread, e.comm, e.site, e.peer, e.tag, e.recv_peer, e.recv_tag, e.root,
      static_cast<std::int64_t>(e.bytes), static_cast<std::int64_t>(e.recv_bytes), static_cast<std::int64_t>(e.enter_ns),
      static_cast<std::int64_t>(e.exit_ns), static_cast<std::int64_t>(e.compute_ns), static_cast<std::int64_t>(e.wait_ns)};
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i].push_back(row[i]);
  lists[0].add(e.counts);
  lists[1].add(e.recv_counts);
  lists[2].add(e.requests);
  lists[3].add(e.completed);
  ++calls;
}

template <class T>
nb::bytes bytes(const std::vector<T>& values) {
  return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

nb::tuple trace_columns(trace::EventSource& source, std::uint32_t rank, std::size_t most) {
  Columns c;
  {
    const nb::gil_scoped_release unlocked;
    trace::CallEvent e;
    while (c.calls < most && !c.long_lists() && source.next(rank, e)) c.add(e);
  }
  nb::list numbers, lists;
  for (const auto& column : c.numbers) numbers.append(bytes(column));
  for (const List& l : c.lists) lists.append(nb::make_tuple(bytes(l.begins), bytes(l.values)));
  return nb::make_tuple(c.calls, numbers, lists);
}

}  // namespace fallow
