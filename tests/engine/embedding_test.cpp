// SPDX-License-Identifier: Apache-2.0
// Embeddings against Sentence Transformers, as a folder's own files say and pooled in every other way; the
// same bits alone, in company and in chunks. Models and truth: data/embeddings (data/PROVENANCE/engine.md).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "base/json.h"
#include "base/mapped_file.h"
#include "engine/pooler.h"
#include "memory/embedded.h"
#include "model/context_length.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"
#include "tests/testing/made_files.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

// Float32 sums in another order than torch's; values are of the order of 1.
constexpr double kTolerance = 2e-5;

std::string path_of(const std::string& name) {
  return testing::data_path("embeddings/" + name);
}

Json truth_of(const std::string& name) {
  const auto text = read_file(path_of(name + ".json"));
  EXPECT_TRUE(text);
  auto json = parse_json(text ? *text : "null", name);
  EXPECT_TRUE(json);
  return json ? std::move(*json) : Json();
}

std::vector<TokenId> ids_of(const Json& row) {
  std::vector<TokenId> ids;
  for (const Json& id : row["ids"].items()) ids.push_back(static_cast<TokenId>(*id.as_integer()));
  return ids;
}

EngineOptions options_of(int step_tokens = 64) {
  EngineOptions options;
  options.mode = ComputeMode::kFloat32;
  options.threads = 1;
  options.num_blocks = 256;
  options.max_num_seqs = 8;
  options.max_num_batched_tokens = step_tokens;
  return options;
}

Submission embedding_of(std::vector<TokenId> ids, const EmbeddingParams& params) {
  Submission submission;
  submission.prompt = std::move(ids);
  submission.embedding = params;
  submission.choices.resize(1);
  return submission;
}

using Embeddings = std::vector<std::vector<float>>;

// All at once, in as many steps as it takes.
Embeddings embed(Engine& engine, const std::vector<std::vector<TokenId>>& inputs,
                 const EmbeddingParams& params) {
  std::map<RequestId, std::size_t> places;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto id = engine.add(embedding_of(inputs[i], params));
    EXPECT_TRUE(id) << (id ? "" : id.error().describe());
    if (id) places[*id] = i;
  }
  Embeddings embeddings(inputs.size());
  while (engine.has_work())
    for (const Output& output : engine.step()) {
      EXPECT_EQ(output.finish, FinishReason::kStop) << output.error;
      embeddings[places.at(output.request)] = output.embedding;
    }
  return embeddings;
}

void expect_near(const std::vector<float>& found, const Json& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], *expected.items()[i].as_double(), kTolerance) << what << " dimension " << i;
}

std::vector<std::vector<TokenId>> inputs_of(const Json& truth) {
  std::vector<std::vector<TokenId>> inputs;
  for (const Json& row : truth.items()) inputs.push_back(ids_of(row));
  return inputs;
}

// A copy of a model whose files can be changed.
class Changed {
 public:
  explicit Changed(const std::string& name) {
    fs::copy(path_of(name), folder_.path(), fs::copy_options::recursive);
  }
  std::string path() const { return folder_.path().string(); }
  void put(const std::string& file, const std::string& text) const {
    std::ofstream(folder_.path() / file, std::ios::trunc) << text;
  }
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    auto text = read_file((folder_.path() / file).string());
    ASSERT_TRUE(text);
    const std::size_t at = text->find(from);
    ASSERT_NE(at, std::string::npos) << from;
    put(file, text->replace(at, from.size(), to));
  }
  void remove(const std::string& file) const { fs::remove(folder_.path() / file); }
  model::ModelSpec spec() const {
    const auto artifact = artifact::open(path());
    EXPECT_TRUE(artifact);
    auto spec = model::read_spec(**artifact);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().describe());
    return spec ? std::move(*spec) : model::ModelSpec();
  }
  // Why the engine does not compute it.
  std::string refusal() const {
    const Status can = memory::check_embedded(spec());
    return can ? "" : can.error().describe();
  }

 private:
  testing::MadeFolder folder_;
};

