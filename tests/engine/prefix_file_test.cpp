// SPDX-License-Identifier: Apache-2.0
// The prefix cache outlives the engine, bit for bit; a file that is damaged or another model's is not used.
#include "engine/prefix_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/temporary_folder.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

std::vector<TokenId> prompt_of(int seed, int length = 150) {
  std::vector<TokenId> prompt(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i)
    prompt[static_cast<std::size_t>(i)] = (seed * 131 + i * 37 + i * i) % 500 + 3;
  return prompt;
}

class PrefixFile : public ::testing::TestWithParam<std::string> {
 protected:
  PrefixFile() : folder_(*TemporaryFolder::make()) {}

  std::unique_ptr<Engine> start(std::int64_t num_blocks = 128, int block_size = 16) const {
    EngineOptions options = small_options(ComputeMode::kFloat32);
    options.num_blocks = num_blocks;
    options.block_size = block_size;
    options.prefix_cache_dir = folder_.path() + "/cache";
    return load_model(testing::golden_path("models/" + GetParam()), options);
  }
  std::string file() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/cache")) {
      EXPECT_TRUE(found.empty()) << "one file, and nothing half written beside it";
      found = entry.path().string();
    }
    return found;
  }

  TemporaryFolder folder_;
};

TEST_P(PrefixFile, TheNextEngineFindsWhatTheLastOneComputed) {
  Trace first;
  {
    const auto engine = start();
    first = run_alone(*engine, prompt_of(1), greedy(5));
    EXPECT_EQ(first.cached_prompt_tokens, 0);
    ASSERT_TRUE(engine->save_prefix_cache());
  }
  const auto engine = start();
  const Trace again = run_alone(*engine, prompt_of(1), greedy(5));
  EXPECT_EQ(again.cached_prompt_tokens, 144);
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.step_logits, first.step_logits);
  EXPECT_EQ(run_alone(*engine, prompt_of(2), greedy(5)).cached_prompt_tokens, 0);
  ASSERT_TRUE(engine->save_prefix_cache());
  EXPECT_EQ(run_alone(*start(), prompt_of(2), greedy(5)).cached_prompt_tokens, 144);
  const auto mode = fs::status(file()).permissions();
  EXPECT_EQ(mode & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
}

TEST_P(PrefixFile, ASmallerPoolKeepsWhatWasUsedLast) {
  {
    const auto engine = start();
    for (int seed = 1; seed <= 4; ++seed) run_alone(*engine, prompt_of(seed), greedy(1));
    run_alone(*engine, prompt_of(1), greedy(1));
    ASSERT_TRUE(engine->save_prefix_cache());
  }
  EngineOptions options = small_options(ComputeMode::kFloat32);
  options.num_blocks = 40;  // at most four prompts of ten blocks each
  options.max_model_len = 160;
  options.prefix_cache_dir = folder_.path() + "/cache";
  const auto engine = load_model(testing::golden_path("models/" + GetParam()), options);
  ASSERT_TRUE(engine);
  EXPECT_EQ(run_alone(*engine, prompt_of(1), greedy(1)).cached_prompt_tokens, 144);
}

TEST_P(PrefixFile, OtherSaltsLayoutsAndModelsFindNothing) {
  {
    const auto engine = start();
    Submission salted = one_choice(prompt_of(1), greedy(1));
    salted.cache_salt = "mine";
    ASSERT_TRUE(engine->add(salted));
    while (engine->has_work()) engine->step();
    run_alone(*engine, prompt_of(2), greedy(1));
    ASSERT_TRUE(engine->save_prefix_cache());
  }
  EXPECT_EQ(run_alone(*start(), prompt_of(1), greedy(1)).cached_prompt_tokens, 0);
  EXPECT_EQ(run_alone(*start(128, 8), prompt_of(2), greedy(1)).cached_prompt_tokens, 0);
  EXPECT_EQ(run_alone(*start(), prompt_of(2), greedy(1)).cached_prompt_tokens, 144);
}

