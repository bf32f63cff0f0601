// SPDX-License-Identifier: Apache-2.0
// Inside the verify room: reads numbers with their units out of one line of a log. Views into the line; one
// thread per cursor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "verify/log_reader.h"

namespace plimsoll::verify {

class LineCursor {
 public:
  explicit LineCursor(std::string_view text) : rest_(text) {}

  /// Moves behind the next occurrence of `words`.
  bool skip_past(std::string_view words);
  /// Moves behind all `c` that stand here.
  void skip_if(char c);
  bool starts_with(char c) const { return rest_.starts_with(c); }

  /// A whole number with or without thousands commas, here.
  std::optional<Printed> integer();
  /// A decimal number here, also below zero, and half of its last digit.
  std::optional<std::pair<double, double>> decimal(std::string* text = nullptr);
  /// "54.82 GiB", "54.82GiB", "54.82 GB" here; engines that print GB mean GiB. Without `needs_unit` a bare
  /// number is GiB too.
  std::optional<Printed> gibibytes(bool needs_unit = true);
  /// "512.00 MiB" here.
  std::optional<Printed> mebibytes();

 private:
  std::string_view rest_;
};

}  // namespace plimsoll::verify
