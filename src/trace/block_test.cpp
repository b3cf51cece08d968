// Encoder and decoder of blocks against each other, and what they cost.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "trace/block_decoder.hpp"
#include "trace/block_encoder.hpp"
#include "trace/crc32c.hpp"
#include "trace/synthetic.hpp"

namespace fallow::trace {
namespace {

struct Stored {
  CallEvent event;
  std::vector<std::uint64_t> counts, recv_counts;
  std::vector<std::uint32_t> requests, completed;
  explicit Stored(const CallEvent& e)
      : event(e),
        counts(e.counts.begin(), e.counts.end()),
        recv_counts(e.recv_counts.begin(), e.recv_counts.end()),
        requests(e.requests.begin(), e.requests.end()),
        completed(e.completed.begin(), e.completed.end()) {
    event.counts = event.recv_counts = {};
    event.requests = event.completed = {};
  }
};

struct Packed {
  std::vector<std::vector<std::byte>> blocks;
  std::size_t bytes = 0;
};

class Packer {
 public:
  explicit Packer(EncoderOptions options) : encoder_(3, 1, options) {}
  void operator()(const CallEvent& e) {
    if (!encoder_.add(e)) {
      flush();
      ASSERT_TRUE(encoder_.add(e));
    }
  }
  void flush() {
    const auto b = encoder_.finish();
    if (b.empty()) return;
    out_.blocks.emplace_back(b.begin(), b.end());
    out_.bytes += b.size() + 24;  // with the frame that a file puts around
  }
  Packed take() {
    flush();
    return std::move(out_);
  }
  BlockEncoder encoder_;
  Packed out_;
};

std::vector<Stored> unpack(const Packed& p) {
  std::vector<Stored> out;
  BlockDecoder d;
  CallEvent e;
  for (const auto& b : p.blocks) {
    d.begin(b);
    while (d.next(e)) out.emplace_back(e);
  }
  return out;
}

void expect_same(const Stored& a, const Stored& b, bool times = true) {
  const CallEvent &x = a.event, &y = b.event;
  EXPECT_EQ(x.op, y.op);
  EXPECT_EQ(x.flags, y.flags);
  EXPECT_EQ(x.comm, y.comm);
  EXPECT_EQ(x.site, y.site);
  EXPECT_EQ(x.peer, y.peer);
  EXPECT_EQ(x.recv_peer, y.recv_peer);
  EXPECT_EQ(x.root, y.root);
  EXPECT_EQ(x.tag, y.tag);
  EXPECT_EQ(x.recv_tag, y.recv_tag);
  EXPECT_EQ(x.bytes, y.bytes);
  EXPECT_EQ(x.recv_bytes, y.recv_bytes);
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.recv_counts, b.recv_counts);
  EXPECT_EQ(a.requests, b.requests);
  EXPECT_EQ(a.completed, b.completed);
  if (!times) return;
  EXPECT_EQ(x.enter_ns, y.enter_ns);
  EXPECT_EQ(x.exit_ns, y.exit_ns);
  EXPECT_EQ(x.wait_ns, y.wait_ns);
  EXPECT_EQ(x.compute_ns, y.compute_ns);
}

std::vector<Stored> random_events(std::uint32_t seed, std::size_t n) {
  std::mt19937_64 r(seed);
  const auto below = [&r](std::uint64_t k) { return r() % k; };
  std::vector<Stored> out;
  std::uint64_t now = 5, last = 0;
  for (std::size_t i = 0; i < n; ++i) {
    CallEvent e;
    e.op = static_cast<Op>(below(kOps));
    e.flags = static_cast<std::uint16_t>(below(4) == 0 ? r() : 0);
    e.comm = static_cast<std::uint32_t>(below(8) == 0 ? r() : below(4));
    e.site = static_cast<std::uint32_t>(below(5));
    e.peer = static_cast<std::int32_t>(below(16) == 0 ? r() : below(4));
    e.recv_peer = below(3) == 0 ? -3 : kNoPeer;
    e.tag = static_cast<std::int32_t>(below(3) == 0 ? r() : 1);
    e.bytes = below(3) == 0 ? r() : 8;
    e.recv_bytes = below(9) == 0 ? r() : 0;
    now += below(20) == 0 ? r() >> (20 + below(40)) : below(300);
    e.enter_ns = now;
    now += below(20) == 0 ? r() >> (20 + below(40)) : below(300);
    e.exit_ns = now;
    e.wait_ns = below(3) == 0 ? below(e.exit_ns - e.enter_ns + 1) : 0;
    e.compute_ns = e.enter_ns - (last == 0 ? e.enter_ns : last);
    if ((e.flags & kEventCpuTime) != 0) e.compute_ns = r() >> 10;
    last = e.exit_ns;
    Stored s(e);
    for (std::uint64_t k = below(4) == 0 ? below(9) : 0; k > 0; --k) s.counts.push_back(r() >> below(64));
    for (std::uint64_t k = below(9) == 0 ? below(9) : 0; k > 0; --k) s.recv_counts.push_back(below(10));
    for (std::uint64_t k = below(3); k > 0; --k) s.requests.push_back(static_cast<std::uint32_t>(below(6)));
    for (std::uint64_t k = below(3); k > 0; --k) s.completed.push_back(static_cast<std::uint32_t>(below(6)));
    out.push_back(std::move(s));
  }
  return out;
}

Packed pack(const std::vector<Stored>& events, EncoderOptions options) {
  Packer p(options);
  for (const Stored& s : events) {
    CallEvent e = s.event;
    e.counts = s.counts, e.recv_counts = s.recv_counts;
    e.requests = s.requests, e.completed = s.completed;
    p(e);
  }
  return p.take();
}

void expect_back_exactly(const std::vector<Stored>& events) {
  const auto back = unpack(pack(events, {.exact_times = true}));
  ASSERT_EQ(back.size(), events.size());
  for (std::size_t i = 0; i < events.size() && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    expect_same(events[i], back[i]);
  }
}

TEST(Block, RandomEventsComeBackExactly) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) expect_back_exactly(random_events(seed, 3000));
}

