// What packs calls inside other people's programs takes all its memory on construction.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <random>

#include "trace/trace_test_files.hpp"

namespace {

std::size_t taken = 0;  // times that memory was asked for; there is one thread

}  // namespace

// All other forms but those for aligned memory come here. Inlined, g++ 12 takes malloc() and free() for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++taken;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace fallow::trace {
namespace {

TEST(Recorder, AllocatesNothingAfterSetUp) {
  const testing::TemporaryFolder folder;
  FileWriter w;
  std::string problem;
  ASSERT_EQ(w.open((folder / "a").c_str(), {.world_size = 1}, problem), Status::ok) << problem;
  w.define_rank(0, {});
  const TraceClock clock({0, 0, 1.0});
  RecorderOptions options;
  options.ring_records = 256;
  Recorder r(w, 0, 0, clock, {}, options);
  std::mt19937 engine(1);
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  std::uint64_t now = 0;
  const std::uint64_t before = w.bytes();
  const std::size_t at_set_up = taken;
  for (int i = 0; i < 100'000; ++i) {
    RawRecord* const x = r.begin();
    x->op = static_cast<Op>(random() % kOps);
    x->enter = now += random() % 1000, x->exit = now += random() % 1000;
    x->comm = kCommWorld, x->peer = static_cast<std::int32_t>(random() % 100), x->bytes = random() % 100;
    for (unsigned n = random() % 4; n > 0; --n) r.add_request(*x, random() % 1000);
    if (random() % 8 == 0) {
      for (unsigned n = random() % 100; n > 0; --n) r.add_count(*x, random());
    }
    r.end();
    if (r.pending() > 100) r.pump(~0u, now);
  }
  r.flush();
  EXPECT_EQ(taken, at_set_up);
  EXPECT_EQ(r.dropped(), 0u);
  EXPECT_GT(w.bytes() - before, 1'000'000u) << "several blocks";
}

}  // namespace
}  // namespace fallow::trace
