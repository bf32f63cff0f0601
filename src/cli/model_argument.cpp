// SPDX-License-Identifier: Apache-2.0
#include "cli/model_argument.h"

#include "facts/catalogue.h"

namespace plimsoll::cli {

Status settle_model(std::string& model, CommonFlags& common) {
  if (!model.empty()) return {};
  if (common.lock.empty())
    return fail(ErrorCode::kUsage, "MODEL is required", "MODEL",
                "give a folder, a file, org/name of a hub, or --lock FILE");
  model.swap(common.lock);
  return {};
}

artifact::OpenOptions open_options(const CommonFlags& common, artifact::Need need) {
  return {.need = need, .lock = common.lock, .catalogue = facts::catalogue_config};
}

}  // namespace plimsoll::cli
