// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_pages.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/division.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kWindowTokens = 16;  // the least that kernels of attention take
constexpr std::int64_t kStateChunk = 2048;  // of kernels that scan states, where a model does not say it

/// What stands beside states.
struct Widest {
  std::int64_t state = 0, token = 0, chunk = 0;
  bool is_latent = false;
};

Widest widest_of(const std::vector<VllmLayer>& layers) {
  Widest widest;
  for (const VllmLayer& layer : layers) {
    widest.state = std::max(widest.state, layer.state_bytes.value);
    widest.chunk = std::max(widest.chunk, layer.chunk_tokens);
    if (is_index(layer.kind)) continue;
    widest.token = std::max(widest.token, layer.token_bytes.value);
    widest.is_latent = widest.is_latent || layer.kind == VllmKind::kLatent;
  }
  if (widest.chunk == 0) widest.chunk = kStateChunk;
  return widest;
}

Result<std::int64_t> size_of(std::int64_t count, std::int64_t size) {
  if (const auto product = checked_product(count, size)) return *product;
  return vllm_block_too_large();
}

/// The least tokens of a block that hold the largest state.
Result<std::int64_t> block_for_states(const Widest& widest, const VllmKvSettings& settings,
                                      const VllmRules& rules) {
  const std::int64_t step =
      std::max({std::int64_t{widest.is_latent ? rules.latent_step : 1}, settings.kernel_tokens,
                rules.steps_by_block_size ? settings.block_size : 1});
  if (settings.state_mode == VllmStateMode::kAll) {
    PLIMSOLL_TRY(const std::int64_t chunk, size_of(widest.chunk / std::gcd(widest.chunk, step), step));
    return size_of(divided_up(divided_up(widest.state, widest.token), chunk), chunk);
  }
  PLIMSOLL_TRY(const std::int64_t stride, size_of(step, widest.token));
  return size_of(divided_up(widest.state, stride), step);
}

}  // namespace

bool is_index(VllmKind kind) {
  return kind == VllmKind::kIndexer || kind == VllmKind::kCompressedKeys;
}

Result<VllmPages> page_layers(const std::vector<VllmLayer>& layers, const VllmKvSettings& settings,
                              const VllmRules& rules) {
  VllmPages pages;
  const Widest widest = widest_of(layers);
  std::int64_t block = settings.block_size, padded = 0, state_block = block;
  if (widest.state > 0 && widest.token > 0) {
    PLIMSOLL_TRY(state_block, block_for_states(widest, settings, rules));
    block = std::max(block, state_block);
    if (settings.state_mode != VllmStateMode::kAll) state_block = block;
    PLIMSOLL_TRY(padded, size_of(block, widest.token));
    pages.state_block_size = block;
  }
  if (settings.state_mode == VllmStateMode::kNone) state_block = settings.max_model_len;
  for (const VllmLayer& layer : layers) {
    if (layer.kind == VllmKind::kState) {
      pages.layers.push_back({layer, state_block, std::max(padded, layer.state_bytes.value)});
      continue;
    }
    const bool is_fixed = rules.has_fixed_window_blocks && layer.kind == VllmKind::kSlidingWindow;
    const std::int64_t tokens = layer.own_block > 0 ? layer.own_block : is_fixed ? kWindowTokens : block;
    PLIMSOLL_TRY(const std::int64_t page, size_of(tokens / layer.entry_tokens, layer.token_bytes.value));
    pages.layers.push_back({layer, tokens, divided_up(page, layer.page_step) * layer.page_step});
  }
  return pages;
}

Status make_pages_equal(std::vector<VllmPaged>& layers, const VllmRules& rules) {
  std::int64_t largest = 0;
  for (const VllmPaged& paged : layers) largest = std::max(largest, paged.page);
  for (VllmPaged& paged : layers) {
    if (paged.page == largest || paged.page == 0) continue;
    const VllmKind kind = paged.layer.kind;
    const bool divides = kind != VllmKind::kState && largest % paged.page == 0;
    const bool is_latent = kind == VllmKind::kLatent || kind == VllmKind::kIndexer;
    if (divides && rules.lengthens_blocks)
      paged.block_size *= largest / paged.page;
    else if (is_latent || !(kind == VllmKind::kState ? rules.pads_state_pages : rules.pads_attention_pages))
      return fail(ErrorCode::kUnsupported,
                  "pages of " + std::to_string(paged.page) + " and " + std::to_string(largest) +
                      " bytes cannot be made equal" +
                      (is_latent ? " for layers with latent vectors" : " in this release of vLLM"),
                  "", "use --engine any for the formula");
    paged.page = largest;
  }
  return {};
}

}  // namespace plimsoll::memory
