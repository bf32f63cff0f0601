// SPDX-License-Identifier: Apache-2.0
// How long, how many, how late? A bounded random quantity written in one word, as flags have it:
//   512   uniform:128,1024   normal:MEAN,DEVIATION[,MIN,MAX]   lognormal:MEDIAN,SIGMA[,MIN,MAX]
//   csv:FILE[:COLUMN]
// A distribution is a value and may be shared by threads; the generator is the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::workload {

using Random = std::mt19937_64;

class Distribution {
 public:
  struct Bounds {
    double min = 0;  // what the quantity may be at all
    double max = 0;
    bool is_whole = false;  // counts: rounded to whole numbers
  };

  /// Reads the word; a csv's file too, whose numbers are drawn with equal chances. `flag` stands in errors.
  /// Errors: kUsage for a word that is none of these or leaves the bounds; kMalformed with the line for a
  /// file that holds something else than numbers within the bounds.
  static Result<Distribution> parse(std::string_view word, const Bounds& bounds, const std::string& flag);

  /// Whole numbers from `low` to `high`, both inclusive, with equal chances; one value when they are equal.
  static Distribution whole(std::int64_t low, std::int64_t high);

  /// normal and lognormal are drawn again while they leave their bounds, after a thousand tries cut to them.
  double draw(Random& random) const;
  std::int64_t draw_count(Random& random) const;  // rounded; exact for whole numbers below 2^53

  double min() const { return min_; }
  double max() const { return max_; }
  bool is_fixed() const { return min_ == max_; }
  const std::string& text() const { return text_; }  // as it was written

 private:
  friend class LengthPairs;
  enum class Kind { kUniform, kNormal, kLognormal, kEmpirical };

  Status read_file(std::string_view place, const Bounds& bounds, const std::string& flag);
  double draw_free(Random& random) const;

  Kind kind_ = Kind::kUniform;
  double min_ = 0, max_ = 0;
  double a_ = 0, b_ = 0;  // normal: mean, deviation; lognormal: of the logarithm
  bool is_whole_ = false;
  std::string text_;
  std::string file_;                                   // of an empirical one
  std::shared_ptr<const std::vector<double>> values_;  // in the file's order
};

struct Lengths {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

/// The two lengths of a request. Columns of one file are drawn together, row by row: long questions keep
/// their short answers.
class LengthPairs {
 public:
  LengthPairs(Distribution input, Distribution output)
      : input_(std::move(input)), output_(std::move(output)) {}

  Lengths draw(Random& random) const;
  const Distribution& input() const { return input_; }
  const Distribution& output() const { return output_; }

 private:
  Distribution input_, output_;
};

}  // namespace plimsoll::workload
