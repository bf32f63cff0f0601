// SPDX-License-Identifier: Apache-2.0
// The names that a family gives to the parts of the plain decoder. Asked after its weights are listed;
// changes only file names of the Hugging Face form. Pure.
#pragma once

#include <initializer_list>
#include <string_view>

#include "model/model.h"

namespace plimsoll::model {

struct Renaming {
  std::string_view from, to;
};
/// Replaces the first `from` in every weight's name by `to`, one renaming after the other. Weights of
/// encoders keep theirs.
void rename_weights(ModelSpec& spec, std::initializer_list<Renaming> renamings);

}  // namespace plimsoll::model
