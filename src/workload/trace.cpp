// SPDX-License-Identifier: Apache-2.0
#include "workload/trace.h"

#include <array>
#include <cmath>

#include "base/json.h"
#include "base/mapped_file.h"
#include "workload/csv.h"
#include "workload/trace_rows.h"

namespace plimsoll::workload {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;
constexpr std::int64_t kMooncakeBlock = 512;
constexpr std::int64_t kBailianBlock = 16;

/// The names that a table's columns have in one format.
struct TableFormat {
  TraceFormat format;
  std::string_view time, input, output;
  bool has_dates;
};
constexpr std::array<TableFormat, 3> kTables = {
    {{TraceFormat::kAzure, "timestamp", "contexttokens", "generatedtokens", true},
     {TraceFormat::kBurstGpt, "timestamp", "request tokens", "response tokens", false},
     {TraceFormat::kVidur, "arrived_at", "num_prefill_tokens", "num_decode_tokens", false}}};

struct Columns {
  TableFormat table;
  std::optional<std::size_t> time, model;
  std::size_t input = 0, output = 0;
};

Result<Columns> columns_of(const Record& header, const std::string& where) {
  for (const TableFormat& table : kTables) {
    const auto input = column_named(header, table.input);
    const auto output = column_named(header, table.output);
    const auto time = column_named(header, table.time);
    // Vidur also publishes lengths alone.
    if (!input || !output || (!time && table.format != TraceFormat::kVidur)) continue;
    return Columns{table, time, column_named(header, "model"), *input, *output};
  }
  return fail(ErrorCode::kMalformed, "this is the header of no known trace", where,
              "a trace begins with the columns of Azure (TIMESTAMP,ContextTokens,GeneratedTokens), BurstGPT "
              "(Timestamp,...,Request tokens,Response tokens,...) or Vidur (arrived_at,num_prefill_tokens,"
              "num_decode_tokens), or is Mooncake's JSONL");
}

/// A count as tables have it: "374", sometimes "374.0".
std::optional<std::int64_t> count_from(const Record& record, std::size_t column) {
  const auto number = column < record.size() ? number_from(record[column]) : std::nullopt;
  if (!number || *number != std::floor(*number) || std::abs(*number) > 1e15) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> time_from(const Columns& columns, const Record& record) {
  if (!columns.time) return 0;
  if (*columns.time >= record.size()) return std::nullopt;
  const std::string& cell = record[*columns.time];
  if (columns.table.has_dates) return nanoseconds_of_date(cell);
  const auto number = number_from(cell);
  return number ? nanoseconds_of(*number, 1.0) : std::nullopt;
}

Status read_table(std::string_view text, const std::string& name, const TraceOptions& options, Trace& trace,
                  TraceRows& rows) {
  CsvReader reader(text, name);
  Record record;
  PLIMSOLL_TRY(const bool has_header, reader.next(record));
  if (!has_header) return fail(ErrorCode::kMalformed, "the trace is empty", name);
  PLIMSOLL_TRY(const Columns columns, columns_of(record, reader.where()));
  trace.format = columns.table.format;
  trace.has_times = columns.time.has_value();
  const std::size_t num_fields = record.size();
  for (;;) {
    PLIMSOLL_TRY(const bool has_record, reader.next(record));
    if (!has_record) return {};
    if (record.size() != num_fields)
      return fail(
          ErrorCode::kMalformed,
          "a row has " + std::to_string(record.size()) + " fields, its header " + std::to_string(num_fields),
          reader.where());
    if (!options.model.empty() && columns.model && record[*columns.model] != options.model) continue;
    const auto at_ns = time_from(columns, record);
    const auto input = count_from(record, columns.input);
    const auto output = count_from(record, columns.output);
    if (!at_ns)
      return fail(
          ErrorCode::kMalformed, "the time of a row cannot be read", reader.where(),
          columns.table.has_dates ? "Azure's are like 2023-11-16 18:15:46.6805900" : "it is in seconds");
    if (!input || !output)
      return fail(ErrorCode::kMalformed, "a length of a row is no whole number", reader.where());
    PLIMSOLL_TRY_VOID(rows.add({*at_ns, *input, *output, {}}, reader.where()));
  }
}

/// What the first row's keys say of the rest.
void set_block_format(const Json& row, const TraceOptions& options, Trace& trace) {
  const bool is_bailian = !row["chat_id"].is_null();
  trace.format = is_bailian ? TraceFormat::kBailian : TraceFormat::kMooncake;
  trace.block_tokens = options.block_tokens.value_or(is_bailian ? kBailianBlock : kMooncakeBlock);
}

Result<TraceRow> block_row(const Json& row, double unit_s, const std::string& where) {
  const auto time = row["timestamp"].as_double();
  const auto input = row["input_length"].as_integer();
  const auto output = row["output_length"].as_integer();
  const auto at_ns = time ? nanoseconds_of(*time, unit_s) : std::nullopt;
  if (!at_ns || !input || !output)
    return fail(
        ErrorCode::kMalformed,
        "a row needs \"timestamp\" from 0 on, \"input_length\" and \"output_length\" as whole numbers",
        where);
  TraceRow made{*at_ns, *input, *output, {}};
  for (const Json& id : row["hash_ids"].items()) {
    const auto number = id.as_integer();
    if (!number) return fail(ErrorCode::kMalformed, "\"hash_ids\" holds something else than numbers", where);
    made.block_ids.push_back(*number);
  }
  return made;
}

Status read_lines(std::string_view text, const std::string& name, const TraceOptions& options, Trace& trace,
                  TraceRows& rows) {
  double unit_s = 0;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = name + ": line " + std::to_string(number);
    if (line.size() > kMaxLineBytes)
      return fail(ErrorCode::kMalformed, "a line is longer than 16 MiB", where);
    PLIMSOLL_TRY(const Json row, parse_json(line, where));
    if (trace.block_tokens == 0) {
      set_block_format(row, options, trace);
      unit_s = options.time_unit_s.value_or(trace.format == TraceFormat::kBailian ? 1.0 : 0.001);
    }
    PLIMSOLL_TRY(const TraceRow made, block_row(row, unit_s, where));
    PLIMSOLL_TRY_VOID(rows.add(made, where));
  }
  return {};
}

}  // namespace

