// SPDX-License-Identifier: Apache-2.0
#include "schedule/content_key.h"

#include <utility>

namespace plimsoll::schedule {
namespace {

// With its length in front, so that texts that follow each other cannot be cut in another place.
void append_text(std::string& key, std::string_view text) {
  key += std::to_string(text.size());
  key += ':';
  key += text;
}

}  // namespace

ContentKey::ContentKey(std::string_view cache_salt, std::string_view adapter,
                       std::vector<ForeignContent> contents)
    : contents_(std::move(contents)) {
  if (cache_salt.empty() && adapter.empty()) return;
  append_text(first_, cache_salt);
  append_text(first_, adapter);
}

std::string_view ContentKey::of_block(std::int64_t block, int block_size, std::string& scratch) const {
  const std::string_view start = block == 0 ? std::string_view(first_) : std::string_view();
  if (contents_.empty()) return start;
  scratch = start;
  const std::int64_t begin = block * block_size, end = begin + block_size;
  for (const ForeignContent& content : contents_) {
    if (content.first_position >= end || begin - content.first_position >= content.num_tokens) continue;
    append_text(scratch, std::to_string(content.first_position - begin));
    append_text(scratch, std::to_string(content.num_tokens));
    append_text(scratch, content.key);
  }
  return scratch;
}

}  // namespace plimsoll::schedule
