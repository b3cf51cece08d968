// Binds Study: predictors over the ranks of a trace, in the background of the Python that asked.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <string>

#include "predict/option_table.hpp"
#include "predict_convert.hpp"
#include "study.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace fallow;
using namespace fallow::predict;
using fallow::study::Study;
using fallow::study::Way;

PredictorOptions predict_options(const nb::dict& from) {
  PredictorOptions options;
  for (const auto& [key, value] : from) {
    const auto name = nb::cast<std::string>(key);
    double number = 0;
    if (!nb::try_cast(value, number)) throw std::invalid_argument(name + " must be a number");
    if (const std::string problem = set_option(options, name, number); !problem.empty()) throw std::invalid_argument(problem);
  }
  if (const std::string problem = options_conflict(options); !problem.empty()) throw std::invalid_argument(problem);
  return options;
}

nb::list predict_option_rows() {
  constexpr const char* kUnits[] = {"time", "share", "number", "count", "bytes", "flag"};
  const auto text = [](std::string_view s) { return nb::str(s.data(), s.size()); };
  const PredictorOptions defaults;
  nb::list out;
  for (const PredictOption& row : option_table()) {
    out.append(nb::make_tuple(text(row.name), text(row.predictors), kUnits[static_cast<std::size_t>(row.unit)], row.least, row.most,
                              row.get(defaults), text(row.help)));
  }
  return out;
}

nb::dict predict_dict(const Evaluation& e) {
  nb::dict d;
  d["calls"] = e.calls;
  d["calls_predicted"] = e.calls_predicted;
  d["gaps"] = e.gaps;
  d["gaps_predicted"] = e.gaps_predicted;
  d["rests"] = e.rests;
  d["mispredictions"] = e.mispredictions;
  d["idle_ns"] = e.idle.value;
  d["idle_predicted_ns"] = e.idle_predicted.value;
  d["low_ns"] = e.low.value;
  d["oracle_low_ns"] = e.oracle_low.value;
  d["delay_ns"] = e.delay.value;
  d["delay_worst_ns"] = e.delay_worst.value;
  d["run_ns"] = e.run.value;
  d["budget_worst"] = e.budget_worst;
  d["threshold_ns"] = e.state.threshold.value;
  d["searches"] = e.state.searches;
  d["restarts"] = e.state.restarts;
  d["memory_bytes"] = e.state.memory_bytes;
  return d;
}

nb::dict predict_dict(const NodeEvaluation& e) {
  nb::dict d;
  d["low_ns"] = e.low.value;
  d["oracle_low_ns"] = e.oracle_low.value;
  d["delay_ns"] = e.delay.value;
  d["delay_worst_rank_ns"] = e.delay_worst_rank.value;
  d["run_ns"] = e.run.value;
  d["rests"] = e.rests;
  return d;
}

namespace {

std::vector<Way> ways_of(const nb::list& from) {
  std::vector<Way> ways;
  for (nb::handle item : from) {
    const auto pair = nb::cast<nb::tuple>(item);
    ways.push_back({nb::cast<std::string>(pair[0]), predict_options(nb::cast<nb::dict>(pair[1]))});
  }
  return ways;
}

nb::dict histogram(const GapHistogram& h) {
  const auto rows = [](const auto& bins, auto lower) {
    nb::list out;
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const bool last = i + 1 == bins.size();
      out.append(nb::make_tuple(lower(i), last ? nb::none() : nb::object(nb::float_(lower(i + 1))), bins[i].count, bins[i].time.value));
    }
    return out;
  };
  nb::dict d;
  d["papers"] = rows(h.papers(), [](std::size_t i) {
    return i == 0 ? 0.0 : static_cast<double>(GapHistogram::kPaperBounds[i - 1].value);
  });
  d["bins"] = rows(h.bins(), [](std::size_t i) { return GapHistogram::lower_bound(i); });
  return d;
}

nb::list rank_list(const Study& s) {
  nb::list out;
  for (const study::RankResult& r : s.ranks()) {
    nb::list ways;
    for (const Evaluation& e : r.ways) ways.append(predict_dict(e));
    nb::dict d;
    d["rank"] = r.rank;
    d["gaps"] = histogram(r.gaps);
    d["ways"] = ways;
    out.append(d);
  }
  return out;
}

nb::list node_list(const Study& s) {
  nb::list out;
  for (const study::NodeResult& n : s.nodes()) {
    nb::list ways;
    for (const NodeEvaluation& e : n.ways) ways.append(predict_dict(e));
    nb::dict d;
    d["ranks"] = n.ranks;
    d["ways"] = ways;
    out.append(d);
  }
  return out;
}

nb::dict timeline_dict(const Study& s) {
  nb::list ways;
  for (const study::Timeline::Row& row : s.timeline().ways) ways.append(nb::make_tuple(row.rest, row.expected, row.silence));
  nb::dict d;
  d["enter_ns"] = s.timeline().enter;
  d["exit_ns"] = s.timeline().exit;
  d["op"] = s.timeline().op;
  d["ways"] = ways;
  return d;
}

}  // namespace

void bind_study(nb::module_& p) {
  nb::class_<Study>(p, "Study", "Predictors over the ranks of a trace. Start one thing, wait() until it is True, take its result.")
      .def(nb::init<std::vector<std::string>>(), "paths"_a, "Opens a trace, or its parts; TraceFileError")
      .def("start_ranks",
           [](Study& s, const nb::list& ways, std::vector<std::uint32_t> ranks, unsigned threads) {
             s.start_ranks(ways_of(ways), std::move(ranks), threads);
           },
           "ways"_a, "ranks"_a, "threads"_a = 0, "Every way, (predictor, options), on each of the ranks")
      .def("start_nodes",
           [](Study& s, const nb::list& ways, std::vector<std::vector<std::uint32_t>> nodes, unsigned threads) {
             s.start_nodes(ways_of(ways), std::move(nodes), threads);
           },
           "ways"_a, "nodes"_a, "threads"_a = 0, "Every way on links that are each shared by some ranks")
      .def("start_costs",
           [](Study& s, const nb::list& ways, std::uint32_t rank, std::uint64_t most_calls) {
             s.start_costs(ways_of(ways), rank, most_calls);
           },
           "ways"_a, "rank"_a, "most_calls"_a, "Times the ways side by side on a rank's first calls")
      .def("start_timeline",
           [](Study& s, const nb::list& ways, std::uint32_t rank, std::uint64_t from_ns, std::uint64_t most_calls) {
             s.start_timeline(ways_of(ways), rank, from_ns, most_calls);
           },
           "ways"_a, "rank"_a, "from_ns"_a, "most_calls"_a, "What each way says after each call from a time on")
      .def("wait", [](Study& s, double most_s) {
             const nb::gil_scoped_release unlocked;
             return s.wait(std::chrono::milliseconds(static_cast<std::int64_t>(most_s * 1e3)));
           }, "most_s"_a, "True if the work is done; raises what it failed with")
      .def("cancel", &Study::cancel)
      .def_prop_ro("progress", &Study::progress, "Share of the work that is done")
      .def("ranks", &rank_list)
      .def("nodes", &node_list)
      .def("costs", [](const Study& s) {
        nb::list out;
        for (const study::Cost& c : s.costs()) out.append(nb::make_tuple(c.ns, c.calls));
        return out;
      }, "(ns per call, calls that each round had) by way")
      .def("timeline", &timeline_dict);
}
