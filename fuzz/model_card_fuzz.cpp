// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model card, a licence's text, a name and what nvidia-smi prints: reading never crashes,
// keeps its bounds, and claims lie within them.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "facts/facts.h"
#include "inspect/claims.h"
#include "inspect/model_card.h"

namespace {

void check(const std::vector<plimsoll::inspect::Claim>& claims) {
  constexpr std::size_t kMost = 64;
  if (claims.size() > kMost) std::abort();
  for (const auto& claim : claims)
    if (claim.value < 1 || claim.precision < 1 || !plimsoll::inspect::agrees(claim, claim.value))
      std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto card = plimsoll::inspect::parse_model_card(text);
  constexpr std::size_t kMostFields = 4096, kMostText = std::size_t{1} << 20;
  if (card.fields.size() > kMostFields || card.text.size() > kMostText) std::abort();
  check(plimsoll::inspect::claims_in_text(card.text));
  check(plimsoll::inspect::claims_in_name(text));
  (void)plimsoll::facts::recognize_license(text);
  (void)plimsoll::facts::find_license(text);
  for (const auto& gpu : plimsoll::facts::parse_nvidia_smi(text))
    if (gpu.name.empty() || gpu.driver.empty()) std::abort();
  (void)plimsoll::facts::parse_driver_version(text);
  return 0;
}
