// Binds the option table, so that the command line and the runtime cannot disagree about it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/options.hpp"

namespace nb = nanobind;

namespace {

nb::list option_rows() {
  nb::list out;
  for (const fallow::OptionInfo& row : fallow::option_table()) {
    nb::dict d;
    d["name"] = row.name;
    d["type"] = row.type;
    d["default"] = row.default_value;
    d["values"] = row.values;
    d["help"] = row.help;
    d["internal"] = row.internal;
    out.append(d);
  }
  return out;
}

std::string check_option(const std::string& name, const std::string& text) {
  fallow::Options options;
  return fallow::set_option(options, name, text);
}

double test_gap_s(const std::string& chosen, const std::string& program) {
  fallow::Options options;
  fallow::set_option(options, "test_gap", chosen);
  return fallow::test_gap_of(options, program) * 1e-9;
}

}  // namespace

void bind_options(nb::module_& m) {
  m.def("options", &option_rows, "The rows of the option table.");
  m.def("check_option", &check_option, nb::arg("name"), nb::arg("text"),
        "An empty string if the option can take this text, or what is wrong in one line.");
  m.def("test_gap_s", &test_gap_s, nb::arg("chosen"), nb::arg("program"),
        "What the runtime takes to be between the tests of a loop that waits, s; `chosen` is the option.");
}
