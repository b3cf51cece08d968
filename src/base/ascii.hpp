// toml++ 3.3 and 3.4 run into undefined behaviour on some letters beyond ASCII that stand outside of texts, so every
// reader of TOML files keeps such letters from it altogether: out of comments by itself, elsewhere the user has to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace fallow {

/// The text with '?' for each byte beyond ASCII in a comment, which nobody reads but people. Lines and columns stay.
/// The mark that some editors begin a file of UTF-8 with is left out.
inline std::string with_ascii_comments(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string out(text);
  const auto is_triple = [&](std::size_t i, char quote) { return text.substr(i, 3) == std::string(3, quote); };
  char quote = 0;  // of the text that we are in
  bool lines = false;  // it may have several
  for (std::size_t i = 0; i < out.size(); ++i) {
    const char c = out[i];
    if (quote == 0 && c == '#') {
      for (; i < out.size() && out[i] != '\n'; ++i) {
        if (static_cast<unsigned char>(out[i]) > 0x7f) out[i] = '?';
      }
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      lines = is_triple(i, c);
      if (lines) i += 2;
    } else if (quote == '"' && c == '\\') {
      ++i;
    } else if (lines ? quote != 0 && is_triple(i, quote) : c == quote || c == '\n') {
      if (lines) i += 2;
      quote = 0;
      lines = false;
    }
  }
  return out;
}

inline constexpr const char* kBeyondAscii = "a character beyond ASCII; in a text write \\u00fc and the like instead";

/// The line, from 1 on, of the first character beyond ASCII; 0 if there is none.
inline std::size_t line_beyond_ascii(std::string_view text) noexcept {
  const auto beyond = [](char c) { return static_cast<unsigned char>(c) > 0x7f; };
  const auto at = std::find_if(text.begin(), text.end(), beyond);
  return at == text.end() ? 0 : static_cast<std::size_t>(1 + std::count(text.begin(), at, '\n'));
}

}  // namespace fallow
