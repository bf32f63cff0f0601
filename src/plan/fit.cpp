// SPDX-License-Identifier: Apache-2.0
// In which form does a known model run here: as published, shorter, or with fewer bits?
#include <algorithm>
#include <tuple>

#include "plan/rows.h"

namespace plimsoll::plan {
namespace {

constexpr std::int64_t kUsefulTokens =
    4096;  // a form that holds less is no answer, unless the model has no more

using Format = std::optional<memory::WeightFormat>;

/// As published, then with fewer bits. vLLM makes 8 bits while loading; 4 bits, and the own engine's 8, are
/// those of another checkpoint.
std::vector<Format> formats_of(const Question& question) {
  using enum memory::WeightFormat;
  const Model& model = *question.model;
  const auto stored =
      model.spec.declared_dtype ? memory::weight_format(*model.spec.declared_dtype) : std::nullopt;
  const bool is_plain =
      model.spec.quantization.empty() && memory::bits_per_weight(stored.value_or(kBFloat16)) > 8;
  if (question.settings.quantization || !is_plain) return {question.settings.quantization};
  const bool is_own = question.rules.accounting == memory::Accounting::kEmbedded;
  return {std::nullopt, is_own ? kInt8 : kFp8, kInt4};
}

/// The row of one form: at full length, or at the longest that is of use.
Result<Row> row_as(Question question, const Format& format) {
  question.settings.quantization = format;
  PLIMSOLL_TRY(Row row, make_row(question));
  const std::int64_t full = row.max_model_len.value;
  const std::int64_t longest = row.estimated_max_model_len.value_or(Tokens(0)).value;
  if (!row.fits && row.can_be && !question.settings.max_model_len &&
      longest >= std::min(full, kUsefulTokens)) {
    question.settings.max_model_len = longest;
    PLIMSOLL_TRY(row, make_row(question));
  }
  row.form = Form{format, row.max_model_len.value >= full};
  return row;
}

}  // namespace

Result<Row> fit_row(const Question& question) {
  std::optional<Row> first;
  for (const Format& format : formats_of(question)) {
    PLIMSOLL_TRY(Row row, row_as(question, format));
    if (row.fits || !row.can_be) return row;
    if (!first) first = std::move(row);
  }
  return std::move(*first);
}

void sort_by_fit(std::vector<std::pair<Row, std::int64_t>>& rows) {
  const auto key = [](const std::pair<Row, std::int64_t>& entry) {
    const auto& [row, parameters] = entry;
    const int bits = row.form && row.form->format ? memory::bits_per_weight(*row.form->format) : 32;
    return std::make_tuple(!row.fits, -bits, row.form && !row.form->is_full_length, -parameters, row.model);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

}  // namespace plimsoll::plan
