// SPDX-License-Identifier: Apache-2.0
// Requests for models of the catalogue, and the first row of their plans. For tests of the plan room.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "plan/plan.h"

namespace plimsoll::plan {

inline Model catalogued(std::string_view id) {
  auto model = catalogue_model(*facts::find_catalogue(id));
  EXPECT_TRUE(model);
  return std::move(*model);
}

inline Request request_for(const char* engine, const std::string& gpu,
                           std::string_view id = "meta-llama/Llama-3.1-8B") {
  Request request;
  request.engine = *facts::parse_engine(engine);
  request.models.push_back(catalogued(id));
  if (!gpu.empty()) request.targets.push_back(*parse_target(gpu));
  request.machine_threads = 4;
  return request;
}

inline Json row_of(const Request& request) {
  const auto plan = make_plan(request);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().describe());
  return plan ? to_json(*plan)["rows"].items().at(0) : Json();
}

inline const Json* finding_of(const Json& row, std::string_view id) {
  for (const Json& finding : row["findings"].items())
    if (*finding["id"].as_string() == id) return &finding;
  return nullptr;
}

}  // namespace plimsoll::plan
