// SPDX-License-Identifier: Apache-2.0
// Records of a CSV text, one after the other: RFC 4180 quoting, lines that end in LF or CRLF, a byte order
// mark, blank lines left out. Does not own the text; one reader is one thread's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::workload {

using Record = std::vector<std::string>;

class CsvReader {
 public:
  /// `name` stands before the line number in errors.
  CsvReader(std::string_view text, std::string name);

  /// Fills `record`; false at the end. Errors: kMalformed with the line: a quote that is never closed or
  /// stands where none may, a record of more than 1 MiB or 1,024 fields.
  Result<bool> next(Record& record);

  /// "traces.csv: line 17", of the record that next() gave last.
  std::string where() const;

 private:
  Status read_field(std::string& field, std::size_t record_start);
  Status read_quoted(std::string& field, std::size_t record_start);
  void skip_blank_lines();

  std::string_view text_;
  std::string name_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;         // of at_
  std::int64_t record_line_ = 1;  // where the last record began
};

/// The column of a header that has one of these names, blanks around them and case left aside.
std::optional<std::size_t> column_named(const Record& header, std::string_view name);

/// A finite number in decimal notation and nothing else but blanks around it.
std::optional<double> number_from(std::string_view text);

}  // namespace plimsoll::workload