/// Loops over few calls, which change, and in which a call follows now this and now that one.
std::vector<Stored> changing_loops(std::uint32_t seed, std::size_t n) {
  std::mt19937 random(seed);
  const auto below = [&random](std::uint32_t k) { return static_cast<std::uint32_t>(random() % k); };
  std::vector<Stored> out;
  std::vector<std::uint32_t> loop;
  std::uint64_t now = 0;
  while (out.size() < n) {
    if (loop.empty() || below(4) == 0) {
      loop.resize(1 + below(9));
      for (std::uint32_t& call : loop) call = below(12);
    }
    for (const std::uint32_t call : loop) {
      CallEvent e;
      e.op = call % 2 == 0 ? Op::isend : Op::allreduce;
      e.comm = kCommWorld;
      e.site = below(30) == 0 ? below(12) : call;
      e.peer = static_cast<std::int32_t>(call);
      e.bytes = below(20) == 0 ? below(4) : 8;
      if (call == 3) e.flags = kEventCpuTime, e.compute_ns = 500 + below(5);
      e.enter_ns = now + (call == 3 ? 600 : 100);
      if (call != 3) e.compute_ns = out.empty() ? 0 : e.enter_ns - now;
      e.exit_ns = now = e.enter_ns + 50 + below(3);
      out.emplace_back(e);
    }
  }
  return out;
}

TEST(Block, WhatFollowsNowThisAndNowThatComesBackExactly) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) expect_back_exactly(changing_loops(seed, 8000));
}

/// Six calls of a loop, by number: what is not a time of call `n`.
CallEvent call_of_a_loop(std::uint32_t n, std::span<const std::uint32_t> request) {
  CallEvent e;
  e.op = n % 3 == 0 ? Op::irecv : n % 3 == 1 ? Op::allreduce : Op::wait;
  e.comm = kCommWorld;
  e.site = n;
  e.peer = static_cast<std::int32_t>(n % 4);
  e.bytes = 8 * n;
  e.tag = n % 3 == 0 ? static_cast<std::int32_t>(n) : kNoTag;
  if (n % 3 == 0) e.requests = request;
  if (n % 3 == 2) e.completed = request;
  return e;
}

