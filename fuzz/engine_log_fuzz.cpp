// SPDX-License-Identifier: Apache-2.0
// Engine logs: any bytes, cut anywhere, give the same reading, and the report of it is valid JSON.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "verify/verify.h"

namespace {

plimsoll::verify::Log read(std::string_view bytes, std::size_t piece) {
  plimsoll::verify::LogReader reader;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    reader.feed(bytes.substr(0, piece));
  return reader.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = plimsoll::verify::compare(read(bytes, bytes.size() + 1), nullptr, nullptr);
  const auto pieces = plimsoll::verify::compare(read(bytes, 3), nullptr, nullptr);
  PLIMSOLL_CHECK(whole && pieces, "a log alone is always reported on");
  const std::string text = plimsoll::dump(plimsoll::verify::to_json(*whole));
  PLIMSOLL_CHECK(text == plimsoll::dump(plimsoll::verify::to_json(*pieces)), "pieces of any size read alike");
  PLIMSOLL_CHECK(plimsoll::parse_json(text, "report").has_value(), "a report is JSON");
  PLIMSOLL_CHECK(!plimsoll::verify::to_text(*whole).empty(), "a report has a text");
  return 0;
}
