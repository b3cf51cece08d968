// Bytes in memory as a source, for tests.
#pragma once

#include <cstring>
#include <vector>

#include "trace/byte_source.hpp"

namespace fallow::trace::testing {

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  bool read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace fallow::trace::testing
