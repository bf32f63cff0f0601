// SPDX-License-Identifier: Apache-2.0
#include "facts/licenses.h"

#include <gtest/gtest.h>

#include <set>

namespace plimsoll::facts {
namespace {

TEST(Licenses, EveryRowIsComplete) {
  std::set<std::string_view> ids;
  for (const LicenseFacts& row : all_licenses()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id << " stands twice";
    EXPECT_FALSE(row.title.empty() || row.source.empty() || row.date.empty()) << row.id;
    EXPECT_EQ(find_license(row.id), &row) << row.id;
    const bool has_open =
        row.redistribution == Permission::kUnknown || row.derivatives == Permission::kUnknown;
    EXPECT_EQ(row.is_known(), !has_open) << row.id << ": terms are known all or none";
    const bool is_bound =
        row.commercial_use == Permission::kConditional || row.commercial_use == Permission::kNo;
    EXPECT_FALSE(is_bound && row.conditions.empty()) << row.id << ": which conditions?";
  }
  EXPECT_GT(ids.size(), 90U);
}

TEST(Licenses, TermsOfKnownOnes) {
  const auto terms = [](const char* id) {
    const LicenseFacts* row = find_license(id);
    return row ? std::string(to_string(row->commercial_use)) + " " +
                     std::string(to_string(row->redistribution)) + " " +
                     std::string(to_string(row->derivatives))
               : "none";
  };
  EXPECT_EQ(terms("apache-2.0"), "yes yes yes");
  EXPECT_EQ(terms("mit"), "yes yes yes");
  EXPECT_EQ(terms("cc-by-nc-4.0"), "no conditional conditional");
  EXPECT_EQ(terms("cc-by-nd-4.0"), "yes yes no");
  EXPECT_EQ(terms("llama3.1"), "conditional conditional conditional");
  EXPECT_EQ(terms("gemma"), "conditional conditional conditional");
  EXPECT_EQ(terms("qwen-research"), "no conditional conditional");
  EXPECT_EQ(terms("mistral-research"), "no conditional conditional");
  EXPECT_EQ(terms("qwen-community-1.0"), "  ");  // the name is known, the terms are not
  EXPECT_EQ(terms("no-such-licence"), "none");
  EXPECT_TRUE(find_license("llama3.3")->is_gated);
  EXPECT_FALSE(find_license("apache-2.0")->is_gated);
}

TEST(Licenses, NamesAreFoundHoweverTheyAreWritten) {
  for (const char* name : {"Apache-2.0", "APACHE 2.0", "apache_2.0", " apache-2.0 "})
    EXPECT_EQ(find_license(name), find_license("apache-2.0")) << name;
  EXPECT_EQ(find_license("MRL"), find_license("mistral-research"));
  EXPECT_EQ(find_license("Qwen License Agreement"), find_license("qwen"));
  EXPECT_EQ(find_license(std::string(100'000, 'a')), nullptr);
}

TEST(Licenses, TextsAreRecognised) {
  const auto id = [](std::string_view text) {
    const LicenseFacts* row = recognize_license(text);
    return row ? std::string(row->id) : "none";
  };
  EXPECT_EQ(id("                                 Apache License\n                           Version 2.0, "
               "January 2004\n"),
            "apache-2.0");
  EXPECT_EQ(id("MIT License\n\nPermission is hereby granted, free of charge, to any person\nto deal in the "
               "Software "
               "without restriction, including without limitation"),
            "mit");
  EXPECT_EQ(id("Modified MIT License\nPermission is hereby granted, free of charge, ... without restriction, "
               "including ... more than 100 million monthly active users"),
            "modified-mit");
  EXPECT_EQ(id("LLAMA 3.1 COMMUNITY LICENSE AGREEMENT\nLlama 3.1 Version Release Date"), "llama3.1");
  EXPECT_EQ(id("META LLAMA 3 COMMUNITY LICENSE AGREEMENT"), "llama3");
  EXPECT_EQ(id("Qwen RESEARCH LICENSE AGREEMENT"), "qwen-research");
  EXPECT_EQ(id("Qwen LICENSE AGREEMENT"), "qwen");
  EXPECT_EQ(id("DEEPSEEK LICENSE AGREEMENT\nVersion 1.0"), "deepseek");
  EXPECT_EQ(id("GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007"), "gpl-3.0");
  EXPECT_EQ(id("Creative Commons Attribution-NonCommercial 4.0 International"), "cc-by-nc-4.0");
  EXPECT_EQ(id("Creative Commons Attribution 4.0 International"), "cc-by-4.0");
  EXPECT_EQ(id("You may do as we say."), "none");
  EXPECT_EQ(id(""), "none");
}

TEST(Licenses, TheTitleSpeaksNotWhatTheTextMentions) {
  const auto id = [](std::string_view text) {
    const LicenseFacts* row = recognize_license(text);
    return row ? std::string(row->id) : std::string();
  };
  EXPECT_EQ(id("GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007\n ... the GNU Affero General Public "
               "License, section 13"),
            "gpl-3.0");
  EXPECT_EQ(
      id("Mozilla Public License Version 2.0\n ... the GNU Lesser General Public License, Version 2.1, the "
         "GNU Affero General Public License, Version 3.0"),
      "mpl-2.0");
  EXPECT_EQ(
      id("GNU LESSER GENERAL PUBLIC LICENSE\n Version 3\n ... version 3 of the GNU General Public License"),
      "lgpl-3.0");
  EXPECT_EQ(
      id("GNU LIBRARY GENERAL PUBLIC LICENSE\n Version 2, June 1991\n ... the ordinary GNU General Public "
         "License, version 2"),
      "lgpl");
  EXPECT_EQ(id("EXAONE AI Model License Agreement 1.1 - NC"), "exaone");
  EXPECT_EQ(id("EXAONE AI Model License Agreement 2.0\n ... since and once"), "");
}

// A reading that cannot be looked up is an opinion.
TEST(Licenses, SourcesAreAddresses) {
  for (const LicenseFacts& row : all_licenses()) {
    EXPECT_TRUE(row.source.starts_with("https://")) << row.id << ": " << row.source;
    EXPECT_EQ(row.date.size(), 10U) << row.id;
  }
}

}  // namespace
}  // namespace plimsoll::facts