TEST(Block, AnEventAddedAgainIsWhatItWouldBeAddedAnew) {
  std::mt19937 random(7);
  for (const unsigned kind : {0u, 1u, 2u, 3u}) {
    const bool waits = (kind & 1) != 0;
    const EncoderOptions options{.exact_times = (kind & 2) == 0, .max_events = 3000};
    BlockEncoder plain(0, 0, options), again(0, 0, options);
    std::uint64_t now = 1000, repeated = 0;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
      const std::uint32_t n = random() % 50 == 0 ? static_cast<std::uint32_t>(random() % 12) : i % 6;  // not always the one that is due
      const std::uint32_t request = random() % 40 == 0 ? 1 : 0;
      CallEvent e = call_of_a_loop(n, {&request, 1});
      e.flags = i / 5000 % 2 == 1 ? kEventCpuTime : 0;
      e.enter_ns = now += random() % (i / 2000 % 2 == 0 ? 3000 : 300);  // those below 2048 have a code of their own
      e.exit_ns = now += random() % 100 == 0 ? random() : random() % 500;
      if (random() % 500 == 0) e.enter_ns -= random() % 4000;  // before the last one's exit
      e.compute_ns = e.flags != 0 ? random() % 1000 : 0;
      e.wait_ns = waits ? random() % 300 : 0;
      EventKey key;
      key.words = {n, request, e.flags};
      const EventTimes times{e.enter_ns, e.exit_ns, e.compute_ns, e.wait_ns, e.flags != 0};
      const bool is_again = again.add_again([&key](const EventKey& known) { return known.words == key.words; }, times);
      repeated += is_again ? 1 : 0;
      const bool fits = plain.add(e);
      ASSERT_EQ(is_again || again.add(e, key), fits);
      if (fits) continue;
      const auto a = plain.finish(), b = again.finish();
      ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
      ASSERT_TRUE(plain.add(e) && again.add(e, key));
    }
    const auto a = plain.finish(), b = again.finish();
    ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    EXPECT_GT(repeated, 10'000u);
  }
}

TEST(Block, ATimeThatHasSettledMayJump) {
  for (std::uint64_t jump = 1; jump < 100; ++jump) {  // by what has short codes, and by what has not
    BlockEncoder plain(0, 0, {}), again(0, 0, {});
    EventKey key;
    key.words = {1};
    std::vector<Stored> events;
    for (std::uint64_t i = 0, now = 0; i < 100; ++i) {
      CallEvent e = call_of_a_loop(0, {});
      e.enter_ns = now += 1000 + (i == 70 ? jump : 0);
      e.exit_ns = now += 500 - (i == 90 ? jump : 0);
      e.compute_ns = e.enter_ns - (events.empty() ? e.enter_ns : events.back().event.exit_ns);
      const EventTimes times{e.enter_ns, e.exit_ns, 0, 0, false};
      ASSERT_TRUE(plain.add(e));
      ASSERT_TRUE(again.add_again([](const EventKey&) { return true; }, times) || again.add(e, key));
      events.emplace_back(e);
    }
    const auto a = plain.finish(), b = again.finish();
    ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << jump;
    Packed packed;
    packed.blocks.emplace_back(b.begin(), b.end());
    const std::vector<Stored> back = unpack(packed);
    ASSERT_EQ(back.size(), events.size());
    for (std::size_t i = 0; i < back.size(); ++i) expect_same(events[i], back[i]);
  }
}

