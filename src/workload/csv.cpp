// SPDX-License-Identifier: Apache-2.0
#include "workload/csv.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace plimsoll::workload {
namespace {

constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxFields = 1024;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
}

std::string CsvReader::where() const {
  return name_ + ": line " + std::to_string(record_line_);
}

void CsvReader::skip_blank_lines() {
  while (at_ < text_.size()) {
    const std::size_t end = text_.find_first_not_of(" \t\r", at_);
    if (end == text_.npos) {
      at_ = text_.size();
    } else if (text_[end] == '\n') {
      at_ = end + 1;
      ++line_;
    } else {
      return;
    }
  }
}

Status CsvReader::read_quoted(std::string& field, std::size_t record_start) {
  ++at_;
  for (;;) {
    if (at_ >= text_.size() || at_ - record_start > kMaxRecordBytes)
      return fail(ErrorCode::kMalformed, "a quoted field is not closed within 1 MiB", where());
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    if (c != '"') {
      field += c;
    } else if (at_ < text_.size() && text_[at_] == '"') {
      field += '"';
      ++at_;
    } else {
      return {};
    }
  }
}

Status CsvReader::read_field(std::string& field, std::size_t record_start) {
  if (at_ < text_.size() && text_[at_] == '"') {
    PLIMSOLL_TRY_VOID(read_quoted(field, record_start));
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("\r\n")) ++at_;
    if (rest.empty() || rest[0] == ',' || rest[0] == '\n' || rest.starts_with("\r\n")) return {};
    return fail(ErrorCode::kMalformed, "text stands behind a closed quote", where());
  }
  const std::size_t end = std::min(text_.find_first_of(",\n\"", at_), text_.size());
  if (end - record_start > kMaxRecordBytes)
    return fail(ErrorCode::kMalformed, "a record is longer than 1 MiB", where());
  if (end < text_.size() && text_[end] == '"')
    return fail(ErrorCode::kMalformed, "a quote stands inside a field that is not quoted", where());
  std::string_view bare = text_.substr(at_, end - at_);
  at_ = end;
  const bool ends_line = end == text_.size() || text_[end] == '\n';
  if (ends_line && bare.ends_with('\r')) bare.remove_suffix(1);
  field = bare;
  return {};
}

Result<bool> CsvReader::next(Record& record) {
  record.clear();
  skip_blank_lines();
  record_line_ = line_;
  if (at_ >= text_.size()) return false;
  const std::size_t start = at_;
  for (;;) {
    if (record.size() == kMaxFields)
      return fail(ErrorCode::kMalformed, "a record has more than 1,024 fields", where());
    PLIMSOLL_TRY_VOID(read_field(record.emplace_back(), start));
    if (at_ >= text_.size()) return true;
    if (text_[at_++] == '\n') {
      ++line_;
      return true;
    }
  }
}

std::optional<std::size_t> column_named(const Record& header, std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i)
    if (lower_ascii(trimmed(header[i])) == lower_ascii(name)) return i;
  return std::nullopt;
}

std::optional<double> number_from(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace plimsoll::workload
