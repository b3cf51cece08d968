// For tests: a directory tree that stands for a machine's root, a clock that moves when told, and no privileges.
#pragma once

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "power/meter.hpp"

namespace fallow::power {

class FakeTree {
 public:
  FakeTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fallow-power-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
    std::filesystem::permissions(root_, std::filesystem::perms(0755));
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  const std::filesystem::path& root() const { return root_; }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary | std::ios::trunc) << text;
  }
  void copy(const std::string& path, const std::filesystem::path& from) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::copy_file(from, root_ / path, std::filesystem::copy_options::overwrite_existing);
  }
  std::string read(const std::string& path) const {
    std::ifstream file(root_ / path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void make_dir(const std::string& path) const { std::filesystem::create_directories(root_ / path); }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_ / path); }
  void forbid(const std::string& path) const {
    std::filesystem::permissions(root_ / path, std::filesystem::perms::none);
  }

 private:
  std::filesystem::path root_;
};

/// While it lives, this thread opens files as a user without privileges, also where the tests run as root.
class Unprivileged {
 public:
  Unprivileged() : before_(::setfsuid(kNobody)) {}
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() { ::setfsuid(static_cast<uid_t>(before_)); }

 private:
  static constexpr uid_t kNobody = 65534;
  int before_;
};

class FakeClock {
 public:
  Clock clock() {
    return [this] { return now_; };
  }
  void advance(Seconds t) { now_ += to_nanoseconds(t); }

 private:
  Nanoseconds now_{1'000'000'000'000};
};

inline std::size_t index_of(const Meter& meter, std::string_view domain) {
  const auto domains = meter.domains();
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (domains[i].name == domain) return i;
  }
  ADD_FAILURE() << "no domain " << domain;
  return 0;
}

}  // namespace fallow::power
