#include "power/channel_meter.hpp"

#include <algorithm>
#include <map>

namespace fallow::power {
namespace {

// The number at the start of "8230 J 1516739293 us", if the unit is the one expected.
std::optional<std::uint64_t> count_with_unit(std::string_view text, std::string_view unit) noexcept {
  const std::size_t blank = text.find(' ');
  if (!unit.empty() && blank != std::string_view::npos) {
    const std::string_view rest = text.substr(blank + 1);
    if (rest != unit && !(rest.starts_with(unit) && rest.substr(unit.size()).starts_with(' '))) return std::nullopt;
    text = text.substr(0, blank);
  }
  return parse_unsigned(text);
}

std::string garbage(const std::filesystem::path& file, std::string_view text) {
  constexpr std::size_t kShown = 40;  // characters: enough to recognize it, short enough for one line
  std::string shown(text.substr(0, kShown));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return file.string() + " does not hold a number that can be: '" + shown + "'";
}

}  // namespace

void make_names_unique(std::vector<Channel>& channels) {
  std::map<std::string, unsigned> seen;
  for (Channel& c : channels) {
    const unsigned n = ++seen[c.domain.name];
    if (n > 1) c.domain.name.append("#").append(std::to_string(n));
  }
}

ChannelMeter::ChannelMeter(std::string name, MeterDescription description, std::vector<Channel> channels, Clock clock)
    : name_(std::move(name)),
      description_(std::move(description)),
      channels_(std::move(channels)),
      clock_(std::move(clock)),
      readings_(channels_.size()),
      samples_(channels_.size()) {
  for (const Channel& c : channels_) {
    domains_.push_back(c.domain);
    if (const auto* energy = std::get_if<EnergyFile>(&c.form)) {
      sums_.emplace_back(CounterAccumulator(energy->range, energy->per_count, energy->ceiling));
    } else {
      sums_.emplace_back(PowerAccumulator());
    }
  }
}

ChannelMeter::Sample ChannelMeter::take(std::size_t i) const {
  const Channel& channel = channels_[i];
  Sample s;
  const TextFile file = read_text(channel.file);
  if (!file.ok()) {
    s.failure = read_failure(channel.file, file.error);
  } else if (const auto* energy = std::get_if<EnergyFile>(&channel.form)) {
    const auto count = count_with_unit(file.text, energy->unit);
    if (!count || *count > energy->range) s.failure = garbage(channel.file, file.text);
    s.count = count.value_or(0);
  } else {
    const PowerFile& form = std::get<PowerFile>(channel.form);
    const auto count = parse_signed(file.text);
    s.value = std::max(0.0, static_cast<double>(count.value_or(0)));  // a sensor near zero may show a little below it
    if (!count || form.per_count * s.value > form.ceiling) s.failure = garbage(channel.file, file.text);
  }
  return s;
}

void ChannelMeter::sample() {
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (readings_[i].state == DomainState::on) samples_[i] = take(i);
  }
}

void ChannelMeter::commit() {
  const Nanoseconds t = clock_();
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    DomainReading& r = readings_[i];
    if (r.state == DomainState::turning_off) r.state = DomainState::off;
    if (r.state != DomainState::on) continue;
    if (!samples_[i].failure.empty()) {
      turn_off(i, samples_[i].failure);
    } else if (auto* counter = std::get_if<CounterAccumulator>(&sums_[i])) {
      counter->add(samples_[i].count, t);
      r.energy = counter->energy();
      r.lost_intervals = counter->lost_intervals();
    } else {
      auto& power = std::get<PowerAccumulator>(sums_[i]);
      power.add(std::get<PowerFile>(channels_[i].form).per_count * samples_[i].value, t);
      r.energy = power.energy();
    }
  }
}

void ChannelMeter::turn_off(std::size_t i, const std::string& why) noexcept {
  readings_[i].state = DomainState::turning_off;
  try {
    readings_[i].why_off = why;
  } catch (...) {
    readings_[i].why_off = "no memory";  // fits the string's own space
  }
}

void ChannelMeter::turn_off_all(const std::string& why) noexcept {
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (readings_[i].state == DomainState::on) turn_off(i, why);
  }
}

void ChannelMeter::turn_off_all() noexcept {
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (readings_[i].state != DomainState::on) continue;
    readings_[i].state = DomainState::turning_off;
    readings_[i].why_off = "reading broke";  // fits the string's own space: no allocation
  }
}

std::span<const DomainReading> ChannelMeter::read() noexcept {
  try {
    sample();
    commit();
  } catch (...) {  // memory, or what an injected clock throws
    turn_off_all();
  }
  return readings_;
}

}  // namespace fallow::power
