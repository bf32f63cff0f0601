// SPDX-License-Identifier: Apache-2.0
// Latent attention, which the engine computes in the latent space, against its definition in doubles: keys
// and values of every head expanded for every token.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "base/json.h"
#include "model/model.h"
#include "tests/engine/held_tensors.h"
#include "tests/engine/loading.h"

namespace plimsoll::engine {
namespace {

using Vector = std::vector<double>;

constexpr int kHidden = 24, kVocab = 40, kHeads = 3, kRank = 12, kNope = 10, kRope = 6, kValue = 7;
constexpr double kEps = 1e-5, kCompressedEps = 1e-6;

struct Case {
  std::string name;
  int q_rank = 0;
  bool has_bias = false, is_interleaved = true;
};

Vector normalized(const Vector& x, const Vector& weight, double eps) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  Vector y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = x[i] / std::sqrt(squares / static_cast<double>(x.size()) + eps) * weight[i];
  return y;
}

Vector part(const Vector& x, std::size_t first, std::size_t count) {
  return Vector(x.begin() + static_cast<std::ptrdiff_t>(first),
                x.begin() + static_cast<std::ptrdiff_t>(first + count));
}

double product(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// One layer of latent attention whose feed-forward gives nothing.
class LatentModel {
 public:
  explicit LatentModel(const Case& made) : made_(made) {
    const std::string rank = made.q_rank > 0 ? std::to_string(made.q_rank) : "null";
    auto config = parse_json(
        R"({"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 24,
            "vocab_size": 40, "num_attention_heads": 3, "num_hidden_layers": 1, "first_k_dense_replace": 1,
            "intermediate_size": 8, "kv_lora_rank": 12, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6,
            "v_head_dim": 7, "rms_norm_eps": 1e-5, "max_position_embeddings": 512, "q_lora_rank": )" +
            rank + R"(, "attention_bias": )" + (made.has_bias ? "true" : "false") +
            R"(, "rope_interleave": )" + (made.is_interleaved ? "true}" : "false}"),
        "test");
    EXPECT_TRUE(config);
    artifact_ = std::make_shared<HeldTensors>(std::move(*config));
    auto spec = model::read_spec(*artifact_);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().describe());
    spec_ = std::move(*spec);
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    for (const auto& weight : spec_.weights) {
      if (weight.hf_name.empty()) continue;
      std::vector<float> values(static_cast<std::size_t>(weight.elements()));
      const bool is_silent = weight.hf_name.ends_with("down_proj.weight");
      for (float& value : values) value = is_silent ? 0.0F : 0.4F * normal(random);
      artifact_->put(weight.hf_name, DType::kF32, artifact::Shape(std::span(weight.shape)), values);
      weights_[weight.hf_name] = Vector(values.begin(), values.end());
    }
  }

