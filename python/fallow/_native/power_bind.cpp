// Binds meters and the platform model. Units leave here in the names: _j, _w, _s, _hz. Errors in a platform file or in
// what the model is asked are ValueError with the C++ message.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <tuple>

#include "power/cpu_quota.hpp"
#include "power/meter.hpp"
#include "power/platform.hpp"

namespace nb = nanobind;
using namespace fallow;
using namespace fallow::power;

namespace {

// A domain as Python sees it: what includes it goes by name.
struct NamedDomain {
  std::string name;
  std::string_view kind;
  std::optional<std::string> inside;
};

// A meter that Python owns, with what it last said.
class PyMeter {
 public:
  explicit PyMeter(std::unique_ptr<Meter> meter) : meter_(std::move(meter)), last_(meter_->domains().size()) {}

  const Meter& meter() const noexcept { return *meter_; }
  std::vector<NamedDomain> domains() const {
    std::vector<NamedDomain> out;
    for (const Domain& d : meter_->domains()) {
      out.push_back({d.name, to_string(d.kind), {}});
      if (d.inside) out.back().inside = meter_->domains()[*d.inside].name;
    }
    return out;
  }
  nb::dict read() {
    std::vector<DomainReading> now;
    {
      const nb::gil_scoped_release unlocked;  // some sensors take seconds, and the end of a run is to be seen meanwhile
      const std::scoped_lock alone(*reading_);
      const auto readings = meter_->read();
      now.assign(readings.begin(), readings.end());
    }
    last_ = std::move(now);
    return by_domain([](const DomainReading& r) { return nb::cast(r.energy.value); },
                     [](const DomainReading& r) { return r.state == DomainState::on; });
  }
  nb::dict off() const {
    return by_domain([](const DomainReading& r) { return nb::cast(r.why_off); },
                     [](const DomainReading& r) { return r.state != DomainState::on; });
  }
  nb::dict lost_intervals() const {
    return by_domain([](const DomainReading& r) { return nb::cast(r.lost_intervals); },
                     [](const DomainReading& r) { return r.lost_intervals != 0; });
  }
  double energy_j() {
    read();
    const Meter* const one = meter_.get();
    const auto parts = additive_domains({&one, 1});
    if (parts.empty()) throw std::runtime_error("no domain of " + std::string(meter_->name()) + " is a part of a node");
    Joules sum;
    for (const DomainRef& part : parts) {
      const DomainReading& r = last_[part.domain];
      if (r.state != DomainState::on) throw std::runtime_error(r.why_off);
      sum += r.energy;
    }
    return sum.value;
  }

 private:
  template <class Value, class Want>
  nb::dict by_domain(Value value, Want want) const {
    nb::dict out;
    for (std::size_t i = 0; i < last_.size(); ++i) {
      if (want(last_[i])) out[meter_->domains()[i].name.c_str()] = value(last_[i]);
    }
    return out;
  }

  std::unique_ptr<Meter> meter_;
  std::unique_ptr<std::mutex> reading_ = std::make_unique<std::mutex>();  // apart, as meters are moved
  std::vector<DomainReading> last_;
};

struct PyFound {
  nb::list meters;
  std::vector<MissingMeter> missing;

