// Where readers take their bytes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace fallow::trace {

/// A file, or memory in tests. `read` fills `out` completely or returns false. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  virtual bool read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// Whether a descriptor is held between reads, as at first. A process may have a thousand; a trace more parts than that.
  virtual void hold(bool) {}
};

/// A regular file, of the size that it has now. Null, with the reason, if it cannot be opened or is none.
std::unique_ptr<ByteSource> open_regular_file(const std::string& path, std::string& reason);

}  // namespace fallow::trace
