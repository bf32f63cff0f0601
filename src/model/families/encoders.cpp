// SPDX-License-Identifier: Apache-2.0
// Encoders that embed, rank and fill in masks: BERT, RoBERTa, XLM-RoBERTa, ModernBERT. They keep no keys and
// values; the weights are those of the head that the config names.
// Source: transformers' BertConfig, RobertaConfig, XLMRobertaConfig, ModernBertConfig and their modules.
#include <algorithm>
#include <string>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

enum class Head { kNone, kWords, kSequence, kTokens, kAnswers };

// What stands on the encoder; a config that names no architecture predicts words.
Head read_head(KeyReader& keys) {
  const auto& names = keys["architectures"].items();
  const std::string* name = names.empty() ? nullptr : names[0].as_string();
  if (!name || name->ends_with("ForMaskedLM") || name->ends_with("LMHeadModel") ||
      name->ends_with("ForCausalLM"))
    return Head::kWords;
  if (name->ends_with("ForSequenceClassification")) return Head::kSequence;
  if (name->ends_with("ForTokenClassification")) return Head::kTokens;
  if (name->ends_with("ForQuestionAnswering")) return Head::kAnswers;
  return Head::kNone;
}

std::int64_t read_labels(KeyReader& keys) {
  const auto named = static_cast<std::int64_t>(keys["id2label"].size());
  return std::clamp<std::int64_t>(named > 0 ? named : keys.integer("num_labels", 1, kMaxVocab, 2), 1,
                                  kMaxVocab);
}

ModelSpec read_encoder(KeyReader& keys, const DecoderDefaults& defaults) {
  ModelSpec spec = read_config_decoder(keys, defaults);
  assume_activation(keys, Activation::kGelu, spec);
  return spec;
}

// Its layers add to what their norms gave: the norm behind a block is the one in front of the next.
void set_bert_layers(KeyReader& keys, ModelSpec& spec) {
  spec.norm_kind = NormKind::kLayerNorm;
  spec.residual_is_normed = true;
  spec.rope = RopeSpec();
  spec.rope.kind = RopeKind::kNone;
  for (Layer& layer : spec.layers) {
    Attention attention = std::get<Attention>(layer.mixer);
    attention.uses_rope = false;
    attention.has_qkv_bias = attention.has_output_bias = true;
    layer.mixer = TwoSided{attention};
    layer.ffn.is_gated = false;
    layer.ffn.has_bias = true;
  }
  if (keys.text("position_embedding_type", "absolute") != "absolute") add_trait(spec, Trait::kOwnAttention);
  if (keys.flag("is_decoder", false)) add_trait(spec, Trait::kUnknown);
}

