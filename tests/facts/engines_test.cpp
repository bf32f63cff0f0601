// SPDX-License-Identifier: Apache-2.0
#include "facts/engines.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/mapped_file.h"
#include "facts/catalogue.h"

namespace plimsoll::facts {
namespace {

TEST(Engines, VersionsStandForThemselvesOrTheNewestOlderOne) {
  struct Case {
    const char *text, *version;
    bool is_found;
  };
  for (const Case& c :
       {Case{"vllm", "0.33.0", true}, Case{"vllm@0.33.0", "0.33.0", true},
        Case{"vllm@0.32.0", "0.32.0", true}, Case{"vllm@0.33.0rc2.dev12+gabc", "0.33.0", true},
        Case{"vllm@0.32.7", "0.32.0", false}, Case{"vllm@9.9", "0.33.0", false},
        Case{"vllm@0.1.dev7+gabcdef", "0.33.0", false}, Case{"vllm@main", "0.33.0", false},
        Case{"vllm@0.6.4.post1", "0.6.4", true}, Case{"vllm@0.5.0", "0.6.0", false},
        Case{"vllm@0.33", "0.33.0", true}, Case{"vllm@0.19", "0.19.1", true},
        Case{"vllm@0.10", "0.10.2", true}, Case{"vllm@0", "0.33.0", true}, Case{"vllm@0.34", "0.33.0", false},
        Case{"vllm@0.19.", "0.19.1", true}, Case{"sglang", "0.5.23", true}}) {
    const auto choice = parse_engine(c.text);
    ASSERT_TRUE(choice) << c.text;
    EXPECT_EQ(choice->version, c.version) << c.text;
    EXPECT_EQ(choice->findings.empty(), c.is_found) << c.text;
    if (!c.is_found) {
      EXPECT_EQ(choice->findings[0].id, "VERSION_UNKNOWN");
    }
  }
}

TEST(Engines, UnknownNamesListTheKnown) {
  for (const char* text : {"", "@1", "vLLM", "tgi@3"}) {
    const auto choice = parse_engine(text);
    ASSERT_FALSE(choice) << text;
    EXPECT_EQ(choice.error().code, ErrorCode::kUsage);
    EXPECT_NE(choice.error().fix.find("llama.cpp"), std::string::npos);
  }
}

TEST(Engines, OurOwnVersionIsTheProjects) {
  const auto cmake = read_file(std::string(PLIMSOLL_SOURCE_DIR) + "/CMakeLists.txt");
  ASSERT_TRUE(cmake);
  EXPECT_NE(cmake->find("project(plimsoll VERSION " + parse_engine("plimsoll")->version + " "),
            std::string::npos);
}

TEST(Catalogue, IdsAreFoundWithoutCaseAndRevision) {
  ASSERT_NE(find_catalogue("meta-llama/Llama-3.1-8B"), nullptr);
  EXPECT_EQ(find_catalogue("META-LLAMA/llama-3.1-8b@main"), find_catalogue("meta-llama/Llama-3.1-8B"));
  EXPECT_EQ(find_catalogue("meta-llama/Llama-3.1-8"), nullptr);
  EXPECT_EQ(find_catalogue(""), nullptr);
}

TEST(Catalogue, EveryEntryHasAConfigAndASource) {
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_TRUE(entry.config_json()["model_type"].is_string()) << entry.id;
    const bool is_findable =
        entry.source.starts_with("https://") || entry.source.find("on PyPI") != std::string::npos;
    EXPECT_TRUE(is_findable &&
                std::regex_search(std::string(entry.source), std::regex(R"(\b20\d\d-[01]\d-[0-3]\d\b)")))
        << entry.id << ": " << entry.source;  // and on which day it was read
    EXPECT_EQ(find_catalogue(entry.id), &entry);
  }
}

}  // namespace
}  // namespace plimsoll::facts
