// SPDX-License-Identifier: Apache-2.0
#include "bench/result_file.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::bench {
namespace {

std::string_view last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  const std::size_t at = text.find_last_of('\n');
  return at == text.npos ? text : text.substr(at + 1);
}

// Seconds and tokens beyond this are no measurements, and their squares no numbers.
constexpr double kLongest = 1e12;

/// A positive number of an array, in the array's own unit; clients write 0 or null where there is none.
std::optional<double> positive(const Json& list, std::size_t i) {
  if (i >= list.items().size()) return std::nullopt;
  const auto value = list.items()[i].as_double();
  return value && *value > 0 && *value < kLongest ? value : std::nullopt;
}

class Reader {
 public:
  explicit Reader(ResultFile& file) : file_(file) {
    const Json& doc = file.document;
    ttfts_ = &doc["ttfts"];
    itls_ = &doc["itls"];
    latencies_ = &doc["latencies"];
    output_lens_ = &doc["output_lens"];
    errors_ = &doc["errors"];
  }

  void read() {
    const std::size_t n =
        std::max({ttfts_->items().size(), itls_->items().size(), latencies_->items().size()});
    for (std::size_t i = 0; i < n; ++i)
      if (!has_failed(i)) add_request(i);
    constexpr std::array<std::string_view, kNumStatistics> kPrefixes = {"mean_", "median_", "p99_"};
    for (std::size_t m = 0; m < kNumLatencies; ++m)
      for (std::size_t s = 0; s < kNumStatistics; ++s) {
        const std::string key = std::string(kPrefixes[s]) + std::string(kLatencyKeys[m]) + "_ms";
        const auto stated = file_.document[key].as_double();
        if (stated && std::abs(*stated) < kLongest) file_.latencies[m].stated[s] = stated;
      }
  }

 private:
  bool has_failed(std::size_t i) const {
    if (i >= errors_->items().size()) return false;
    const std::string* error = errors_->items()[i].as_string();
    return error && !error->empty();
  }

  void add(std::size_t latency, std::vector<double> values_ms) {
    if (!values_ms.empty()) file_.latencies[latency].by_request.push_back(std::move(values_ms));
  }

  void add_request(std::size_t i) {
    const auto first = positive(*ttfts_, i);
    const auto whole = positive(*latencies_, i);
    const auto tokens = positive(*output_lens_, i);
    if (first) add(0, {*first * 1e3});
    if (first && whole && tokens && *tokens > 1) add(1, {(*whole - *first) * 1e3 / (*tokens - 1)});
    std::vector<double> gaps;
    if (i < itls_->items().size())
      for (const Json& gap : itls_->items()[i].items())
        if (const auto value = gap.as_double(); value && *value >= 0 && *value < kLongest)
          gaps.push_back(*value * 1e3);
    add(2, std::move(gaps));
    if (whole) add(3, {*whole * 1e3});
  }

  ResultFile& file_;
  const Json* ttfts_;
  const Json* itls_;
  const Json* latencies_;
  const Json* output_lens_;
  const Json* errors_;
};

}  // namespace

Result<ResultFile> read_result(std::string_view text, const std::string& path) {
  auto document = parse_json(text, path);
  if (!document) {
    PLIMSOLL_TRY(document, parse_json(last_line(text), path));
  }
  const auto refuse = [&](const char* why, const char* fix) {
    return fail(ErrorCode::kMalformed, path + why, path, fix);
  };
  if (document->contains("sweep") || document->contains("search"))
    return refuse(" holds several runs", "save each run of it with --save-result");
  if (!(*document)["duration"].is_number() || !(*document)["completed"].as_integer())
    return refuse(" is no result of a load client: it has no \"duration\" and \"completed\"",
                  "give a file that --save-result wrote");
  ResultFile file;
  file.path = path;
  file.is_ours = document->contains("plimsoll");
  file.document = std::move(*document);
  Reader(file).read();
  return file;
}

}  // namespace plimsoll::bench
