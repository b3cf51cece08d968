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

}  // namespace

void bind_options(nb::module_& m) {
  m.def("options", &option_rows, "The rows of the option table.");
  m.def("check_option", &check_option, nb::arg("name"), nb::arg("text"),
        "An empty string if the option can take this text, or what is wrong in one line.");
}
