// SPDX-License-Identifier: Apache-2.0
// Builds a text out of another and remembers, where wanted, which bytes of the source each of its bytes
// stands for. One step of a normaliser fills one Rewriter from left to right. Owns what it builds, views its
// source; one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/text.h"

namespace plimsoll::text {

class Rewriter {
 public:
  /// `source` must outlive the rewriter.
  Rewriter(std::string_view source, bool keeps_origin) : source_(source), keeps_origin_(keeps_origin) {
    text_.reserve(source.size() + source.size() / 2);  // marks for blanks take more room than they
  }

  std::string_view source() const { return source_; }

  /// Source bytes [begin, end) as they stand.
  void keep(std::size_t begin, std::size_t end) {
    text_ += source_.substr(begin, end - begin);
    if (!keeps_origin_) return;
    for (std::size_t i = begin; i < end; ++i) origin_.push_back({i, i + 1});
  }
  /// `text` in place of source bytes [begin, end); an empty range inserts.
  void put(std::string_view text, std::size_t begin, std::size_t end) {
    text_ += text;
    if (keeps_origin_) origin_.insert(origin_.end(), text.size(), Span{begin, end});
  }

  std::string take_text() { return std::move(text_); }
  /// Per byte of the text; empty unless asked for.
  std::vector<Span> take_origin() { return std::move(origin_); }

 private:
  std::string_view source_;
  bool keeps_origin_;
  std::string text_;
  std::vector<Span> origin_;
};

}  // namespace plimsoll::text
