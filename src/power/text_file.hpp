// Reading the one-line files that kernels export, and saying what went wrong in words a user can act on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fallow::power {

struct TextFile {
  std::string text;  ///< without trailing white space
  int error = 0;     ///< errno of the failure, 0 if it was read
  bool ok() const noexcept { return error == 0; }
};
/// Reads at most 4 KiB (the kernel's limit for one attribute). Never blocks on a pipe. May throw std::bad_alloc.
TextFile read_text(const std::filesystem::path& file);

/// "cannot read FILE: permission denied"
std::string read_failure(const std::filesystem::path& file, int error);

/// An unsigned or signed decimal integer and nothing else; a value that does not fit is none.
std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept;
std::optional<std::int64_t> parse_signed(std::string_view text) noexcept;

/// The entries of a directory in natural order (2 before 10); empty if it cannot be listed, `error` then says why.
std::vector<std::filesystem::path> list_directory(const std::filesystem::path& dir, int* error = nullptr);

/// The number behind `prefix` and before `suffix` in a name such as energy12_input, if the name has that form.
std::optional<unsigned> numbered(std::string_view name, std::string_view prefix, std::string_view suffix) noexcept;

}  // namespace fallow::power
