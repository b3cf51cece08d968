// What a hot-path or clean-up function says of how it went. "Unsupported" is neither success nor failure.
#pragma once

#include <cstdint>

namespace fallow {

enum class Status : std::uint8_t {
  ok,           ///< done
  unsupported,  ///< this machine or library does not have it; nothing was changed
  failed,       ///< it should have worked and did not; nothing was changed
};

constexpr bool ok(Status s) noexcept { return s == Status::ok; }

}  // namespace fallow