class Embedding : public ::testing::TestWithParam<std::string> {};

TEST_P(Embedding, IsThatOfSentenceTransformersAsTheFolderSays) {
  const Json truth = truth_of(GetParam());
  const auto engine = load_model(path_of(GetParam()), options_of());
  ASSERT_TRUE(engine);
  const Changed model(GetParam());
  const Embeddings found =
      embed(*engine, inputs_of(truth), {.is_normalized = model.spec().pooling->is_normalized});
  for (std::size_t i = 0; i < found.size(); ++i)
    expect_near(found[i], truth.items()[i]["embedding"], *truth.items()[i]["text"].as_string());
}

TEST_P(Embedding, OfEveryPoolingMode) {
  const Json truth = truth_of(GetParam());
  for (const auto& [mode, unused] : truth.items().front()["pooled"].members()) {
    const Changed model(GetParam());
    model.put("1_Pooling/config.json", R"({"pooling_mode": ")" + mode + R"("})");
    const auto engine = load_model(model.path(), options_of());
    ASSERT_TRUE(engine);
    const Embeddings found = embed(*engine, inputs_of(truth), {.is_normalized = false});
    for (std::size_t i = 0; i < found.size(); ++i)
      expect_near(found[i], truth.items()[i]["pooled"][mode], mode);
  }
}

TEST_P(Embedding, HasTheSameBitsAloneInCompanyAndInChunks) {
  const auto inputs = inputs_of(truth_of(GetParam()));
  for (const char* mode : {"lasttoken", "mean"})
    for (const bool caches : {false, true}) {
      const Changed model(GetParam());
      model.put("1_Pooling/config.json", R"({"pooling_mode": ")" + std::string(mode) + R"("})");
      EngineOptions options = options_of();
      options.enable_prefix_caching = caches;
      const auto engine = load_model(model.path(), options);
      options.max_num_batched_tokens = 7;
      options.threads = 2;
      const auto in_chunks = load_model(model.path(), options);
      ASSERT_TRUE(engine && in_chunks);
      const Embeddings together = embed(*engine, inputs, {});
      EXPECT_EQ(embed(*in_chunks, inputs, {}), together) << mode;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        EXPECT_EQ(embed(*engine, {inputs[i]}, {}).front(), together[i]) << mode;
    }
}

TEST_P(Embedding, OfFewerDimensionsIsNormalizedBehindTheCut) {
  const auto inputs = inputs_of(truth_of(GetParam()));
  const auto engine = load_model(path_of(GetParam()), options_of());
  ASSERT_TRUE(engine);
  const auto all = embed(*engine, {inputs[2]}, {.is_normalized = false}).front();
  const auto few = embed(*engine, {inputs[2]}, {.dimensions = 5}).front();
  ASSERT_EQ(few.size(), 5u);
  double squares = 0;
  for (std::size_t i = 0; i < few.size(); ++i) squares += static_cast<double>(all[i]) * all[i];
  for (std::size_t i = 0; i < few.size(); ++i) EXPECT_NEAR(few[i], all[i] / std::sqrt(squares), 1e-6);
}