TEST_P(PrefixFile, ADamagedFileIsNotUsed) {
  {
    const auto engine = start();
    run_alone(*engine, prompt_of(1), greedy(1));
    ASSERT_TRUE(engine->save_prefix_cache());
  }
  const std::string path = file();
  const std::string sound = *read_file(path);
  const auto resealed = [](std::string body) { return body + sha256_hex(std::as_bytes(std::span(body))); };
  const std::string body = sound.substr(0, sound.size() - 64);
  std::vector<std::string> bad = {"", "x", sound.substr(0, sound.size() / 2), sound + "x", body};
  for (const std::size_t at :
       {0ul, 30ul, 84ul, 92ul, 96ul, 100ul, 102ul, sound.size() / 2, sound.size() - 1}) {
    bad.push_back(sound);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 0x41);  // damaged
    if (at >= 92 + 12) continue;
    std::string forged = body;
    forged[at] = static_cast<char>(forged[at] ^ 0x41);
    bad.push_back(resealed(forged));  // wrong, under a checksum that agrees
  }
  bad.push_back(resealed(body.substr(0, body.size() - 1)));
  bad.push_back(
      resealed(body.substr(0, 84) + std::string(8, '\xff') + body.substr(92)));  // 2^64 - 1 prefixes
  for (const std::string& content : bad) {
    std::ofstream(path, std::ios::binary) << content;
    const auto engine = start();
    ASSERT_TRUE(engine);
    const Trace run = run_alone(*engine, prompt_of(1), greedy(1));
    EXPECT_EQ(run.cached_prompt_tokens, 0);
  }
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(run_alone(*start(), prompt_of(1), greedy(1)).cached_prompt_tokens, 0);
  EXPECT_FALSE(start()->save_prefix_cache()) << "a folder stands where the file belongs";
}

// A salt is the client's: a huge one must not cost the others what is kept of theirs.
TEST_P(PrefixFile, AHugeSaltIsLeftOutAlone) {
  {
    const auto engine = start();
    run_alone(*engine, prompt_of(2), greedy(1));
    Submission salted = one_choice(prompt_of(1), greedy(1));
    salted.cache_salt.assign(std::size_t{1} << 20, 'x');
    ASSERT_TRUE(engine->add(salted));
    while (engine->has_work()) engine->step();
    ASSERT_TRUE(engine->save_prefix_cache());
  }
  EXPECT_EQ(run_alone(*start(), prompt_of(2), greedy(1)).cached_prompt_tokens, 144);
}

// The longest request decides which factors of longrope turn the keys; the config is the same.
TEST_P(PrefixFile, OtherAnglesAreAnotherIdentity) {
  const auto artifact = artifact::open(testing::golden_path("models/" + GetParam()));
  ASSERT_TRUE(artifact);
  const memory::EmbeddedCache cache{.block_size = 16,
                                    .format = DType::kF32,
                                    .groups = {},
                                    .places = {},
                                    .states = {},
                                    .state_bytes = {},
                                    .bytes_per_token = Bytes(1),
                                    .bytes_per_block = Bytes(16)};
  RopeTables ropes{{{1.0F, 0.5F}, 1.0F}, {}, {}};
  const std::string first = prefix_identity(**artifact, ropes, cache);
  EXPECT_EQ(prefix_identity(**artifact, ropes, cache), first);
  ropes.all.attention_factor = 1.1F;
  const std::string second = prefix_identity(**artifact, ropes, cache);
  ropes.all.inverse_frequencies[1] = 0.25F;
  const std::string third = prefix_identity(**artifact, ropes, cache);
  ropes.windows = RopeTable{{1.0F, 0.1F}, 1.0F};
  EXPECT_EQ((std::set{first, second, third, prefix_identity(**artifact, ropes, cache)}.size()), 4u);
}

TEST_P(PrefixFile, AHalfWrittenFileIsRemovedWhenItIsOld) {
  const auto engine = start();
  run_alone(*engine, prompt_of(1), greedy(1));
  ASSERT_TRUE(engine->save_prefix_cache());
  const fs::path old = file() + ".partial.abcdef", young = file() + ".partial.ghijkl";
  for (const auto& path : {old, young}) std::ofstream(path) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(engine->save_prefix_cache());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

TEST_P(PrefixFile, AFolderThatCannotBeMadeIsSaid) {
  EngineOptions options = small_options(ComputeMode::kFloat32);
  options.prefix_cache_dir = "/dev/null/cache";
  const auto engine = load_model(testing::golden_path("models/" + GetParam()), options);
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->save_prefix_cache().error().code, ErrorCode::kUsage);
}

INSTANTIATE_TEST_SUITE_P(Models, PrefixFile, ::testing::Values("llama_plain", "qwen2_sliding"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace plimsoll::engine
