// What the bindings of the predictors share: options from dictionaries, results as dictionaries. Times are ns.
#pragma once

#include <nanobind/nanobind.h>

#include "predict/evaluate.hpp"
#include "predict/node_link.hpp"
#include "predict/registry.hpp"

/// Options from their names in the option table. Throws std::invalid_argument with what is wrong with one.
fallow::predict::PredictorOptions predict_options(const nanobind::dict& from);
nanobind::list predict_option_rows();
nanobind::dict predict_dict(const fallow::predict::Evaluation& evaluation);
nanobind::dict predict_dict(const fallow::predict::NodeEvaluation& evaluation);

/// Binds class Study, in study_bind.cpp.
void bind_study(nanobind::module_& predict);
