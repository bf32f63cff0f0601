// SPDX-License-Identifier: Apache-2.0
#include "memory/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>

namespace plimsoll::memory {
namespace {

tl::unexpected<Error> wrong(const std::string& what) {
  return fail(ErrorCode::kUsage, what, "--workload",
              "write isl=N,osl=N,concurrency=C, and rate=R when it is known");
}

Result<std::map<std::string, std::string, std::less<>>> words_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return wrong("\"" + std::string(word) + "\" is no name=value");
    if (!words.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      return wrong("\"" + std::string(word.substr(0, equals)) + "\" is given twice");
  }
  return words;
}

}  // namespace

Result<Workload> parse_workload(std::string_view text) {
  PLIMSOLL_TRY(const auto words, words_of(text));
  std::int64_t counts[3] = {};
  int found = 0;
  Workload workload;
  for (const auto& [name, value] : words) {
    if (name == "rate") {
      double rate = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rate);
      if (error != std::errc{} || end != value.data() + value.size() || !std::isfinite(rate) || rate <= 0)
        return wrong("rate=\"" + value + "\" is no number of requests per second");
      workload.rate = rate;
      continue;
    }
    const int index = name == "isl" ? 0 : name == "osl" ? 1 : name == "concurrency" ? 2 : -1;
    if (index < 0) return wrong("\"" + name + "\" is no part of a workload");
    const auto count = parse_size(value);
    if (!count || *count < 1) return wrong(name + "=\"" + value + "\" is no count of at least 1");
    counts[index] = *count;
    ++found;
  }
  if (found != 3) return wrong("isl, osl and concurrency are all needed");
  const auto sum = checked_sum(counts[0], counts[1]);
  if (!sum || !checked_product(*sum, counts[2])) return wrong("the live tokens do not fit 63 bits");
  workload.input = Tokens(counts[0]);
  workload.output = Tokens(counts[1]);
  workload.concurrency = counts[2];
  return workload;
}

}  // namespace plimsoll::memory