  std::vector<std::pair<std::string, std::string>> additive() const {
    std::vector<const Meter*> all;
    for (nb::handle m : meters) all.push_back(&nb::cast<const PyMeter&>(m).meter());
    std::vector<std::pair<std::string, std::string>> names;
    for (const DomainRef& r : additive_domains(all)) {
      names.emplace_back(all[r.meter]->name(), all[r.meter]->domains()[r.domain].name);
    }
    return names;
  }
};

PyFound find(const std::filesystem::path& root) {
  FoundMeters found = [&] {
    const nb::gil_scoped_release unlocked;  // a driver may hang
    return find_meters(root);
  }();
  PyFound out;
  for (auto& meter : found.meters) out.meters.append(nb::cast(PyMeter(std::move(meter)), nb::rv_policy::move));
  out.missing = std::move(found.missing);
  return out;
}

// A number from a mapping's key or an object's attribute; `absent` where there is none and that is allowed.
double number(nb::handle rank, const char* name, std::optional<double> absent = {}) {
  nb::object value;
  if (PyMapping_Check(rank.ptr()) != 0) {
    const nb::str key(name);
    if (PyMapping_HasKey(rank.ptr(), key.ptr()) != 0) value = nb::steal(PyObject_GetItem(rank.ptr(), key.ptr()));
  } else if (nb::hasattr(rank, name)) {
    value = rank.attr(name);
  }
  if (!value.is_valid()) {
    if (absent) return *absent;
    throw std::invalid_argument(std::string("a rank needs ") + name);
  }
  double out = 0;
  if (!nb::try_cast(value, out)) throw std::invalid_argument(std::string(name) + " must be a number");
  return out;
}

Residency residency(nb::handle rank) {
  return {Seconds(number(rank, "computing_s")),       Seconds(number(rank, "transfer_s")),
          Seconds(number(rank, "wait_awake_s")),      Seconds(number(rank, "wait_asleep_s")),
          Seconds(number(rank, "io_s")),              Hertz(number(rank, "frequency_hz", 0.0)),
          Hertz(number(rank, "wait_frequency_hz", 0.0))};
}

nb::dict parts(const EnergyParts& e) {
  nb::dict d;
  d["computing_j"] = e.computing.value;
  d["transfer_j"] = e.transfer.value;
  d["wait_awake_j"] = e.wait_awake.value;
  d["wait_asleep_j"] = e.wait_asleep.value;
  d["io_j"] = e.io.value;
  d["unaccounted_j"] = e.unaccounted.value;
  d["unused_cores_j"] = e.unused_cores.value;
  d["memory_j"] = e.memory.value;
  d["nic_j"] = e.nic.value;
  d["base_j"] = e.base.value;
  d["switch_share_j"] = e.switch_share.value;
  d["total_j"] = e.total().value;
  return d;
}

nb::dict energy(const Platform& platform, nb::iterable ranks, unsigned nodes, double run_time_s, unsigned cores_used,
                bool waits_yield, const std::vector<std::pair<std::size_t, unsigned>>& together, double besides_s,
                double in_use_s) {
  std::vector<Residency> all;
  for (nb::handle rank : ranks) all.push_back(residency(rank));
  std::vector<Together> groups;
  for (const auto& [of, at_once] : together) groups.push_back({of, at_once});
  const PlatformEnergy e = platform_energy(platform, {all, nodes, Seconds(run_time_s), cores_used, waits_yield, Seconds(besides_s), Seconds(in_use_s), groups});
  nb::dict d = parts(e.actual);
  d["all_awake"] = parts(e.all_awake);
  d["saved_j"] = e.saved().value;
  return d;
}

using Point = std::tuple<double, double, double>;
std::vector<Point> frequencies(const Platform& p) {
  std::vector<Point> out;
  for (const FrequencyPoint& f : p.core.at) out.emplace_back(f.frequency.value, f.compute.value, f.spin.value);
  return out;
}

std::vector<std::pair<std::string, std::string>> sources(const Platform& p) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const ValueSource& s : p.sources) out.emplace_back(s.value, s.source);
  return out;
}

void bind_meters(nb::module_& m) {
  nb::class_<NamedDomain>(m, "Domain", "One thing whose energy a meter reports.")
      .def_ro("name", &NamedDomain::name)
      .def_ro("kind", &NamedDomain::kind)
      .def_ro("inside", &NamedDomain::inside, "Name of the domain that already includes this one, or None.");
  nb::class_<MissingMeter>(m, "MissingMeter", "A kind of meter that this machine does not offer.")
      .def_ro("name", &MissingMeter::name)
      .def_ro("reason", &MissingMeter::reason)
      .def_ro("remedy", &MissingMeter::remedy, "What would make it available.");
  nb::class_<PyMeter>(m, "Meter", "One source of energy figures. A domain that fails turns off, the others go on.")
      .def_prop_ro("name", [](const PyMeter& p) { return std::string(p.meter().name()); })
      .def_prop_ro("domains", &PyMeter::domains)
      .def_prop_ro("measures", [](const PyMeter& p) { return p.meter().description().measures; })
      .def_prop_ro("resolution_j", [](const PyMeter& p) { return p.meter().description().resolution.value; })
      .def_prop_ro("min_period_s", [](const PyMeter& p) { return p.meter().description().min_period.value; },
                   "Reading more often than this brings nothing new.")
      .def_prop_ro("max_period_s", [](const PyMeter& p) { return p.meter().description().max_period.value; },
                   "Read at least this often: else a counter may wrap unseen.")
      .def("read", &PyMeter::read, "Energy in J since the first read, by domain; domains that are off are left out.")
      .def_prop_ro("off", &PyMeter::off, "Why, by domain, for those that the last read found off.")
      .def_prop_ro("lost_intervals", &PyMeter::lost_intervals, "Intervals left out because a counter jumped.")
      .def("energy_j", &PyMeter::energy_j,
           "Reads, and adds up the domains that do not overlap. RuntimeError if one of them is off.");
  nb::class_<PyFound>(m, "FoundMeters", "Iterates over the meters.")
      .def_ro("meters", &PyFound::meters)
      .def_ro("missing", &PyFound::missing)
      .def_prop_ro("additive", &PyFound::additive,
                   "(meter, domain) pairs that together cover most of the node, nothing twice.")
      .def("__iter__", [](const PyFound& f) { return nb::iter(f.meters); })
      .def("__len__", [](const PyFound& f) { return f.meters.size(); });
  m.def("find_meters", &find, nb::arg("root") = "/", "Looks for every meter below `root`.");
}

