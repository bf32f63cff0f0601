// SPDX-License-Identifier: Apache-2.0
#include "schedule/content_key.h"

#include <gtest/gtest.h>

#include "tests/schedule/requests.h"

namespace plimsoll::schedule {
namespace {

std::string key_of(const ContentKey& key, std::int64_t block) {
  std::string scratch;
  return std::string(key.of_block(block, 4, scratch));
}

TEST(ContentKey, SaltAndAdaptorCountInTheFirstBlock) {
  EXPECT_EQ(key_of(ContentKey(), 0), "");
  EXPECT_NE(key_of(ContentKey("ab", "c", {}), 0), key_of(ContentKey("a", "bc", {}), 0));
  EXPECT_NE(key_of(ContentKey("a", "", {}), 0), key_of(ContentKey("", "a", {}), 0));
  EXPECT_EQ(key_of(ContentKey("a", "", {}), 1), "");
}

TEST(ContentKey, ForeignContentCountsInTheBlocksItStandsIn) {
  const ContentKey key("", "", {{6, 5, "cat"}});  // tokens 6 to 10
  EXPECT_EQ(key_of(key, 0), "");
  EXPECT_NE(key_of(key, 1), "");
  EXPECT_NE(key_of(key, 2), "");
  EXPECT_EQ(key_of(key, 3), "");
  EXPECT_NE(key_of(key, 1), key_of(ContentKey("", "", {{6, 5, "dog"}}), 1));
  EXPECT_NE(key_of(key, 1), key_of(ContentKey("", "", {{7, 5, "cat"}}), 1));
  EXPECT_EQ(key_of(ContentKey("", "", {{0, INT64_MAX, "x"}}), 1000).empty(), false);
}

TEST(PrefixReuse, AdaptorsAndImagesKeepBlocksApart) {
  Scheduler scheduler(small_pool(64));
  const auto with = [](SequenceId id, const std::string& adapter, const std::string& image) {
    Request request = asked(id, counting(0, 17), 20);
    request.adapter = adapter;
    if (!image.empty()) request.contents = {{9, 2, image}};
    return request;
  };
  const auto hit = [&](Request request) {
    const SequenceId id = request.id;
    EXPECT_TRUE(scheduler.add(std::move(request)));
    while (scheduler.tokens(id).size() < 18) run_step(scheduler);
    const auto cached = scheduler.cached_prompt_tokens(id);
    scheduler.finish(id);
    return cached;
  };
  EXPECT_EQ(hit(with(1, "", "cat")), 0);
  EXPECT_EQ(hit(with(2, "", "cat")), 16);
  EXPECT_EQ(hit(with(3, "", "dog")), 8) << "what stands before the image is the same";
  EXPECT_EQ(hit(with(4, "", "")), 8);
  EXPECT_EQ(hit(with(5, "poet", "cat")), 0);
  EXPECT_EQ(hit(with(6, "poet", "cat")), 16);
}

}  // namespace
}  // namespace plimsoll::schedule
