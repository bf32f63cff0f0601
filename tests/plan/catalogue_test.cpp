// SPDX-License-Identifier: Apache-2.0
// Every model of the built-in catalogue is one that plan can start from.
#include "facts/catalogue.h"

#include <gtest/gtest.h>

#include "plan/plan.h"

namespace plimsoll::plan {
namespace {

TEST(CatalogueModels, AreAllRead) {
  int counted = 0;
  for (const facts::CatalogueEntry& entry : facts::catalogue()) {
    const auto model = catalogue_model(entry);
    ASSERT_TRUE(model) << entry.id << ": " << model.error().describe();
    EXPECT_FALSE(model->spec.layers.empty()) << entry.id;
    EXPECT_FALSE(model->title.empty()) << entry.id;
    if (model::count_parameters(model->spec)) ++counted;
  }
  EXPECT_GT(counted, 120);
}

}  // namespace
}  // namespace plimsoll::plan
