// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bench/reply.h"

namespace plimsoll::bench {
namespace {

const text::EncodeOptions kPlain{.add_special_tokens = false, .parse_special = false};

std::int64_t length_in_tokens(const text::Tokenizer& tokenizer, std::string_view text) {
  return static_cast<std::int64_t>(tokenizer.encode(text, kPlain).size());
}

/// One token for each chunk, and the rest in proportion to `weights`, rounded so that the sum is `total`.
void share_out(std::vector<Chunk>& chunks, const std::vector<double>& weights, std::int64_t total) {
  const auto n = std::ssize(chunks);
  double all = 0;
  for (double weight : weights) all += weight;
  double before = 0;
  std::int64_t given = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    before += weights[at];
    std::int64_t upto = 0;
    if (total >= n) {
      const double part = all > 0 ? before / all : static_cast<double>(i + 1) / static_cast<double>(n);
      upto = i + 1 + static_cast<std::int64_t>(part * static_cast<double>(total - n) + 0.5);
    } else {
      upto = (total * (i + 1) + n - 1) / n;  // the first chunk always has one
    }
    chunks[at].tokens = upto - given;
    given = upto;
  }
}

std::vector<double> weights_of(const RequestRecord& record, const text::Tokenizer* tokenizer) {
  std::vector<double> weights;
  std::string_view left = record.produced;
  for (const Chunk& chunk : record.chunks) {
    const std::string_view piece = left.substr(0, chunk.text_bytes);
    left.remove_prefix(piece.size());
    // One token is given to each chunk beforehand: the weights share out what is beyond it.
    const auto tokens = tokenizer ? static_cast<double>(length_in_tokens(*tokenizer, piece)) - 1
                                  : static_cast<double>(piece.size());
    weights.push_back(std::max(0.0, tokens));
  }
  return weights;
}

}  // namespace

void count_tokens(RequestRecord& record, const text::Tokenizer* tokenizer) {
  auto& chunks = record.chunks;
  const bool is_exact = !chunks.empty() && std::all_of(chunks.begin(), chunks.end(),
                                                       [](const Chunk& c) { return c.has_exact_tokens; });
  std::int64_t exact = 0;
  for (const Chunk& chunk : chunks) exact += chunk.tokens;
  // A count of none beside text is a server that does not count.
  if (record.usage_output_tokens && (*record.usage_output_tokens > 0 || chunks.empty())) {
    record.output_tokens = *record.usage_output_tokens;
    record.count_source = CountSource::kUsage;
  } else if (is_exact) {
    record.output_tokens = exact;
    record.count_source = CountSource::kUsage;
  } else if (tokenizer) {
    record.output_tokens = length_in_tokens(*tokenizer, record.produced);
    record.count_source = CountSource::kTokenizer;
  } else {
    record.output_tokens = std::ssize(chunks);
    record.count_source = CountSource::kChunks;
  }
  if (chunks.empty() || (is_exact && exact == record.output_tokens)) return;
  share_out(chunks, weights_of(record, tokenizer), record.output_tokens);
}

}  // namespace plimsoll::bench
