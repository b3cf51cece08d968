// Calls of a trace column by column: what writers of tables take, without an object of Python for each call.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "trace/event.hpp"

namespace fallow {

/// The next calls of a rank, at most `most` and fewer where their lists are long: (calls, columns, lists), empty columns at
/// its end. `columns` are bytes objects of one int64 for each call, in the order of fallow.traces.model.Event; `lists` its
/// last four fields, each as (int32 of where each call's numbers begin and one more of where the last ones end, uint64 of
/// the numbers).
nanobind::tuple trace_columns(trace::EventSource& source, std::uint32_t rank, std::size_t most);

}  // namespace fallow
