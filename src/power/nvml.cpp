// Energy counters and power sensors of NVIDIA cards, through the library that comes with their driver (NVML). It is opened
// where it is found and never linked; it is only asked, and nothing on a card is ever set.
// Interface: NVML API reference guide, "Initialization and Cleanup", "Device Queries", "nvmlReturn_t".
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>

#include "power/channel_meter.hpp"

namespace fallow::power {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
// Where distributions and NVIDIA's installer put it: looked through in a root of its own, where no loader knows the way.
constexpr std::array kDirectories{"usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib"};
constexpr Joules kMillijoule{1e-3};
constexpr Watts kMilliwatt{1e-3};
constexpr Watts kCeiling{20000};       // of one card, rated for at most 1.4 kW in 2025; more is garbage or a restarted counter
constexpr Seconds kUpdatePeriod{0.1};  // counters move every 20 to 100 ms, by generation
constexpr Seconds kReadEnergy{60.0};   // counters are 64 bit wide and do not wrap; a lost card is to be noticed
constexpr Seconds kReadPower{0.1};     // cards without a counter tell the power of the instant, and that changes quickly
constexpr std::size_t kLongestName = 96;   // bytes: NVML_DEVICE_NAME_V2_BUFFER_SIZE and NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr std::size_t kShownUuid = 12;     // "GPU-" and the first group, which CUDA_VISIBLE_DEVICES takes, too

// nvmlReturn_t, as far as it has words of ours.
enum Code : int {
  kSuccess = 0,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kDriverNotLoaded = 9,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kVersionMismatch = 18,
  kGpuNotFound = 28,
};

constexpr const char* kNoDriver =
    "where there are NVIDIA cards, install and load their driver, and let containers have it (docker: --gpus all, "
    "apptainer: --nv); nothing to do elsewhere";
constexpr const char* kOpenDevices =
    "make /dev/nvidiactl and /dev/nvidia0, 1, ... readable and writable for users; in a batch job or a container, ask for "
    "the cards";
constexpr const char* kMendCard = "the kernel's log says more (dmesg, Xid); nvidia-smi --gpu-reset or a restart may bring it back";
constexpr const char* kUpdateDriver = "update the NVIDIA driver";
constexpr const char* kTooOld = "cards of the Fermi generation and newer tell their power, of Volta and newer their energy";

struct Words {
  int code;
  const char* what;
  const char* remedy;
};
constexpr std::array kWords{
    Words{kNotSupported, "not supported by this card", kTooOld},
    Words{kNoPermission, "permission denied", kOpenDevices},
    Words{kNotFound, "no card is found", kOpenDevices},
    Words{kDriverNotLoaded, "the NVIDIA driver is not loaded", kNoDriver},
    Words{kFunctionNotFound, "the driver does not know this call", kUpdateDriver},
    Words{kGpuIsLost, "the card is lost: it has fallen off the bus, or does not answer", kMendCard},
    Words{kResetRequired, "the card needs a reset", kMendCard},
    Words{kOperatingSystem, "the system keeps the card's device from this process", kOpenDevices},
    Words{kVersionMismatch, "the library is of another version than the loaded driver",
          "restart the node, or load the driver again: it was updated meanwhile"},
    Words{kGpuNotFound, "no card is found", kOpenDevices},
};
const Words* words_of(int code) noexcept {
  const auto found = std::find_if(kWords.begin(), kWords.end(), [&](const Words& w) { return w.code == code; });
  return found == kWords.end() ? nullptr : found;
}
const char* remedy_of(int code) noexcept {
  const Words* words = words_of(code);
  return words != nullptr ? words->remedy : "nvidia-smi may say more; the kernel's log, too (dmesg, Xid)";
}

using Device = struct nvmlDevice_st*;

// The library, open and started while this lives.
class Nvml {
 public:
  explicit Nvml(void* library) : library_(library) {
    find(init_, "nvmlInit_v2");
    find(shutdown_, "nvmlShutdown");
    find(error_string_, "nvmlErrorString");
    find(count_, "nvmlDeviceGetCount_v2");
    find(handle_, "nvmlDeviceGetHandleByIndex_v2");
    find(uuid_, "nvmlDeviceGetUUID");
    find(name_, "nvmlDeviceGetName");
    find(energy_, "nvmlDeviceGetTotalEnergyConsumption");
    find(power_, "nvmlDeviceGetPowerUsage");
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (started_) shutdown_();
    ::dlclose(library_);
  }