TEST(TimeCode, RoundsToTheNearest) {
  for (const unsigned bits : {kMinTimeBits, 11u}) {
    for (std::uint64_t d = 0; d < 100'000; d += 1 + d / 200) {
      const std::uint64_t code = time_code_round(d, bits);
      const auto off = [&](std::uint64_t c) { return std::abs(static_cast<std::int64_t>(time_code_value(c, bits) - d)); };
      EXPECT_LE(off(code), off(code + 1)) << d << " with " << bits;
      if (code > 0) {
        EXPECT_LE(off(code), off(code - 1)) << d << " with " << bits;
      }
    }
  }
}

TEST(Block, RoundedTimesStayWithinTheirPrecision) {
  auto events = random_events(7, 3000);
  for (std::size_t i = 0; i < events.size(); i += 2) events[i].event.wait_ns = events[i].event.exit_ns - events[i].event.enter_ns;
  const auto back = unpack(pack(events, {.time_bits = 11, .exact_times = false}));
  ASSERT_EQ(back.size(), events.size());
  std::uint64_t longest = 0;
  std::uint64_t last = events[0].event.enter_ns;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const CallEvent &a = events[i].event, &b = back[i].event;
    expect_same(events[i], back[i], false);
    longest = std::max({longest, a.exit_ns - a.enter_ns, a.enter_ns - last});
    last = a.exit_ns;
    const double duration = static_cast<double>(a.exit_ns - a.enter_ns), got = static_cast<double>(b.exit_ns - b.enter_ns);
    EXPECT_NEAR(got, duration, duration / 1000.0 + 1) << i;
    EXPECT_LE(b.wait_ns, b.exit_ns - b.enter_ns) << i;
    EXPECT_LE(std::abs(static_cast<double>(a.exit_ns) - static_cast<double>(b.exit_ns)), static_cast<double>(longest) / 500.0 + 1) << i;
  }
}

TEST(Block, MoreKindsOfCallsThanOneHoldsAreInSeveral) {
  std::vector<Stored> events;
  for (std::uint32_t i = 0; i < 3 * kTemplates; ++i) {
    CallEvent e;
    e.op = Op::barrier, e.site = i, e.enter_ns = 10 * i, e.exit_ns = e.enter_ns + 5;
    events.emplace_back(e);
  }
  Packer pack({});
  for (const Stored& e : events) pack(e.event);
  const Packed packed = pack.take();
  EXPECT_GE(packed.blocks.size(), 3u);
  const std::vector<Stored> back = unpack(packed);
  ASSERT_EQ(back.size(), events.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    ASSERT_EQ(back[i].event.site, i);
    ASSERT_EQ(back[i].event.enter_ns, events[i].event.enter_ns);
  }
}

TEST(Block, ListsTooLongForABlockAreLostAndSaidToBe) {
  const std::vector<std::uint64_t> counts(100, 5);
  CallEvent e;
  e.op = Op::alltoallv;
  e.bytes = 500;
  e.counts = counts;
  Packer p({.list_words = 64});
  p(e);
  const auto back = unpack(p.take());
  ASSERT_EQ(back.size(), 1u);
  EXPECT_TRUE(back[0].counts.empty());
  EXPECT_EQ(back[0].event.flags, kEventCountsLost);
  EXPECT_EQ(back[0].event.bytes, 500u);
}

double cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

