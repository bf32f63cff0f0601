// SPDX-License-Identifier: Apache-2.0
// Where do two models differ? Their figures, layers, tokenizers and tensors side by side: a base model and
// its quantized copy, two revisions, a merge and its parents. Contents of tensors are not compared. Pure
// functions.
#pragma once

#include <string>

#include "base/json.h"
#include "inspect/inspect.h"

namespace plimsoll::inspect {

/// The `compare` object of two reports made with Options::lists_tensors: {a, b, same, figures[{name, a, b,
/// same}], dtypes[{dtype, a_bytes, b_bytes}], layers[{first, count, a, b}], tensors{a, b, added[], removed[],
/// changed[]}}. Lists of layers and tensors hold what differs. `same` is about all of it, whatever the models
/// are called.
Json compare(const Report& a, const Report& b);

/// The same as a table for people.
std::string compare_text(const Json& comparison);

}  // namespace plimsoll::inspect
