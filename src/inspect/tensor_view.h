// SPDX-License-Identifier: Apache-2.0
// What values does one tensor hold? Pure but for reading the tensor's bytes.
#pragma once

#include <string>

#include "artifact/artifact.h"
#include "base/json.h"
#include "base/result.h"

namespace plimsoll::inspect {

/// The document's list of all tensors: name, dtype, shape, file, offset_bytes, bytes.
Json tensor_list(const artifact::Artifact& artifact);

/// Statistics of one tensor: min, max, mean, std over its finite values, counts of NaN and infinities, the
/// first and last eight values.
/// Errors: kUsage when no tensor has this name; kUnsupported for packed types; kMalformed when its bytes are
/// not in the file.
Result<Json> tensor_statistics(const artifact::Artifact& artifact, const std::string& name);

/// What `tensor_statistics` found, a line each, values with five digits.
std::string tensor_text(const Json& tensor);

}  // namespace plimsoll::inspect
