// Energy counters and power sensors of the kernel's hwmon class: boards, processors, graphics cards.
// Interface: Documentation/hwmon/sysfs-interface.rst (energyN_input in uJ, powerN_input and powerN_average in uW).
#include <algorithm>
#include <array>
#include <set>

#include "power/channel_meter.hpp"

namespace fallow::power {
namespace {

constexpr Joules kMicrojoule{1e-6};
constexpr Watts kMicrowatt{1e-6};
constexpr Watts kCeiling{100000};          // of one sensor; more is garbage or a restarted counter
constexpr Seconds kUpdatePeriod{0.1};      // drivers differ from 1 ms to 1 s
constexpr Seconds kReadPower{1.0};         // coarser, and the trapezoid rule misses what lies between
constexpr Seconds kReadEnergy{60.0};       // counters are 64 bit wide: their wrap is tens of thousands of years away

// What a chip's channel stands for. The first row whose chip and label both match (as prefixes) decides. `inside` is the
// prefix of the label, in the same chip, of what includes it; a number at the end of both labels must then agree.
struct Row {
  std::string_view chip;
  std::string_view label;
  DomainKind kind;
  std::string_view inside{};
};
constexpr std::array kRows{
    Row{"amd_energy", "Esocket", DomainKind::package},  // Documentation/hwmon/amd_energy.rst (kernel 5.8 to 5.12)
    Row{"amd_energy", "Ecore", DomainKind::core, "Esocket"},
    Row{"ibmpowernv", "System", DomainKind::node},      // Documentation/hwmon/ibmpowernv.rst
    Row{"ibmpowernv", "Proc", DomainKind::package, "System"},
    Row{"ibmpowernv", "Mem", DomainKind::dram, "System"},
    Row{"ibmpowernv", "", DomainKind::other, "System"},
    // NVIDIA Grace performance tuning guide. Modules are those of Grace Hopper: GPU and its memory are in their figure.
    Row{"power_meter", "Module Power Socket", DomainKind::module},
    Row{"power_meter", "Grace Power Socket", DomainKind::package, "Module Power Socket"},
    Row{"power_meter", "CPU Power Socket", DomainKind::core, "Grace Power Socket"},
    Row{"power_meter", "SysIO Power Socket", DomainKind::other, "Grace Power Socket"},
    Row{"power_meter", "", DomainKind::node},           // ACPI 4.0, 10.4: the meter of the whole system
    Row{"ibmaem", "", DomainKind::node},                // Documentation/hwmon/ibmaem.rst
    Row{"fam15h_power", "", DomainKind::package},       // Documentation/hwmon/fam15h_power.rst
    Row{"xgene", "CPU", DomainKind::package},           // Documentation/hwmon/xgene-hwmon.rst
    Row{"amdgpu", "", DomainKind::accelerator},
    Row{"i915", "", DomainKind::accelerator},
    Row{"xe", "pkg", DomainKind::accelerator, "card"},  // Documentation/ABI/testing/sysfs-driver-intel-xe-hwmon
    Row{"xe", "", DomainKind::accelerator},
    Row{"", "", DomainKind::other},
};

const Row& row_of(std::string_view chip, std::string_view label) noexcept {
  return *std::find_if(kRows.begin(), kRows.end(),
                       [&](const Row& r) { return chip.starts_with(r.chip) && label.starts_with(r.label); });
}

std::string_view trailing_number(std::string_view label) noexcept {
  const std::size_t last = label.find_last_not_of("0123456789");
  return last == std::string_view::npos ? label : label.substr(last + 1);
}

struct Sensor {
  std::string label;  // may be empty
  Channel channel;
};

std::string label_of(const std::filesystem::path& chip_dir, const std::string& stem) {
  std::string label = read_text(chip_dir / (stem + "_label")).text;
  // The ACPI power meter says what it measures in its device's directory.
  if (label.empty()) label = read_text(chip_dir / "device" / (stem + "_oem_info")).text;
  return label;
}

struct Found {
  std::vector<Sensor> sensors;
  std::string failure;
};

// Adds one file's sensor if the file holds a number.
bool add_sensor(Found& found, const std::filesystem::path& file, const std::string& label,
                std::variant<EnergyFile, PowerFile> form) {
  const TextFile text = read_text(file);
  if (text.ok() && parse_signed(text.text)) {
    Sensor& sensor = found.sensors.emplace_back();
    sensor.label = label;
    sensor.channel.file = file;
    sensor.channel.form = std::move(form);
    return true;
  }
  if (found.failure.empty()) found.failure = text.ok() ? file.string() + " holds no number" : read_failure(file, text.error);
  return false;
}

// A chip's energy counters, and its power sensors where nothing counts the same energy better.
void find_sensors(Found& found, const std::filesystem::path& chip_dir) {
  const auto entries = list_directory(chip_dir);
  std::set<std::string> counted;  // labels, or numbers where there are no labels
  const auto identity = [](const std::string& label, unsigned n) { return label.empty() ? std::to_string(n) : label; };
  for (const auto& entry : entries) {
    const auto n = numbered(entry.filename().native(), "energy", "_input");
    if (!n) continue;
    const std::string label = label_of(chip_dir, "energy" + std::to_string(*n));
    if (add_sensor(found, entry, label, EnergyFile{kMicrojoule, std::numeric_limits<std::uint64_t>::max(), kCeiling, {}})) {
      counted.insert(identity(label, *n));
    }
  }
  for (const std::string_view suffix : {"_average", "_input"}) {  // the mean since the last update, else the instant
    for (const auto& entry : entries) {
      const auto n = numbered(entry.filename().native(), "power", suffix);
      if (!n) continue;
      const std::string label = label_of(chip_dir, "power" + std::to_string(*n));
      if (counted.contains(identity(label, *n))) continue;
      if (add_sensor(found, entry, label, PowerFile{kMicrowatt, kCeiling})) counted.insert(identity(label, *n));
    }
  }
}

// Which of the chip's sensors [first, end) includes sensor i.
std::optional<std::size_t> container(const std::vector<Sensor>& sensors, std::size_t first, std::size_t i,
                                     const Row& row) {
  if (row.inside.empty()) return std::nullopt;
  std::optional<std::size_t> only;
  std::size_t candidates = 0;
  for (std::size_t j = first; j < sensors.size(); ++j) {
    const std::string_view label = sensors[j].label;
    if (j == i || !label.starts_with(row.inside)) continue;
    if (row.kind != DomainKind::core && trailing_number(label) == trailing_number(sensors[i].label)) return j;
    only = j;
    ++candidates;
  }
  // A container that stands alone includes all; of several, any will do to keep a core out of a sum over packages.
  return candidates == 1 || row.kind == DomainKind::core ? only : std::nullopt;
}

void describe_chip(std::vector<Sensor>& sensors, std::size_t first, const std::string& chip) {
  for (std::size_t i = first; i < sensors.size(); ++i) {
    const Row& row = row_of(chip, sensors[i].label);
    const std::string what = sensors[i].label.empty() ? "power" : sensors[i].label;
    sensors[i].channel.domain = {chip + "/" + what, row.kind, container(sensors, first, i, row)};
  }
}

}  // namespace

Probe probe_hwmon(const std::filesystem::path& root, const Clock& clock) {
  const std::filesystem::path dir = root / "sys/class/hwmon";
  constexpr const char* kRemedy =
      "load the driver of a power sensor (for example acpi_power_meter); many boards and all virtual machines have none";
  int error = 0;
  const auto chips = list_directory(dir, &error);
  if (error != 0) return {nullptr, read_failure(dir, error), kRemedy};
  Found found;
  for (const auto& chip_dir : chips) {
    const std::size_t first = found.sensors.size();
    find_sensors(found, chip_dir);
    std::string chip = read_text(chip_dir / "name").text;
    if (chip.empty()) chip = chip_dir.filename().string();
    describe_chip(found.sensors, first, chip);
  }
  if (found.sensors.empty()) {
    const std::string reason = found.failure.empty() ? "no sensor of power or energy in " + dir.string() : found.failure;
    return {nullptr, reason, found.failure.empty() ? kRemedy : "make the file readable: chmod a+r, kept by a udev rule"};
  }
  std::vector<Channel> channels;
  bool counters_only = true;
  for (Sensor& s : found.sensors) {
    counters_only = counters_only && std::holds_alternative<EnergyFile>(s.channel.form);
    channels.push_back(std::move(s.channel));
  }
  make_names_unique(channels);
  return {std::make_unique<ChannelMeter>(
              "hwmon",
              MeterDescription{counters_only ? "what the board's and the devices' energy counters cover"
                                             : "what the board's and the devices' sensors cover; powers are summed over "
                                               "time from samples, so short peaks are missed",
                               counters_only ? kMicrojoule : Joules{}, kUpdatePeriod,
                               counters_only ? kReadEnergy : kReadPower},
              std::move(channels), clock)};
}

}  // namespace fallow::power
