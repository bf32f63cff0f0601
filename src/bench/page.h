// SPDX-License-Identifier: Apache-2.0
// The page of --html: the figures and charts of one run, or of each step of a sweep. Keeps drawn charts, not
// runs: its size does not grow with their requests. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/bench.h"
#include "report/chart.h"

namespace plimsoll::bench {

class Page {
 public:
  /// Adds a run; `document` is its result object, `name` tells it from the others ("concurrency 8") and
  /// `load` is what was varied, 0 when nothing was.
  void add(const RunResult& result, const Json& document, const std::string& name, double load);
  /// The whole document, self-contained.
  std::string html(const std::string& closing_text) const;

 private:
  struct Load {
    std::string name;
    double load = 0;
    Summary summary;
  };
  std::string sweep_charts() const;
  std::string distributions() const;

  std::string title_;
  std::string subtitle_;
  std::string rows_;      // of the table of figures
  std::string sections_;  // one for each run
  std::vector<Load> loads_;
};

}  // namespace plimsoll::bench
