// What somebody who misspelt a name may have meant.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fallow {

/// How many characters have to be changed, added, left out or exchanged with their neighbour to make one of the other
/// (optimal string alignment); case, and '-' for '_', do not count.
inline std::size_t spelling_distance(std::string_view a, std::string_view b) {
  const auto plain = [](char c) { return c == '-' ? '_' : std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = plain(a[i - 1]) == plain(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) && plain(a[i - 2]) == plain(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// The nearest of the known names, the first of equals; "" if none is near. A third of the characters may differ, or
/// two where that is more, but never half of them; or one name begins with the other.
std::string nearest_name(std::string_view given, const auto& known) {
  constexpr std::size_t kLongest = 256;  // characters; nobody's misspelling, and the distance takes its square
  constexpr std::size_t kShortest = 3;   // characters that a name has to begin with
  if (given.empty() || given.size() > kLongest) return "";
  const std::size_t near = std::min(std::max<std::size_t>(given.size() / 3, 2), (given.size() - 1) / 2);
  std::string_view nearest;
  std::size_t least = kLongest;
  for (const std::string_view name : known) {
    if (name.size() > kLongest) continue;
    const std::size_t common = std::min(name.size(), given.size()), distance = spelling_distance(given, name);
    const bool begins = common >= kShortest && name.substr(0, common) == given.substr(0, common);
    if (distance < least && (begins || distance <= near)) least = distance, nearest = name;
  }
  return std::string(nearest);
}

/// "; did you mean X?", or "" where nothing is near.
std::string did_you_mean(std::string_view given, const auto& known) {
  const std::string nearest = nearest_name(given, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace fallow
