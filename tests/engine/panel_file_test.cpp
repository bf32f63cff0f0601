// SPDX-License-Identifier: Apache-2.0
// Panels outlive the engine, bit for bit; a file that is damaged or another model's is not used, and one that
// is cut while it is mapped is told.
#include "engine/panel_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

const std::vector<TokenId> kPrompt{3, 141, 59, 26, 53, 58, 97, 93, 23, 84};

class PanelFile : public ::testing::Test {
 protected:
  PanelFile() : folder_(*TemporaryFolder::make()) {}

  // Rounded to eight bits at load, so that all of its matrices have panels whatever the folder holds.
  std::unique_ptr<Engine> start(bool is_kept = true) const {
    EngineOptions options = small_options(ComputeMode::kAuto);
    options.quantization = memory::WeightFormat::kInt8;
    if (is_kept) options.packed_cache_dir = cache();
    return load_model(testing::golden_path("models/" + models_with_weights().front()), options);
  }
  static Trace answer_of(Engine& engine) { return run_alone(engine, kPrompt, greedy(8)); }
  std::string cache() const { return folder_.path() + "/cache"; }
  std::string file() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(cache())) {
      EXPECT_TRUE(found.empty()) << "one file, and nothing half written beside it";
      found = entry.path().string();
    }
    return found;
  }
  std::string content() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TemporaryFolder folder_;
};

TEST_F(PanelFile, TheNextEngineFindsThemAndAnswersTheSame) {
  const Trace made = answer_of(*start(false));
  EXPECT_EQ(answer_of(*start()).step_logits, made.step_logits);
  const std::string first = file(), bytes = content();
  const auto written = fs::last_write_time(first);
  const auto engine = start();
  EXPECT_EQ(answer_of(*engine).step_logits, made.step_logits);
  EXPECT_EQ(file(), first);
  EXPECT_EQ(fs::last_write_time(first), written) << "found, not made again";
  EXPECT_EQ(content(), bytes);
  EXPECT_FALSE(engine->cut_error());
}

TEST_F(PanelFile, ADamagedOneIsWrittenAnew) {
  const Trace made = answer_of(*start());
  const std::string bytes = content();
  for (const std::size_t at : {std::size_t{3}, std::size_t{100}, std::size_t{3000}, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    std::ofstream(file(), std::ios::binary) << damaged;
    EXPECT_EQ(answer_of(*start()).step_logits, made.step_logits);
    EXPECT_EQ(content(), bytes) << "byte " << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{4096}, bytes.size() - 1}) {
    fs::resize_file(file(), size);
    EXPECT_EQ(answer_of(*start()).step_logits, made.step_logits);
    EXPECT_EQ(content(), bytes) << "cut to " << size;
  }
}

TEST_F(PanelFile, AnEngineTellsWhenItBecomesShorter) {
  const auto engine = start();
  const auto mapped = start();
  EXPECT_FALSE(mapped->cut_error());
  fs::resize_file(file(), 4096);
  answer_of(*mapped);
  ASSERT_TRUE(mapped->cut_error());
  EXPECT_NE(mapped->cut_error()->message.find("shorter"), std::string::npos);
  EXPECT_EQ(mapped->cut_error()->where, file());
  answer_of(*engine);
  EXPECT_FALSE(engine->cut_error()) << "its panels lie in memory of its own";
}

TEST_F(PanelFile, WhatAKilledStartLeftGoesWhenItIsOld) {
  start();
  const std::string place = file(), young = place + ".partial.aaaaaa", old = place + ".partial.bbbbbb";
  fs::remove(place);
  for (const std::string& partial : {young, old}) std::ofstream(partial) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  start();
  EXPECT_TRUE(fs::exists(place));
  EXPECT_TRUE(fs::exists(young)) << "another start may be writing it";
  EXPECT_FALSE(fs::exists(old));
}

TEST_F(PanelFile, AFolderThatCannotBeMadeCostsTheKeepingAlone) {
  std::ofstream(cache()) << "a file";
  EXPECT_EQ(answer_of(*start()).step_logits, answer_of(*start(false)).step_logits);
}

}  // namespace
}  // namespace plimsoll::engine
