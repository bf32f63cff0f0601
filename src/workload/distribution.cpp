// SPDX-License-Identifier: Apache-2.0
#include "workload/distribution.h"

#include <algorithm>
#include <cmath>

#include "base/mapped_file.h"
#include "workload/csv.h"

namespace plimsoll::workload {
namespace {

constexpr std::size_t kMaxValues = 20'000'000;
constexpr int kTries = 1000;

struct Word {
  std::string name;  // empty: a lone number
  std::vector<double> numbers;
};

std::optional<Word> split(std::string_view text) {
  Word word;
  if (const std::size_t colon = text.find(':'); colon != text.npos) {
    word.name = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  }
  while (true) {
    const std::size_t comma = text.find(',');
    const auto number = number_from(text.substr(0, comma));
    if (!number) return std::nullopt;
    word.numbers.push_back(*number);
    if (comma == text.npos) return word;
    text.remove_prefix(comma + 1);
  }
}

tl::unexpected<Error> refuse(std::string_view word, std::string why, const std::string& flag) {
  return fail(
      ErrorCode::kUsage, "\"" + std::string(word) + "\" " + std::move(why), flag,
      "write 512, uniform:128,1024, normal:MEAN,DEVIATION[,MIN,MAX], lognormal:MEDIAN,SIGMA[,MIN,MAX] or "
      "csv:FILE[:COLUMN]");
}

std::string range(const Distribution::Bounds& bounds) {
  const auto text = [](double number) {
    std::string digits = std::to_string(number);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    return digits;
  };
  return text(bounds.min) + " to " + text(bounds.max);
}

/// The values of one column. The first record is a header when its cell in that column is no number.
Result<std::vector<double>> column_of(CsvReader& reader, const std::string& column,
                                      const Distribution::Bounds& bounds) {
  std::vector<double> values;
  Record record;
  std::size_t at = 0;
  for (bool is_first = true;; is_first = false) {
    PLIMSOLL_TRY(const bool has_record, reader.next(record));
    if (!has_record) return values;
    if (is_first && !column.empty()) {
      const auto found = column_named(record, column);
      if (!found)
        return fail(ErrorCode::kMalformed, "the header has no column \"" + column + "\"", reader.where());
      at = *found;
      continue;
    }
    const auto number = at < record.size() ? number_from(record[at]) : std::nullopt;
    if (is_first && !number) continue;
    if (!number || *number < bounds.min || *number > bounds.max)
      return fail(ErrorCode::kMalformed, "a row has no number from " + range(bounds) + " in its column",
                  reader.where());
    if (values.size() == kMaxValues)
      return fail(ErrorCode::kMalformed, "the file has more than 20,000,000 rows", reader.where());
    values.push_back(bounds.is_whole ? std::round(*number) : *number);
  }
}

}  // namespace

Distribution Distribution::whole(std::int64_t low, std::int64_t high) {
  Distribution made;
  made.min_ = static_cast<double>(low);
  made.max_ = static_cast<double>(high);
  made.is_whole_ = true;
  made.text_ =
      low == high ? std::to_string(low) : "uniform:" + std::to_string(low) + "," + std::to_string(high);
  return made;
}

Status Distribution::read_file(std::string_view place, const Bounds& bounds, const std::string& flag) {
  const std::size_t colon = place.rfind(':');
  file_ = place.substr(0, colon);
  const std::string column(colon == place.npos ? std::string_view() : place.substr(colon + 1));
  if (file_.empty()) return refuse(text_, "names no file", flag);
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(file_));
  const auto bytes = file.bytes();
  CsvReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file_);
  PLIMSOLL_TRY(std::vector<double> values, column_of(reader, column, bounds));
  if (values.empty()) return fail(ErrorCode::kMalformed, "the file holds no numbers", file_);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  min_ = *least;
  max_ = *most;
  values_ = std::make_shared<const std::vector<double>>(std::move(values));
  return {};
}

Result<Distribution> Distribution::parse(std::string_view word, const Bounds& bounds,
                                         const std::string& flag) {
  Distribution made;
  made.text_ = word;
  made.is_whole_ = bounds.is_whole;
  if (word.starts_with("csv:")) {
    made.kind_ = Kind::kEmpirical;
    PLIMSOLL_TRY_VOID(made.read_file(word.substr(4), bounds, flag));
    return made;
  }
  const auto parts = split(word);
  if (!parts) return refuse(word, "is no distribution", flag);
  std::vector<double> n = parts->numbers;
  const bool is_bell = parts->name == "normal" || parts->name == "lognormal";
  const bool is_one = parts->name.empty() && n.size() == 1;
  if (is_one) n.push_back(n[0]);
  const bool is_flat = is_one || (parts->name == "uniform" && n.size() == 2);
  if (!is_flat && !(is_bell && (n.size() == 2 || n.size() == 4)))
    return refuse(word, "is no distribution", flag);
  if (is_bell && (n[1] < 0 || (parts->name == "lognormal" && n[0] <= 0)))
    return refuse(word, "has a deviation below 0 or a median that is not above it", flag);
  made.min_ = is_flat ? n[0] : n.size() == 4 ? n[2] : bounds.min;
  made.max_ = is_flat ? n[1] : n.size() == 4 ? n[3] : bounds.max;
  if (made.min_ > made.max_ || made.min_ < bounds.min || made.max_ > bounds.max)
    return refuse(word, "leaves the range " + range(bounds) + ", or begins above its end", flag);
  if (bounds.is_whole && (std::floor(made.min_) != made.min_ || std::floor(made.max_) != made.max_))
    return refuse(word, "counts something and has bounds that are not whole", flag);
  if (is_bell) {
    made.kind_ = parts->name == "normal" ? Kind::kNormal : Kind::kLognormal;
    made.a_ = made.kind_ == Kind::kNormal ? n[0] : std::log(n[0]);
    made.b_ = n[1];
  }
  return made;
}

double Distribution::draw_free(Random& random) const {
  if (kind_ == Kind::kEmpirical) return (*values_)[static_cast<std::size_t>(random() % values_->size())];
  if (kind_ == Kind::kUniform) {
    if (is_fixed()) return min_;
    const double part = std::generate_canonical<double, 53>(random);
    if (is_whole_) return std::min(max_, std::floor(min_ + part * (max_ - min_ + 1)));
    return min_ + part * (max_ - min_);
  }
  std::normal_distribution<double> bell(0, 1);
  const double value = a_ + b_ * bell(random);
  const double made = kind_ == Kind::kNormal ? value : std::exp(value);
  return is_whole_ ? std::round(made) : made;
}

double Distribution::draw(Random& random) const {
  double value = draw_free(random);
  for (int i = 1; i < kTries && (value < min_ || value > max_); ++i) value = draw_free(random);
  return std::clamp(value, min_, max_);
}

std::int64_t Distribution::draw_count(Random& random) const {
  return std::llround(draw(random));
}

Lengths LengthPairs::draw(Random& random) const {
  const bool is_one_file = input_.values_ && output_.values_ && input_.file_ == output_.file_ &&
                           input_.values_->size() == output_.values_->size();
  if (!is_one_file) return {input_.draw_count(random), output_.draw_count(random)};
  const auto row = static_cast<std::size_t>(random() % input_.values_->size());
  return {std::llround((*input_.values_)[row]), std::llround((*output_.values_)[row])};
}

}  // namespace plimsoll::workload