  /// The first function that it lacks and that nothing goes without; nullptr if it has all.
  const char* lacks() const noexcept {
    if (init_ == nullptr) return "nvmlInit_v2";
    if (shutdown_ == nullptr) return "nvmlShutdown";
    if (count_ == nullptr) return "nvmlDeviceGetCount_v2";
    if (handle_ == nullptr) return "nvmlDeviceGetHandleByIndex_v2";
    return power_ == nullptr ? "nvmlDeviceGetPowerUsage" : nullptr;
  }
  int start() noexcept {
    const int code = init_();
    started_ = code == kSuccess;
    return code;
  }
  int count(unsigned& n) const noexcept { return count_(&n); }
  int device(unsigned index, Device& device) const noexcept { return handle_(index, &device); }
  int energy(Device device, unsigned long long& mj) const noexcept {
    return energy_ == nullptr ? kNotSupported : energy_(device, &mj);
  }
  int power(Device device, unsigned& mw) const noexcept { return power_(device, &mw); }
  std::string uuid(Device device) const { return text(uuid_, device); }
  std::string name(Device device) const { return text(name_, device); }
  std::string failure(int code) const {
    std::string what = "unknown error";
    if (const Words* words = words_of(code)) {
      what = words->what;
    } else if (error_string_ != nullptr) {
      if (const char* said = error_string_(code)) what = said;
    }
    return what + " (NVML error " + std::to_string(code) + ")";
  }

 private:
  template <class Function>
  void find(Function& function, const char* name) noexcept {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
  }
  using Text = int (*)(Device, char*, unsigned);
  static std::string text(Text ask, Device device) {
    std::array<char, kLongestName> buffer{};
    if (ask == nullptr || ask(device, buffer.data(), static_cast<unsigned>(buffer.size())) != kSuccess) return {};
    buffer.back() = '\0';
    return buffer.data();
  }

  void* library_;
  bool started_ = false;
  int (*init_)();
  int (*shutdown_)();
  const char* (*error_string_)(int);
  int (*count_)(unsigned*);
  int (*handle_)(unsigned, Device*);
  Text uuid_;
  Text name_;
  int (*energy_)(Device, unsigned long long*);
  int (*power_)(Device, unsigned*);
};

struct Opened {
  void* library = nullptr;
  std::string failure{};
};

Opened open_library(const std::filesystem::path& root) {
  std::filesystem::path file = kLibrary;  // the loader knows where
  if (root != root.root_path() || root.empty()) {
    file.clear();
    for (const char* directory : kDirectories) {
      std::error_code ignored;
      const auto candidate = root / directory / kLibrary;
      if (file.empty() && std::filesystem::exists(candidate, ignored)) file = candidate;
    }
    if (file.empty()) return {nullptr, "no " + std::string(kLibrary) + " in " + (root / "usr/lib").string() + " and its like"};
  }
  void* const library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) return {library, {}};
  const char* said = ::dlerror();
  return {nullptr, said != nullptr ? said : "cannot load " + file.string()};
}

struct Cards {
  std::vector<Device> devices;
  std::vector<Channel> channels;
  std::map<std::string, unsigned> models;
  bool counters_only = true;
  std::string failure{};  // of the first that says nothing
  int code = kSuccess;    // and why
};