  std::unique_ptr<Engine> load(int chunk) const {
    EngineOptions options = small_options(ComputeMode::kFloat32);
    options.max_num_batched_tokens = chunk;
    auto engine = Engine::load(artifact_, spec_, options);
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().describe());
    return engine ? std::move(*engine) : nullptr;
  }

  /// Logits at every position, by the definition.
  std::vector<Vector> defined(const std::vector<TokenId>& ids) const {
    std::vector<Token> tokens;
    std::vector<Vector> logits;
    for (const TokenId id : ids) {
      Vector x =
          part(weights_.at("model.embed_tokens.weight"), static_cast<std::size_t>(id) * kHidden, kHidden);
      const Vector input = normalized(x, layer("input_layernorm.weight"), kEps);
      tokens.push_back(expanded(input, static_cast<std::int64_t>(tokens.size())));
      const Vector update = linear("self_attn.o_proj", attended(tokens));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += update[i];
      logits.push_back(
          times(weights_.at("lm_head.weight"), normalized(x, weights_.at("model.norm.weight"), kEps)));
    }
    return logits;
  }

 private:
  struct Token {
    std::vector<Vector> queries, keys, values;  // [heads]
  };

  const Vector& layer(const std::string& name) const { return weights_.at("model.layers.0." + name); }

  static Vector times(const Vector& matrix, const Vector& x) {
    Vector y(matrix.size() / x.size());
    for (std::size_t r = 0; r < y.size(); ++r) y[r] = product(part(matrix, r * x.size(), x.size()), x);
    return y;
  }

  Vector linear(const std::string& name, const Vector& x) const {
    Vector y = times(layer(name + ".weight"), x);
    const auto bias = weights_.find("model.layers.0." + name + ".bias");
    for (std::size_t i = 0; bias != weights_.end() && i < y.size(); ++i) y[i] += bias->second[i];
    return y;
  }

  Vector turned(const Vector& x, std::int64_t position) const {
    Vector y(x.size());
    for (std::size_t i = 0; i < kRope / 2; ++i) {
      const double angle =
          static_cast<double>(position) / std::pow(10'000.0, 2.0 * static_cast<double>(i) / kRope);
      const std::size_t a = made_.is_interleaved ? 2 * i : i;
      const std::size_t b = made_.is_interleaved ? 2 * i + 1 : i + kRope / 2;
      y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
    }
    return y;
  }

  Token expanded(const Vector& input, std::int64_t position) const {
    const Vector queries = made_.q_rank > 0
                               ? linear("self_attn.q_b_proj",
                                        normalized(linear("self_attn.q_a_proj", input),
                                                   layer("self_attn.q_a_layernorm.weight"), kCompressedEps))
                               : linear("self_attn.q_proj", input);
    const Vector compressed = linear("self_attn.kv_a_proj_with_mqa", input);
    const Vector turning_key = turned(part(compressed, kRank, kRope), position);
    const Vector keys_values = linear(
        "self_attn.kv_b_proj",
        normalized(part(compressed, 0, kRank), layer("self_attn.kv_a_layernorm.weight"), kCompressedEps));
    Token token;
    for (std::size_t head = 0; head < kHeads; ++head) {
      Vector query = part(queries, head * (kNope + kRope), kNope);
      for (const double value : turned(part(queries, head * (kNope + kRope) + kNope, kRope), position))
        query.push_back(value);
      Vector key = part(keys_values, head * (kNope + kValue), kNope);
      key.insert(key.end(), turning_key.begin(), turning_key.end());
      token.queries.push_back(query);
      token.keys.push_back(key);
      token.values.push_back(part(keys_values, head * (kNope + kValue) + kNope, kValue));
    }
    return token;
  }

  // What the last token's heads attend to, one after the other.
  static Vector attended(const std::vector<Token>& tokens) {
    Vector all;
    for (std::size_t head = 0; head < kHeads; ++head) {
      Vector sum(kValue);
      double total = 0;
      for (const Token& token : tokens) {
        const double share = std::exp(product(tokens.back().queries[head], token.keys[head]) /
                                      std::sqrt(static_cast<double>(kNope + kRope)));
        total += share;
        for (std::size_t i = 0; i < kValue; ++i) sum[i] += share * token.values[head][i];
      }
      for (const double value : sum) all.push_back(value / total);
    }
    return all;
  }

  Case made_;
  std::shared_ptr<HeldTensors> artifact_;
  model::ModelSpec spec_;
  std::map<std::string, Vector> weights_;
};

class LatentAttention : public ::testing::TestWithParam<Case> {};

TEST_P(LatentAttention, IsWhatExpandedKeysAndValuesGive) {
  const LatentModel model(GetParam());
  std::vector<TokenId> ids;
  for (int i = 0; i < 53; ++i) ids.push_back((i * 17 + i * i) % kVocab);
  const auto expected = model.defined(ids);
  SamplingParams params = greedy(1);
  params.return_prompt_logits = true;
  for (const int chunk : {1, 7, 64}) {
    SCOPED_TRACE(chunk);
    const auto engine = model.load(chunk);
    ASSERT_TRUE(engine);
    const Trace run = run_alone(*engine, ids, params);
    ASSERT_EQ(run.prompt_logits.size(), ids.size());
    // Sums of some dozen products of numbers about 1, in 32 bit.
    for (std::size_t t = 0; t < ids.size(); ++t)
      for (std::size_t i = 0; i < kVocab; ++i)
        ASSERT_NEAR(static_cast<double>(run.prompt_logits[t][i]), expected[t][i], 2e-5) << "position " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LatentAttention,
                         ::testing::Values(Case{"plain_queries"}, Case{"compressed_queries", 9},
                                           Case{"biases", 9, true}, Case{"halves_turn", 9, false, false}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace plimsoll::engine
