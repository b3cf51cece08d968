// toml++ 3.3 and 3.4 run into undefined behaviour on some letters beyond ASCII that stand outside of texts, so every
// reader of TOML files keeps such letters from it altogether.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace fallow {

inline constexpr const char* kBeyondAscii = "a character beyond ASCII; in a text write \\u00fc and the like instead";

/// The line, from 1 on, of the first character beyond ASCII; 0 if there is none.
inline std::size_t line_beyond_ascii(std::string_view text) noexcept {
  const auto beyond = [](char c) { return static_cast<unsigned char>(c) > 0x7f; };
  const auto at = std::find_if(text.begin(), text.end(), beyond);
  return at == text.end() ? 0 : static_cast<std::size_t>(1 + std::count(text.begin(), at, '\n'));
}

}  // namespace fallow