std::string_view to_string(TraceFormat format) {
  constexpr std::array<std::string_view, 5> kNames = {"azure", "burstgpt", "vidur", "mooncake", "bailian"};
  return kNames[static_cast<std::size_t>(format)];
}

Result<Trace> read_trace(std::string_view text, const std::string& name, const TraceOptions& options) {
  if (options.block_tokens && *options.block_tokens < 1)
    return fail(ErrorCode::kUsage, "a block has at least one token", "--timed-trace-chunk-hash-size");
  if (options.time_unit_s && !(*options.time_unit_s > 0))
    return fail(ErrorCode::kUsage, "a unit of time is above 0 seconds", "--timed-trace-sec-multiplier");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Trace trace;
  TraceRows rows(trace);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != text.npos && text[first] == '{';
  if (first != text.npos && text[first] == '[')
    return fail(ErrorCode::kMalformed,
                "this is a JSON array; a trace is a table or has one JSON object per line", name);
  PLIMSOLL_TRY_VOID(is_json ? read_lines(text, name, options, trace, rows)
                            : read_table(text, name, options, trace, rows));
  PLIMSOLL_TRY_VOID(rows.finish(name));
  return trace;
}

Result<Trace> open_trace(const std::string& path, const TraceOptions& options) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  auto trace = read_trace({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, options);
  if (trace && file.was_cut())
    return fail(ErrorCode::kMalformed, "the trace became shorter while it was read", path);
  return trace;
}

}  // namespace plimsoll::workload
