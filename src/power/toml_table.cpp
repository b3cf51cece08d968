#include "power/toml_table.hpp"

#include <cmath>

#include "base/nearest.hpp"

namespace fallow::power {
namespace {

std::string shortest(double v) {
  std::string s = std::to_string(v);
  s.erase(s.find_last_not_of('0') + 1);
  if (s.back() == '.') s.pop_back();
  return s;
}

}  // namespace

void fail_at(std::string_view file, const toml::node* node, const std::string& what) {
  std::string message(file);
  if (node != nullptr && node->source().begin.line > 0) message += ":" + std::to_string(node->source().begin.line);
  throw PlatformError(message + ": " + what);
}

StrictTable::StrictTable(const toml::table& table, std::string_view file, std::string path)
    : table_(&table), file_(file), path_(std::move(path)) {}

const toml::node& StrictTable::need(std::string_view key, std::string_view what) {
  asked_.emplace(key);
  const toml::node* node = table_->get(key);
  if (node == nullptr) fail(full(key) + " is missing: " + std::string(what) + misspelt(key));
  return *node;
}

/// The key that may stand for a missing one, if there is one that nobody has asked for.
std::string StrictTable::misspelt(std::string_view key) const {
  std::vector<std::string> others;
  for (const auto& [name, node] : *table_) {
    if (!asked_.contains(name.str())) others.emplace_back(name.str());
  }
  const std::string nearest = nearest_name(key, others);
  if (nearest.empty()) return "";
  return "; is " + nearest + " in line " + std::to_string(table_->get(nearest)->source().begin.line) + " meant for it?";
}

double StrictTable::number(std::string_view key, const Bounds& bounds) {
  const std::string want = std::string(bounds.unit) + " between " + shortest(bounds.low) + " and " + shortest(bounds.high);
  const toml::node& node = need(key, want);
  const auto value = node.is_number() ? node.value<double>() : std::nullopt;
  if (!value || !std::isfinite(*value) || *value < bounds.low || *value > bounds.high) {
    fail_at(file_, &node, full(key) + " must be " + want);
  }
  return *value;
}

unsigned StrictTable::whole(std::string_view key, const Bounds& bounds) {
  const double value = number(key, bounds);
  if (!table_->get(key)->is_integer()) fail_at(file_, table_->get(key), full(key) + " must be a whole number");
  return static_cast<unsigned>(value);
}

std::string StrictTable::text(std::string_view key) {
  const toml::node& node = need(key, "a text");
  const auto value = node.value<std::string>();
  if (!node.is_string() || !value || value->empty()) fail_at(file_, &node, full(key) + " must be a text, and not empty");
  return *value;
}

StrictTable StrictTable::table(std::string_view key) {
  const toml::node& node = need(key, "a table");
  if (!node.is_table()) fail_at(file_, &node, full(key) + " must be a table");
  return {*node.as_table(), file_, full(key)};
}

std::vector<StrictTable> StrictTable::tables(std::string_view key) {
  asked_.emplace(key);
  std::vector<StrictTable> found;
  const toml::node* node = table_->get(key);
  if (node == nullptr) return found;
  if (!node->is_array()) fail_at(file_, node, full(key) + " must be written [[" + full(key) + "]]");
  for (const toml::node& element : *node->as_array()) {
    if (!element.is_table()) fail_at(file_, &element, full(key) + " must be written [[" + full(key) + "]]");
    found.emplace_back(*element.as_table(), file_, full(key));
  }
  return found;
}

void StrictTable::sources(std::vector<ValueSource>& out) {
  const std::set<std::string, std::less<>> values = asked_;
  const toml::node& node = need("source", "where the values come from, or 'assumption: ' and the reasoning");
  if (node.is_string()) {
    out.push_back({path_, text("source")});
    return;
  }
  if (!node.is_table()) fail_at(file_, &node, full("source") + " must be a text, or a table with a text for each value");
  StrictTable each(*node.as_table(), file_, full("source"));
  for (const std::string& key : values) {
    if (table_->get(key) != nullptr) out.push_back({full(key), each.text(key)});
  }
  each.finish();
}

void StrictTable::finish() const {
  for (const auto& [key, node] : *table_) {
    if (!asked_.contains(key.str())) fail_at(file_, &node, "unknown key " + full(key.str()) + did_you_mean(key.str(), asked_));
  }
}

}  // namespace fallow::power