// Adds a card with what it tells: energy, or else power.
void add_card(Cards& cards, const Nvml& nvml, unsigned index) {
  Device device = nullptr;
  unsigned long long mj = 0;
  unsigned mw = 0;
  std::variant<EnergyFile, PowerFile> form = EnergyFile{kMillijoule, std::numeric_limits<std::uint64_t>::max(), kCeiling, {}};
  int code = nvml.device(index, device);
  if (code == kSuccess) {
    code = nvml.energy(device, mj);
    if (code == kNotSupported || code == kFunctionNotFound) {
      form = PowerFile{kMilliwatt, kCeiling};
      code = nvml.power(device, mw);
    }
  }
  std::string name = "gpu" + std::to_string(index);
  if (code != kSuccess) {
    if (cards.failure.empty()) {
      cards.failure = name + ": " + nvml.failure(code);
      cards.code = code;
    }
    return;
  }
  if (const std::string uuid = nvml.uuid(device); !uuid.empty()) name += " " + uuid.substr(0, kShownUuid);
  cards.counters_only = cards.counters_only && std::holds_alternative<EnergyFile>(form);
  cards.devices.push_back(device);
  cards.channels.push_back({{std::move(name), DomainKind::accelerator, {}}, {}, form});
  std::string model = nvml.name(device);
  ++cards.models[model.empty() ? "of unknown model" : std::move(model)];
}

MeterDescription describe(const Cards& cards) {
  std::string measures = "NVIDIA cards of this node alone (";
  const char* comma = "";
  for (const auto& [model, n] : cards.models) {
    measures.append(comma).append(std::to_string(n)).append(" x ").append(model);
    comma = ", ";
  }
  measures +=
      "), each as a whole with its memory, by its own sensors (NVML), whoever uses it and whatever CUDA_VISIBLE_DEVICES shows "
      "the program; processors, memory and the rest of the node are not in it";
  if (!cards.failure.empty()) measures += ", nor is what could not be read: " + cards.failure;
  if (!cards.counters_only) {
    measures +=
        "; where a card has no counter of energy its power is summed over time from samples, which are means of a second on "
        "Ampere (but A100) and newer, and before that of the instant: short peaks are missed";
  }
  return {std::move(measures), cards.counters_only ? kMillijoule : Joules{}, kUpdatePeriod,
          cards.counters_only ? kReadEnergy : kReadPower};
}

class NvmlMeter final : public ChannelMeter {
 public:
  NvmlMeter(std::unique_ptr<const Nvml> nvml, Cards cards, Clock clock)
      : ChannelMeter("nvml", describe(cards), std::move(cards.channels), std::move(clock)),
        nvml_(std::move(nvml)),
        devices_(std::move(cards.devices)) {}

 private:
  Sample take(std::size_t i) const override {
    Sample s;
    int code = kSuccess;
    if (std::holds_alternative<EnergyFile>(channel(i).form)) {
      unsigned long long mj = 0;
      code = nvml_->energy(devices_[i], mj);
      s.count = mj;
    } else {
      unsigned mw = 0;
      code = nvml_->power(devices_[i], mw);
      s.value = mw;
      if (code == kSuccess && kMilliwatt * s.value > kCeiling) s.failure = std::to_string(mw) + " mW cannot be";
    }
    if (code != kSuccess) s.failure = nvml_->failure(code);
    return s;
  }

  std::unique_ptr<const Nvml> nvml_;
  std::vector<Device> devices_;
};

}  // namespace

Probe probe_nvml(const std::filesystem::path& root, const Clock& clock) {
  const Opened opened = open_library(root);
  if (opened.library == nullptr) return {nullptr, opened.failure, kNoDriver};
  auto nvml = std::make_unique<Nvml>(opened.library);
  if (const char* missing = nvml->lacks()) {
    return {nullptr, std::string(kLibrary) + " has no " + missing + ": it is too old", kUpdateDriver};
  }
  unsigned count = 0;
  int code = nvml->start();
  if (code == kSuccess) code = nvml->count(count);
  if (code != kSuccess) return {nullptr, std::string(kLibrary) + ": " + nvml->failure(code), remedy_of(code)};
  if (count == 0) return {nullptr, std::string(kLibrary) + ": no card is found", kOpenDevices};
  Cards cards;
  for (unsigned i = 0; i < count; ++i) add_card(cards, *nvml, i);
  if (cards.channels.empty()) return {nullptr, std::string(kLibrary) + ": " + cards.failure, remedy_of(cards.code)};
  make_names_unique(cards.channels);
  return {std::make_unique<NvmlMeter>(std::move(nvml), std::move(cards), clock)};
}

}  // namespace fallow::power
