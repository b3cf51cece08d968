// The extension module fallow._native: what the Python side needs of the C++ libraries. Each part is bound in
// a source of its own; a part whose library was not built is absent, and the Python side says so.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_trace(nb::module_& m);
#ifdef FALLOW_BIND_TRACEFILE
void bind_tracefile(nb::module_& m);
#endif
#ifdef FALLOW_BIND_POWER
void bind_power(nb::module_& m);
#endif
#ifdef FALLOW_BIND_PREDICT
void bind_predict(nb::module_& m);
#endif
#ifdef FALLOW_BIND_SIM
void bind_sim(nb::module_& m);
#endif
#ifdef FALLOW_BIND_OPTIONS
void bind_options(nb::module_& m);
#endif

NB_MODULE(_native, m) {
  m.doc() = "Native parts of Fallow";
  m.attr("__version__") = FALLOW_VERSION;
  bind_trace(m);
#ifdef FALLOW_BIND_TRACEFILE
  bind_tracefile(m);
#endif
#ifdef FALLOW_BIND_POWER
  bind_power(m);
#endif
#ifdef FALLOW_BIND_PREDICT
  bind_predict(m);
#endif
#ifdef FALLOW_BIND_SIM
  bind_sim(m);
#endif
#ifdef FALLOW_BIND_OPTIONS
  bind_options(m);
#endif
}