// BERT's order and names, which RoBERTa shares. `prefix` is "bert." or "roberta.".
ModelSpec write_bert(KeyReader& keys, ModelSpec spec, const std::string& prefix, std::int64_t types) {
  set_bert_layers(keys, spec);
  SpecWriter writer(spec);
  const std::int64_t width = spec.hidden_size;
  const int num_layers = static_cast<int>(spec.layers.size());
  writer.enter(prefix + "embeddings.");
  writer.role_as(Role::kTokenEmbedding, "word_embeddings.weight", {spec.vocab_size, width});
  writer.role_as(Role::kPositionEmbedding, "position_embeddings.weight",
                 {keys.integer("max_position_embeddings", 1, kMaxVocab, 512), width});
  writer.role_as(Role::kTokenTypeEmbedding, "token_type_embeddings.weight", {types, width});
  const auto write_norm = [&](const std::string& name, int next_layer) {
    writer.enter(name, next_layer < num_layers ? next_layer : -1);
    if (next_layer < num_layers)
      writer.norm_as(Role::kAttentionNorm, "LayerNorm", width, Role::kAttentionNormBias);
    else
      writer.norm_as(Role::kOutputNorm, "LayerNorm", width, Role::kOutputNormBias);
  };
  write_norm(prefix + "embeddings.", 0);
  const std::vector<Layer> layers = spec.layers;  // the writer appends to the spec that holds them
  for (int i = 0; i < num_layers; ++i) {
    const Layer& layer = layers[static_cast<std::size_t>(i)];
    const std::string at = prefix + "encoder.layer." + std::to_string(i) + ".";
    writer.enter(at, i);
    write_named_attention(
        writer, *attention_in(layer),
        {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"});
    writer.norm_as(Role::kFfnNorm, "attention.output.LayerNorm", width, Role::kFfnNormBias);
    write_plain_ffn(writer, layer.ffn, "intermediate.dense", "output.dense");
    write_norm(at + "output.", i + 1);
  }
  writer.enter("");
  return spec;
}

void write_pooler(SpecWriter& writer, const std::string& prefix) {
  writer.linear(Group::kHead, prefix + "pooler.dense", writer.width(), writer.width(), true);
}

// Heads that are one linear layer under this name.
void write_labels(SpecWriter& writer, KeyReader& keys, Head head, const char* name) {
  writer.linear(Group::kHead, head == Head::kAnswers ? "qa_outputs" : name,
                head == Head::kAnswers ? 2 : read_labels(keys), writer.width(), true);
}

// A dense layer, its norm and the words; the words' matrix is the embedding unless it is untied.
void write_words(SpecWriter& writer, const std::string& dense, const std::string& norm,
                 const std::string& bias, const std::string& decoder) {
  writer.linear(Group::kHead, dense, writer.width(), writer.width(), true);
  writer.norm(norm, writer.width(), true);
  writer.add(Group::kHead, bias, {writer.spec().vocab_size});
  if (writer.spec().ties_embeddings) return;
  writer.add(Group::kHead, decoder + ".weight", {writer.spec().vocab_size, writer.width()});
  writer.add(Group::kHead, decoder + ".bias", {writer.spec().vocab_size});
}

ModelSpec read_roberta(KeyReader& keys, int vocab_size) {
  ModelSpec spec = read_encoder(keys, {.norm_eps = 1e-12,
                                       .context_tokens = 512,
                                       .ties_embeddings = true,
                                       .hidden_size = 768,
                                       .intermediate_size = 3072,
                                       .num_layers = 12,
                                       .q_heads = 12,
                                       .vocab_size = vocab_size,
                                       .has_class_defaults = true,
                                       .ignores_head_keys = true});
  const Head head = read_head(keys);
  // The rows up to that of padding belong to no token.
  spec.first_position = static_cast<int>(keys.integer("pad_token_id", 0, kMaxVocab, 1)) + 1;
  spec = write_bert(keys, std::move(spec), head == Head::kNone ? "" : "roberta.",
                    keys.integer("type_vocab_size", 1, kMaxVocab, 2));
  SpecWriter writer(spec);
  writer.enter("");
  if (head == Head::kNone) write_pooler(writer, "");
  if (head == Head::kWords)
    write_words(writer, "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder");
  if (head == Head::kSequence) {
    writer.linear(Group::kHead, "classifier.dense", writer.width(), writer.width(), true);
    writer.linear(Group::kHead, "classifier.out_proj", read_labels(keys), writer.width(), true);
  }
  if (head == Head::kTokens || head == Head::kAnswers) write_labels(writer, keys, head, "classifier");
  spec.has_file_names = true;
  return spec;
}

}  // namespace

ModelSpec bert_from_config(KeyReader& keys) {
  ModelSpec spec = read_encoder(keys, {.norm_eps = 1e-12,
                                       .context_tokens = 512,
                                       .ties_embeddings = true,
                                       .hidden_size = 768,
                                       .intermediate_size = 3072,
                                       .num_layers = 12,
                                       .q_heads = 12,
                                       .vocab_size = 30'522,
                                       .has_class_defaults = true,
                                       .ignores_head_keys = true});
  const Head head = read_head(keys);
  const std::string prefix = head == Head::kNone ? "" : "bert.";
  spec = write_bert(keys, std::move(spec), prefix, keys.integer("type_vocab_size", 1, kMaxVocab, 2));
  SpecWriter writer(spec);
  writer.enter("");
  if (head == Head::kNone || head == Head::kSequence) write_pooler(writer, prefix);
  if (head == Head::kWords)
    write_words(writer, "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                "cls.predictions.bias", "cls.predictions.decoder");
  else if (head != Head::kNone)
    write_labels(writer, keys, head, "classifier");
  spec.has_file_names = true;
  return spec;
}

ModelSpec roberta_from_config(KeyReader& keys) {
  return read_roberta(keys, 50'265);
}

ModelSpec xlm_roberta_from_config(KeyReader& keys) {
  return read_roberta(keys, 30'522);
}

ModelSpec modernbert_from_config(KeyReader& keys) {
  ModelSpec spec = read_encoder(keys, {.norm_eps = 1e-5,
                                       .rope_theta = 160'000,
                                       .context_tokens = 8192,
                                       .ties_embeddings = true,
                                       .hidden_size = 768,
                                       .intermediate_size = 1152,
                                       .num_layers = 22,
                                       .q_heads = 12,
                                       .vocab_size = 50'368,
                                       .has_class_defaults = true});
  add_trait(spec, Trait::kUnknown);
  for (Layer& layer : spec.layers) layer.mixer = NoMixer{};
  const bool has_norm_bias = keys.flag("norm_bias", false);
  const bool has_bias = keys.flag("attention_bias", false), has_ffn_bias = keys.flag("mlp_bias", false);
  // A bare config is the encoder by itself here.
  const Head head = keys["architectures"].items().empty() ? Head::kNone : read_head(keys);
  const std::string prefix = head == Head::kNone ? "" : "model.";
  SpecWriter writer(spec);
  const std::int64_t width = spec.hidden_size;
  writer.enter(prefix + "embeddings.");
  writer.add(Group::kEmbedding, "tok_embeddings.weight", {spec.vocab_size, width});
  writer.norm("norm", width, has_norm_bias);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const std::int64_t inner = spec.layers[i].ffn.intermediate_size;
    writer.enter(prefix + "layers." + std::to_string(i) + ".", static_cast<int>(i));
    // The embedding's own norm stands in front of the first layer.
    if (i > 0) writer.norm("attn_norm", width, has_norm_bias);
    writer.linear(Group::kAttention, "attn.Wqkv", 3 * width, width, has_bias);
    writer.linear(Group::kAttention, "attn.Wo", width, width, has_bias);
    writer.norm("mlp_norm", width, has_norm_bias);
    writer.linear(Group::kFfn, "mlp.Wi", 2 * inner, width, has_ffn_bias);
    writer.linear(Group::kFfn, "mlp.Wo", width, inner, has_ffn_bias);
  }
  writer.enter(prefix);
  writer.norm("final_norm", width, has_norm_bias);
  writer.enter("");
  if (head != Head::kNone) {
    writer.linear(Group::kHead, "head.dense", width, width, keys.flag("classifier_bias", false));
    writer.norm("head.norm", width, has_norm_bias);
  }
  if (head == Head::kWords && keys.flag("decoder_bias", true))
    writer.add(Group::kHead, "decoder.bias", {spec.vocab_size});
  if (head == Head::kWords && !spec.ties_embeddings)
    writer.add(Group::kHead, "decoder.weight", {spec.vocab_size, width});
  if (head == Head::kSequence || head == Head::kTokens || head == Head::kAnswers)
    write_labels(writer, keys, head == Head::kAnswers ? Head::kTokens : head, "classifier");
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