template <class Get>
void add(nb::class_<Platform>& c, const char* name, Get get) {
  c.def_prop_ro(name, get);
}

void bind_platform(nb::module_& m) {
  nb::class_<Platform> c(m, "Platform", "A machine as the energy model sees it.");
  c.def_ro("name", &Platform::name)
      .def_ro("description", &Platform::description)
      .def_ro("cpu_model", &Platform::cpu_model)
      .def_ro("sockets", &Platform::sockets)
      .def_ro("cores_per_socket", &Platform::cores_per_socket)
      .def("assumptions", &Platform::assumptions, "What to know before believing a modelled figure.");
  add(c, "cores", [](const Platform& p) { return p.cores(); });
  add(c, "nominal_hz", [](const Platform& p) { return p.core.nominal.value; });
  add(c, "compute_w", [](const Platform& p) { return p.core.compute.value; });
  add(c, "spin_w", [](const Platform& p) { return p.core.spin.value; });
  add(c, "yield_w", [](const Platform& p) { return p.core.yield.value; });
  add(c, "sleep_w", [](const Platform& p) { return p.core.sleep.value; });
  add(c, "frequencies", &frequencies);
  add(c, "memory_idle_w", [](const Platform& p) { return p.memory.idle.value; });
  add(c, "memory_active_w", [](const Platform& p) { return p.memory.active.value; });
  add(c, "nic_idle_w", [](const Platform& p) { return p.nic.idle.value; });
  add(c, "nic_active_w", [](const Platform& p) { return p.nic.active.value; });
  add(c, "base_w", [](const Platform& p) { return p.base.value; });
  add(c, "switch_share_w", [](const Platform& p) { return p.switch_share.value; });
  add(c, "link_gbit_s", [](const Platform& p) { return p.link.rate.value; });
  add(c, "link_lanes", [](const Platform& p) { return p.link.lanes; });
  add(c, "link_low_power_fraction", [](const Platform& p) { return p.link.low_power_fraction; });
  add(c, "link_react_s", [](const Platform& p) { return to_seconds(p.link.react).value; });
  add(c, "link_port_w", [](const Platform& p) { return p.link.port.value; });
  add(c, "sources", &sources);
}

}  // namespace

void bind_power(nb::module_& m) {
  bind_meters(m);
  bind_platform(m);
  m.def(
      "load_platform",
      [](const std::filesystem::path& name, const std::vector<std::filesystem::path>& directories) {
        return load_platform(name.string(), directories.empty() ? platform_directories() : directories);
      },
      nb::arg("name"), nb::arg("directories") = std::vector<std::filesystem::path>{},
      "A path, or a name to look for in `directories` (the installed one if none). ValueError says what is wrong.");
  m.def("generic_platform", &generic_platform, nb::arg("root") = "/",
        "A stand-in with the processors found below `root`; every watt in it is an assumption.");
  m.def(
      "cpu_quota",
      [](const std::filesystem::path& root) {
        const CpuQuota quota(root == "/" ? std::string() : root.string());
        const std::uint64_t ns = quota.throttled_ns();
        using Number = std::optional<double>;
        return std::pair(quota.limited() ? Number(quota.processors()) : Number(),
                         ns != CpuQuota::kUnknown ? Number(1e-9 * static_cast<double>(ns)) : Number());
      },
      nb::arg("root") = "/",
      "Processors whose time control groups let this process have, and the seconds for which they were throttled since they were made, "
      "summed over processors; None where there is no limit, or the kernel does not tell.");
  m.def("platform_energy", &energy, nb::arg("platform"), nb::arg("ranks"), nb::kw_only(), nb::arg("nodes"),
        nb::arg("run_time_s"), nb::arg("cores_used") = 0, nb::arg("waits_yield") = false, nb::arg("together") = std::vector<std::pair<std::size_t, unsigned>>{}, nb::arg("besides_s") = 0.0, nb::arg("in_use_s") = 0.0,
        "Modelled energy by component. Each rank is a mapping or an object with computing_s, transfer_s, wait_awake_s, "
        "wait_asleep_s, io_s, and optionally frequency_hz and wait_frequency_hz. `together` says how many of them, in "
        "their order, share cores with each other alone, and how many of these ran at the same time at most (0: all).");
}
