// The part that meters share: a set of channels, each a counter of energy or a power, most of them one-number files.
#pragma once

#include <variant>

#include "power/accumulator.hpp"
#include "power/meter.hpp"
#include "power/text_file.hpp"

namespace fallow::power {

/// A file that counts energy up to `range` and then starts from 0.
struct EnergyFile {
  Joules per_count;
  std::uint64_t range = std::numeric_limits<std::uint64_t>::max();
  Watts ceiling;           ///< more than this cannot be: the counter was reset or jumped
  std::string unit{};      ///< what follows the number in the file, e.g. "J"; empty: the file is the number alone
};
/// A file that says how much power flows now.
struct PowerFile {
  Watts per_count;
  Watts ceiling;
};
struct Channel {
  Domain domain;
  std::filesystem::path file;  ///< empty in meters whose figures come from elsewhere
  std::variant<EnergyFile, PowerFile> form;
};

/// Makes names unique by adding #2, #3 ... to those that came before.
void make_names_unique(std::vector<Channel>& channels);

class ChannelMeter : public Meter {
 public:
  ChannelMeter(std::string name, MeterDescription description, std::vector<Channel> channels, Clock clock);

  std::string_view name() const noexcept final { return name_; }
  std::span<const Domain> domains() const noexcept final { return domains_; }
  std::span<const DomainReading> read() noexcept override;
  const MeterDescription& description() const noexcept final { return description_; }

 protected:
  /// What one channel says now.
  struct Sample {
    double value = 0;         ///< for powers, in counts
    std::uint64_t count = 0;  ///< for counters
    std::string failure{};    ///< empty: good
  };
  /// Reads channel i: its file, if the meter knows nothing better.
  virtual Sample take(std::size_t i) const;
  const Channel& channel(std::size_t i) const noexcept { return channels_[i]; }
  /// Reads and parses every file; nothing is added up until commit(). Taking it again replaces it.
  void sample();
  void commit();
  void turn_off_all(const std::string& why) noexcept;
  void turn_off_all() noexcept;  ///< when an exception leaves no better words
  std::span<const DomainReading> readings() const noexcept { return readings_; }
  Nanoseconds now() const { return clock_(); }

 private:
  void turn_off(std::size_t i, const std::string& why) noexcept;

  std::string name_;
  MeterDescription description_;
  std::vector<Channel> channels_;
  Clock clock_;
  std::vector<Domain> domains_;
  std::vector<DomainReading> readings_;
  std::vector<std::variant<CounterAccumulator, PowerAccumulator>> sums_;
  std::vector<Sample> samples_;
};

}  // namespace fallow::power
