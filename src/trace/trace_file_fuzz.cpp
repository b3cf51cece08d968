// libFuzzer target over the reader of trace files; tools/fuzz builds and runs it.
// Sums are made right before reading, so that the fuzzer gets past them.
#include "trace/crc32c.hpp"
#include "trace/trace_walk.hpp"

using namespace fallow::trace;

namespace {

void mend(std::vector<std::byte>& bytes) {
  constexpr std::uint32_t kFewRanks = 64;
  std::uint32_t world = 0;
  std::memcpy(&world, bytes.data() + offsetof(FileHead, world_size), sizeof world);
  world %= kFewRanks;
  std::memcpy(bytes.data() + offsetof(FileHead, world_size), &world, sizeof world);
  const std::uint32_t crc = crc32c(std::span<const std::byte>(bytes).first(offsetof(FileHead, crc)));
  std::memcpy(bytes.data() + offsetof(FileHead, crc), &crc, sizeof crc);
  for (std::size_t at = sizeof(FileHead); at + sizeof(ChunkHead) <= bytes.size();) {
    ChunkHead h;
    std::memcpy(&h, bytes.data() + at, sizeof h);
    if (h.bytes > bytes.size() - at - sizeof h) return;
    const std::uint32_t covered[] = {h.type, h.bytes};
    h.crc = crc32c(std::span<const std::byte>(bytes).subspan(at + sizeof h, h.bytes), crc32c(std::as_bytes(std::span(covered))));
    std::memcpy(bytes.data() + at, &h, sizeof h);
    at += sizeof h + h.bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(input.begin(), input.end());
  if (bytes.size() >= sizeof(FileHead)) mend(bytes);
  fallow::trace::testing::walk_trace(std::move(bytes));
  return 0;
}
