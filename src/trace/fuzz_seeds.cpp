// Writes what the fuzzers of this folder start from: fuzz_seeds FOLDER makes FOLDER/{trace_file,rank_reader}_fuzz.
#include <cstdio>

#include "trace/rank_test_writer.hpp"
#include "trace/trace_test_files.hpp"

using namespace fallow::trace;
using namespace fallow::trace::testing;

namespace {

void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Receives from any source, once and again, and one that was cancelled.
void write_outcomes(const std::string& path) {
  MemorySource source(1);
  std::uint64_t time = 0;
  const auto add = [&](Op op, std::vector<std::uint32_t> requests, std::vector<std::uint32_t> completed, std::vector<std::uint64_t> outcomes) {
    CallEvent e;
    const std::vector<std::uint64_t> tags(outcomes.size(), 7);
    e.op = op, e.comm = kCommWorld, e.peer = e.tag = kAnyPeer;
    e.enter_ns = time += 100, e.exit_ns = time += 10;
    e.requests = requests, e.completed = completed, e.counts = outcomes, e.recv_counts = tags;
    source.add(0, e);
  };
  add(Op::recv_init, {0}, {}, {});
  for (std::uint64_t i = 0; i < 3; ++i) {
    add(Op::start, {0}, {}, {});
    add(Op::irecv, {1}, {}, {});
    add(Op::waitall, {}, {0, 1}, {kOutcomeFrom + i, kOutcomeFrom});
  }
  add(Op::irecv, {1}, {}, {});
  add(Op::cancel, {1}, {}, {});
  add(Op::wait, {}, {1}, {kOutcomeCancelled});
  write_trace(source, path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: fuzz_seeds FOLDER\n", stderr), 2;
  const std::string traces = std::string(argv[1]) + "/trace_file_fuzz/", ranks = std::string(argv[1]) + "/rank_reader_fuzz/";
  std::filesystem::create_directories(traces);
  std::filesystem::create_directories(ranks);
  write_part(traces + "part", 0, {.steps = 4});
  write_part(traces + "long", 1, {.steps = 6, .computes_long = true});
  write_part(traces + "killed", 1, {.steps = 3, .ends_well = false});
  const TemporaryFolder folder;
  write_part(folder / "a", 0, {.steps = 3, .threads = 2});
  write_part(folder / "b", 1, {.steps = 3});
  TraceReader parts({folder / "a", folder / "b"});
  merge_trace(parts, traces + "merged");
  write_outcomes(traces + "outcomes");
  write_file(ranks + "one", TestFile{}.build());
  write_file(ranks + "two", TestFile{.blocks = 2, .events = 5}.build());
  return 0;
}
