// Strict reading of one TOML table: every key is asked for, every other key is an error, every error names file and line.
#pragma once

#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <vector>

#include "power/platform.hpp"

namespace fallow::power {

/// "FILE:LINE: what". Line 0 (unknown) is left out.
[[noreturn]] void fail_at(std::string_view file, const toml::node* node, const std::string& what);

/// The bounds of a number, and the words for it in an error ("watts between 0 and 100000").
struct Bounds {
  double low;
  double high;
  std::string_view unit;
};

/// A table that is being read. finish() must be the last call: it rejects what was not asked for.
class StrictTable {
 public:
  /// `path` is the table's name in the file, "" for the file itself.
  StrictTable(const toml::table& table, std::string_view file, std::string path);

  double number(std::string_view key, const Bounds& bounds);
  unsigned whole(std::string_view key, const Bounds& bounds);
  std::string text(std::string_view key);
  StrictTable table(std::string_view key);
  /// Every table of an array of tables; empty if the key is absent.
  std::vector<StrictTable> tables(std::string_view key);
  /// Takes `source`, a text for all values read so far or a table with a text for each; adds them to `out`.
  void sources(std::vector<ValueSource>& out);
  /// A key that is another reader's.
  void leave(std::string_view key) { asked_.emplace(key); }
  void finish() const;
  [[noreturn]] void fail(const std::string& what) const { fail_at(file_, table_, what); }

 private:
  std::string misspelt(std::string_view key) const;
  const toml::node& need(std::string_view key, std::string_view what);
  std::string full(std::string_view key) const { return path_.empty() ? std::string(key) : path_ + "." + std::string(key); }

  const toml::table* table_;
  std::string_view file_;
  std::string path_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace fallow::power
