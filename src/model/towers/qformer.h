// SPDX-License-Identifier: Apache-2.0
// The querying transformer of BLIP-2 that other wrappers borrow as their projector: learned queries attend to
// themselves and, in every few layers, to an encoder's features. Lists weights only; nothing is owned.
#pragma once

#include <cstdint>
#include <string>

#include "model/families/spec_writer.h"
#include "model/key_reader.h"

namespace plimsoll::model {

/// Lists it under `prefix`, behind what the writer has entered; returns its width. The queries themselves are
/// the caller's. Errors are kept in `qformer`.
/// Source: transformers' Blip2QFormerConfig and Blip2QFormerModel.
std::int64_t write_qformer(KeyReader& qformer, const std::string& prefix, SpecWriter& writer);

}  // namespace plimsoll::model
