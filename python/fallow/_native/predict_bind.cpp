// Binds src/predict: streams of calls as arrays, evaluated by any predictor.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "predict_convert.hpp"
#include "predict/evaluate.hpp"
#include "predict/node_link.hpp"
#include "predict/registry.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace fallow;
using namespace fallow::predict;
using Ints = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Stream = std::vector<Event>;

Stream make_stream(const Ints& enter_ns, const Ints& exit_ns, const Ints& wait_ns, const Ints& op, const Ints& comm,
                   const Ints& peer, const Ints& size_bytes, const Ints& site) {
  const std::size_t n = enter_ns.shape(0);
  for (const Ints* column : {&exit_ns, &wait_ns, &op, &comm, &peer, &size_bytes, &site})
    if (column->shape(0) != n) throw std::invalid_argument("columns of a stream must be of equal length");
  Stream stream(n);
  for (std::size_t i = 0; i < n; ++i) {
    Event& e = stream[i];
    e.enter = Nanoseconds(enter_ns.data()[i]);
    e.exit = Nanoseconds(exit_ns.data()[i]);
    if (e.exit < e.enter || (i > 0 && e.enter < stream[i - 1].exit))
      throw std::invalid_argument("event " + std::to_string(i) + " is out of order of time");
    e.wait = Nanoseconds(wait_ns.data()[i]);
    e.op = static_cast<std::uint16_t>(op.data()[i]);
    e.comm = static_cast<std::uint16_t>(comm.data()[i]);
    e.peer = static_cast<std::int32_t>(peer.data()[i]);
    e.bytes = static_cast<std::uint64_t>(size_bytes.data()[i]);
    e.site = static_cast<std::uint32_t>(site.data()[i]);
  }
  return stream;
}

PredictorOptions options_of(const nb::kwargs& kwargs) { return predict_options(nb::borrow<nb::dict>(kwargs)); }

std::unique_ptr<Predictor> make(const std::string& name, PredictorOptions options, const Stream& stream) {
  options.future = stream;
  auto predictor = make_predictor(name, options);
  if (predictor == nullptr) throw std::invalid_argument("there is no predictor '" + name + "'");
  return predictor;
}

/// Accounts and, as `cost_ns`, the time per event of a pass without the accounting.
nb::dict evaluate_stream(const Stream& stream, const std::string& name, const nb::kwargs& kwargs) {
  const PredictorOptions options = options_of(kwargs);
  const auto predictor = make(name, options, stream), timed = make(name, options, stream);
  Evaluation sum;
  double cost_ns = 0;
  {
    const nb::gil_scoped_release unlocked;
    sum = evaluate(stream, *predictor, {.react = options.react});
    const auto begin = std::chrono::steady_clock::now();
    for (const Event& event : stream) {
      timed->on_enter(event);
      timed->on_exit(event);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    if (!stream.empty()) cost_ns = took.count() / static_cast<double>(stream.size());
  }
  nb::dict d = predict_dict(sum);
  d["cost_ns"] = cost_ns;
  return d;
}

/// Per call: rest taken after it and gap expected after it (ns), as lists.
nb::tuple timeline(const Stream& stream, const std::string& name, const nb::kwargs& kwargs) {
  const auto predictor = make(name, options_of(kwargs), stream);
  std::vector<std::int64_t> rest(stream.size()), gap(stream.size());
  for (std::size_t i = 0; i < stream.size(); ++i) {
    predictor->on_enter(stream[i]);
    const Answer answer = predictor->on_exit(stream[i]);
    rest[i] = answer.rest_for.value;
    gap[i] = answer.expected_gap.value;
  }
  return nb::make_tuple(rest, gap);
}

nb::dict evaluate_ranks(const std::vector<const Stream*>& streams, const std::string& name, const nb::kwargs& kwargs) {
  PredictorOptions options = options_of(kwargs);
  options.adaptive.silence = 0;  // a node's link rests in windows that all its ranks know beforehand
  std::vector<std::span<const Event>> spans;
  std::vector<std::unique_ptr<Predictor>> owned;
  std::vector<Predictor*> predictors;
  for (const Stream* stream : streams) {
    spans.emplace_back(*stream);
    owned.push_back(make(name, options, *stream));
    predictors.push_back(owned.back().get());
  }
  const NodeEvaluation e = evaluate_node(spans, predictors, {.react = options.react});
  return predict_dict(e);
}

}  // namespace

void bind_predict(nb::module_& m) {
  struct PredictStream {
    Stream events;
  };
  nb::module_ p = m.def_submodule("predict", "Predictors of gaps and waits, and what their rests give and cost");
  p.def("predictors", [] {
    std::vector<std::tuple<std::string, std::string>> all;
    for (const PredictorEntry& entry : predictors()) all.emplace_back(entry.name, entry.summary);
    return all;
  }, "Names and one-line summaries of all predictors");
  p.def("options", &predict_option_rows,
        "Rows of the option table: (name, predictors, unit, least, most, default, help). Times in ns.");
  bind_study(p);
  nb::class_<PredictStream>(p, "Stream", "The calls of one rank, in order of time; columns are int64 arrays")
      .def("__init__",
           [](PredictStream* self, Ints enter_ns, Ints exit_ns, Ints wait_ns, Ints op, Ints comm, Ints peer,
              Ints size_bytes, Ints site) {
             new (self) PredictStream{make_stream(enter_ns, exit_ns, wait_ns, op, comm, peer, size_bytes, site)};
           },
           "enter_ns"_a, "exit_ns"_a, "wait_ns"_a, "op"_a, "comm"_a, "peer"_a, "size_bytes"_a, "site"_a)
      .def("__len__", [](const PredictStream& s) { return s.events.size(); })
      .def("evaluate",
           [](const PredictStream& s, const std::string& predictor, const nb::kwargs& options) {
             return evaluate_stream(s.events, predictor, options);
           },
           "predictor"_a, "options"_a, "What the predictor's rests give and cost on this stream")
      .def("timeline",
           [](const PredictStream& s, const std::string& predictor, const nb::kwargs& options) {
             return timeline(s.events, predictor, options);
           },
           "predictor"_a, "options"_a, "(rest_ns, expected_gap_ns) after each call");
  p.def("evaluate_node",
        [](const std::vector<const PredictStream*>& ranks, const std::string& predictor, const nb::kwargs& options) {
          std::vector<const Stream*> streams;
          for (const PredictStream* rank : ranks) streams.push_back(&rank->events);
          return evaluate_ranks(streams, predictor, options);
        },
        "ranks"_a, "predictor"_a, "options"_a, "One link shared by all ranks of a node");
}