TEST_P(Embedding, MayBeAsLongAsTheModelTakes) {
  const Changed model(GetParam());
  const auto engine = load_model(model.path(), options_of());
  ASSERT_TRUE(engine);
  const auto longest = static_cast<std::size_t>(model.spec().context_tokens());
  EXPECT_EQ(embed(*engine, {std::vector<TokenId>(longest, 7)}, {}).size(), 1u);
  const auto refused = engine->add(embedding_of(std::vector<TokenId>(longest + 1, 7), {}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("maximum context length"), std::string::npos);
  EXPECT_FALSE(engine->add(embedding_of({}, {})));
  EXPECT_FALSE(engine->has_work());
}

INSTANTIATE_TEST_SUITE_P(Models, Embedding, ::testing::Values("qwen3_last", "bert_mean", "roberta_cls"),
                         [](const auto& one) { return one.param; });

TEST(EmbeddingModel, GeneratesNoTextAndAGeneratingOneGivesNoEmbedding) {
  const auto engine = load_model(path_of("qwen3_last"), options_of());
  const auto other = load_model(testing::golden_path("models/llama_plain"), options_of());
  ASSERT_TRUE(engine && other);
  EXPECT_FALSE(engine->add(one_choice({1, 2}, greedy(3))));
  EXPECT_FALSE(other->add(embedding_of({1, 2}, {})));
}

TEST(Pooler, AStateThatIsNoNumberIsNotPassedOver) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& states : {std::vector{kNan, 1.0f}, {1.0f, kNan}, {1.0f, kNan, 2.0f}}) {
    Pooler pooler(model::PoolingKind::kMax, std::ssize(states), 1);
    pooler.add(0, states);
    EXPECT_TRUE(std::isnan(pooler.embedding({.is_normalized = false}).front()));
  }
}

// The class alone, as in a folder without modules: the last token, normalized.
TEST(EmbeddingModel, WithoutAHeadIsOneWhateverTheFolderSays) {
  const Changed model("qwen3_last");
  model.remove("modules.json");
  EXPECT_FALSE(model.spec().pooling);  // the architecture has a head
  model.replace("config.json", "Qwen3ForCausalLM", "Qwen3Model");
  const auto spec = model.spec();
  ASSERT_TRUE(spec.pooling);
  EXPECT_EQ(spec.pooling->kind, model::PoolingKind::kLast);
  EXPECT_TRUE(spec.pooling->is_normalized);
  EXPECT_EQ(model.refusal(), "");
}

TEST(EmbeddingModel, OlderFilesHaveAFlagForEachMode) {
  const Changed model("qwen3_last");
  model.put(
      "1_Pooling/config.json",
      R"({"word_embedding_dimension": 32, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  EXPECT_EQ(model.spec().pooling->kind, model::PoolingKind::kFirst);
  model.put("1_Pooling/config.json", R"({"word_embedding_dimension": 32})");
  EXPECT_EQ(model.spec().pooling->kind, model::PoolingKind::kMean);
}

TEST(EmbeddingModel, AnEncodersClassAloneTakesTheFirstToken) {
  const Changed model("bert_mean");
  model.remove("modules.json");
  ASSERT_TRUE(model.spec().pooling);
  EXPECT_EQ(model.spec().pooling->kind, model::PoolingKind::kFirst);
  EXPECT_TRUE(model.spec().pooling->is_normalized);
  model.replace("config.json", "BertModel", "BertForMaskedLM");
  EXPECT_FALSE(model.spec().pooling);
  EXPECT_NE(model.refusal().find("generates no text"), std::string::npos);
}

// The class names a head and a prefix that the file has not.
TEST(EmbeddingModel, AHeadThatIsNotThereIsNotMissed) {
  const Changed model("bert_mean");
  model.replace("config.json", "BertModel", "BertForMaskedLM");
  const Json truth = truth_of("bert_mean");
  const auto engine = load_model(model.path(), options_of());
  ASSERT_TRUE(engine);
  expect_near(embed(*engine, {ids_of(truth.items()[2])}, {}).front(), truth.items()[2]["embedding"], "bert");
}

TEST(EmbeddingModel, NoTextIsLongerThanTheTableOfPositions) {
  const Changed model("bert_mean");
  model.put("sentence_bert_config.json", R"({"max_seq_length": 1000})");
  EXPECT_EQ(model.spec().context_tokens(), 64);
  model.put("tokenizer_config.json", R"({"model_max_length": 20})");
  EXPECT_EQ(model.spec().context_tokens(), 64);  // the folder's own word counts
  model.remove("sentence_bert_config.json");
  EXPECT_EQ(model.spec().context_tokens(), 20);
  EXPECT_EQ(model::default_length(**artifact::open(model.path()), model.spec()), 20);
  model.replace("config.json", R"("max_position_embeddings": 64)", R"("max_position_embeddings": 65)");
  const auto artifact = artifact::open(model.path());
  const auto engine = Engine::load(*artifact, model.spec(), options_of());
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kMalformed);  // the file holds 64 rows
  const Changed roberta("roberta_cls");
  roberta.replace("config.json", R"("pad_token_id": 1)", R"("pad_token_id": 65)");
  EXPECT_NE(roberta.refusal().find("no row for a token"), std::string::npos);
}