double measure(const char* name, EncoderOptions options, double jitter, const std::function<void(synthetic::Program<std::function<void(const CallEvent&)>>&)>& step) {
  std::vector<Stored> events;
  synthetic::Program<std::function<void(const CallEvent&)>> program([&](const CallEvent& e) { events.emplace_back(e); }, 42, jitter);
  while (program.events() < 200'000) step(program);
  Packer p(options);
  const double start = cpu_ns();
  for (const Stored& s : events) {
    CallEvent e = s.event;
    e.requests = s.requests, e.completed = s.completed;
    p(e);
  }
  const Packed packed = p.take();
  const auto n = static_cast<double>(events.size());
  const double encode = (cpu_ns() - start) / n;
  std::size_t decoded = 0;
  BlockDecoder d;
  CallEvent e;
  const double begin = cpu_ns();
  for (const auto& b : packed.blocks) {
    d.begin(b);
    while (d.next(e)) ++decoded;
  }
  const double decode = (cpu_ns() - begin) / n;
  EXPECT_EQ(decoded, events.size());
  std::printf("  %-12s jitter %4.0f %%, %s: %5.2f bytes, encode %4.0f ns, decode %4.0f ns per event\n", name, jitter * 100,
              options.exact_times ? "exact  " : "rounded", static_cast<double>(packed.bytes) / n, encode, decode);
  return static_cast<double>(packed.bytes) / n;
}

TEST(Block, RepeatingProgramsTakeFewBytes) {
  for (const bool exact : {false, true}) {
    const EncoderOptions o{.exact_times = exact};
    for (const double jitter : {0.02, 0.1, 0.5}) {
      const double stencil = measure("stencil", o, jitter, [](auto& p) { p.stencil_step(); });
      const double wavefront = measure("wavefront", o, jitter, [](auto& p) { p.wavefront(64); p.allreduce(40, 75); });
      const double multigrid = measure("multigrid", o, jitter, [](auto& p) { p.multigrid_cycle(6); });
      const double particles = measure("particles", o, jitter, [](auto& p) { p.particles_step(); });
      EXPECT_LE(stencil, 4.0);
      EXPECT_LE(wavefront, 4.0);
      EXPECT_LE(multigrid, 4.0);
      EXPECT_LE(particles, 9.5);  // random sizes both ways in every call
    }
  }
}

TEST(Crc32c, KnownValues) {
  const char* text = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(text, 9))), 0xe3069283u);
  EXPECT_EQ(crc32c(std::as_bytes(std::span(text + 4, 5)), crc32c(std::as_bytes(std::span(text, 4)))), 0xe3069283u);
}

TEST(Lz, PacksAndUnpacksAnything) {
  std::mt19937 random(1);
  auto table = std::make_unique<LzTable>();
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> in(random() % 5000);
    const auto kinds = static_cast<unsigned>(1 + random() % 40);
    for (std::size_t k = 0; k < in.size(); ++k) in[k] = k > 50 && random() % 30 != 0 ? in[k - 50] : static_cast<std::byte>(random() % kinds);
    std::vector<std::byte> out(in.size()), back(in.size());
    const std::size_t n = lz_pack(in, out, *table);
    if (n == 0) continue;
    ASSERT_TRUE(lz_unpack(std::span(out).first(n), back));
    ASSERT_EQ(in, back);
  }
}

TEST(Lz, RefusesWhatIsDamaged) {
  const auto unpacks = [](std::initializer_list<unsigned> packed, std::size_t bytes) {
    std::vector<std::byte> in, out(bytes);
    for (const unsigned b : packed) in.push_back(static_cast<std::byte>(b));
    return lz_unpack(in, out);
  };
  EXPECT_TRUE(unpacks({0x10, 'a'}, 1));  // one literal
  EXPECT_TRUE(unpacks({0x10, 'a', 1, 0, 0}, 5));  // and four times the same
  EXPECT_FALSE(unpacks({}, 0));
  EXPECT_FALSE(unpacks({0x20, 'a'}, 2));           // fewer literals than it says
  EXPECT_FALSE(unpacks({0x10, 'a'}, 2));           // fewer bytes than there were
  EXPECT_FALSE(unpacks({0x20, 'a', 'b'}, 1));      // more
  EXPECT_FALSE(unpacks({0x11, 'a'}, 1));           // the last token has no match
  EXPECT_FALSE(unpacks({0x10, 'a', 1, 0, 0}, 4));  // no room for the match
  EXPECT_FALSE(unpacks({0x10, 'a', 2, 0, 0}, 5));  // from before the beginning
  EXPECT_FALSE(unpacks({0x10, 'a', 0, 0, 0}, 5));
  EXPECT_FALSE(unpacks({0x10, 'a', 1}, 5));        // ends inside the offset
  EXPECT_FALSE(unpacks({0xf0, 255, 255}, 20));     // and inside a length
}

}  // namespace
}  // namespace fallow::trace
