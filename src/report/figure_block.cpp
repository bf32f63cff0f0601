// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/report.h"

namespace plimsoll::report {

void FigureBlock::rule(std::string_view title, char fill) {
  const std::size_t free = title.size() < width_ ? width_ - title.size() : 0;
  text_.append(free / 2, fill);  // as Python's center: the odd one goes to the right
  text_ += title;
  text_.append(free - free / 2, fill);
  text_ += '\n';
}

void FigureBlock::row(std::string_view label, std::string_view value) {
  text_ += fmt::format("{:<{}} {:<{}}\n", label, label_width_, value, value_width_);
}

void FigureBlock::row(std::string_view label, std::int64_t value) {
  row(label, std::to_string(value));
}

void FigureBlock::row(std::string_view label, std::optional<double> value) {
  row(label, std::string_view(two_decimals(value)));
}

std::string two_decimals(std::optional<double> value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

}  // namespace plimsoll::report
