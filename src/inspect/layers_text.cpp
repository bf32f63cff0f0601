// SPDX-License-Identifier: Apache-2.0
#include "inspect/layers_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace plimsoll::inspect {
namespace {

constexpr std::size_t kRangesShown = 6;

std::string mixer_text(const model::Attention& attention) {
  std::string text = fmt::format("{} query heads share {} KV head{} of {}", attention.q_heads,
                                 attention.kv_heads, attention.kv_heads == 1 ? "" : "s", attention.head_dim);
  if (attention.is_cross) text += ", over another input";
  if (attention.window_tokens)
    text += fmt::format(", window of {} tokens", with_commas(*attention.window_tokens));
  if (attention.chunk_tokens)
    text += fmt::format(", in chunks of {} tokens", with_commas(*attention.chunk_tokens));
  if (attention.indexer)
    text += fmt::format(", an indexer reads {}", with_commas(attention.indexer->selected_tokens));
  return text;
}

std::string mixer_text(const model::Latent& latent) {
  std::string text = fmt::format("latent attention, {} values a token", latent.width());
  if (latent.window_tokens) text += fmt::format(", window of {} tokens", with_commas(*latent.window_tokens));
  if (latent.tokens_per_entry > 1)
    text += fmt::format(" and one vector for {} tokens", latent.tokens_per_entry);
  if (latent.indexer)
    text += fmt::format(", an indexer reads {}", with_commas(latent.indexer->selected_tokens));
  return text;
}

std::string mixer_text(const model::State& state) {
  return fmt::format("{} state", model::to_string(state.kind));
}

std::string mixer_text(const model::NoMixer&) {
  return "feed-forward alone";
}

std::string mixer_text(const model::TwoSided& mixer) {
  return fmt::format("{} heads of {} that see the whole text", mixer.attention.q_heads,
                     mixer.attention.head_dim);
}

// `has_experts`: some layers of the model do, so that those without say it.
std::string describe(const LayerRun& run, bool has_experts) {
  std::string text = std::visit([](const auto& mixer) { return mixer_text(mixer); }, run.layer.mixer);
  const model::Ffn& ffn = run.layer.ffn;
  if (ffn.kind == model::FfnKind::kMoe)
    text += fmt::format(", {} of {} experts{}", ffn.experts_per_token, ffn.experts,
                        ffn.shared_experts > 0 ? fmt::format(" and {} shared", ffn.shared_experts) : "");
  else if (has_experts && ffn.kind == model::FfnKind::kDense)
    text += ", dense feed-forward";
  if (run.state_bytes.value > 0)
    text += fmt::format(", {} bytes of state a sequence each", with_commas(run.state_bytes.value));
  if (run.layer.kv_source) text += ", reads the keys and values of an earlier layer";
  if (run.kv_bytes_per_token.value > 0)
    text += fmt::format(", {} KV bytes a token each", with_commas(run.kv_bytes_per_token.value));
  return text;
}

std::string range_text(const LayerRun& run) {
  return run.count == 1 ? std::to_string(run.first)
                        : fmt::format("{} to {}", run.first, run.first + run.count - 1);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> layer_lines(const std::vector<LayerRun>& runs) {
  struct Kind {
    std::string text;
    std::vector<const LayerRun*> runs;
    int layers = 0;
  };
  const bool has_experts = std::any_of(runs.begin(), runs.end(), [](const LayerRun& run) {
    return run.layer.ffn.kind == model::FfnKind::kMoe;
  });
  std::vector<Kind> kinds;
  for (const LayerRun& run : runs) {
    const std::string text = describe(run, has_experts);
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.text == text; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Kind{text, {}, 0});
    kind->runs.push_back(&run);
    kind->layers += run.count;
  }
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Kind& kind : kinds) {
    if (kind.runs.size() == 1) {
      lines.emplace_back((kind.layers == 1 ? "Layer " : "Layers ") + range_text(*kind.runs.front()),
                         kind.text);
      continue;
    }
    std::string where;
    for (std::size_t i = 0; i < std::min(kind.runs.size(), kRangesShown); ++i)
      where += (i > 0 ? ", " : "") + range_text(*kind.runs[i]);
    if (kind.runs.size() > kRangesShown) where += ", ...";
    lines.emplace_back(fmt::format("{} layers", kind.layers), fmt::format("{} ({})", kind.text, where));
  }
  return lines;
}

}  // namespace plimsoll::inspect