TEST(EmbeddingModel, WhatAnEncodersConfigAsksForBeyondTheRowIsRefused) {
  const Changed types("bert_mean");
  types.replace("config.json", R"("type_vocab_size": 2)", R"("type_vocab_size": 0)");
  EXPECT_FALSE(model::read_spec(**artifact::open(types.path())));
  const Changed positions("bert_mean");
  positions.replace("config.json", "{", R"({"position_embedding_type": "relative_key",)");
  EXPECT_NE(positions.refusal().find("attention of its own kind"), std::string::npos);
  const Changed decoder("bert_mean");
  decoder.replace("config.json", R"("is_decoder": false)", R"("is_decoder": true)");
  EXPECT_NE(decoder.refusal(), "");
  const Changed two_sided("qwen3_last");
  two_sided.replace("config.json", "{", R"({"is_causal": false,)");
  EXPECT_NE(two_sided.refusal().find("sees what stands behind"), std::string::npos);
}

struct Hostile {
  const char* file;
  const char* text;
  const char* reason;
};

TEST(EmbeddingModel, WhatIsWrongWithItsFilesIsTheReasonOfARefusal) {
  const Hostile kinds[] = {
      {"1_Pooling/config.json", "[]", "no JSON object"},
      {"1_Pooling/config.json", "{", "no JSON object"},
      {"1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})",
       "2 pooling modes side by side"},
      {"1_Pooling/config.json", R"({"pooling_mode": ["cls", "mean"]})", "2 pooling modes side by side"},
      {"1_Pooling/config.json", R"({"pooling_mode_cls_token": 1})",
       "pooling_mode_cls_token is neither true nor false"},
      {"1_Pooling/config.json", R"({"pooling_mode": []})", "names no mode"},
      {"1_Pooling/config.json", R"({"pooling_mode": "median"})", "median is not computed"},
      {"1_Pooling/config.json", R"({"pooling_mode": "mean", "word_embedding_dimension": 31})",
       "word_embedding_dimension is 31"},
      {"sentence_bert_config.json", R"({"max_seq_length": 0})", "no number of tokens: 0"},
      {"sentence_bert_config.json", R"({"max_seq_length": "long"})", "no number of tokens"},
      {"sentence_bert_config.json", R"({"max_seq_length": 9, "do_lower_case": true})", "lower case"},
      {"modules.json", "{}", "pool no hidden states"},
      {"modules.json", "[", "is not said"},
      {"modules.json", "[1,2,3]", "no transformer"},
      {"modules.json", R"([{"type":"a.Transformer","path":"0_Transformer"}])", "in the folder itself"},
      {"modules.json", R"([{"type":"a.Transformer","path":""},{"type":"a.Pooling","path":"../x"}])",
       "no JSON object"},
      {"modules.json",
       R"([{"type":"a.Transformer","path":""},{"type":"a.Pooling","path":"1_Pooling"},{"type":"a.Dense"}])",
       "a.Dense is not computed"},
      {"modules.json",
       R"([{"type":"a.Transformer"},{"type":"a.Normalize"},{"type":"a.Pooling","path":"1_Pooling"}])",
       "a.Normalize is not computed at this place"},
  };
  for (const Hostile& kind : kinds) {
    const Changed model("qwen3_last");
    model.put(kind.file, kind.text);
    EXPECT_NE(model.refusal().find(kind.reason), std::string::npos)
        << kind.file << " " << kind.text << ": " << model.refusal();
  }
}

}  // namespace
}  // namespace plimsoll::engine
