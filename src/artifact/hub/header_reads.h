// SPDX-License-Identifier: Apache-2.0
// Reads of a weights file on a hub only what describes it (safetensors header, GGUF header, a zip's
// directory), and writes it at its place into a sparse file of the true size: the readers of local files then
// say the same about it as about the whole file. Tensor bytes are never asked for. One thread per client.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artifact/hub/agreement.h"
#include "artifact/hub/client.h"
#include "artifact/hub/listing.h"
#include "base/json.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// Makes `path` a sparse file of `bytes` bytes. Errors: kUsage when the file system does not take it.
Status make_sparse(const std::string& path, std::int64_t bytes);

/// Fills the sparse file `path` with the describing bytes of `file` (by its ending).
/// Errors: kNetwork; kUsage when it cannot be written. What contradicts the listing is noted in `disagrees`.
Status read_header_into(const std::string& path, const Asked& asked, const HubFile& file, HubClient& client,
                        Disagreement& disagrees);

/// Headers of all shards in one request (/api/models/REPO/safetensors-metadata/INDEX, of main only).
/// Returns the shards written below `folder`; those left out are to be read one by one.
std::vector<std::string> read_all_headers_into(const std::string& folder, const Asked& asked,
                                               const std::string& index,
                                               const std::vector<const HubFile*>& shards, HubClient& client);

/// The bytes that begin a safetensors file of `file_bytes` bytes with the tensors of `header`; empty when no
/// header of that file can say so. For a header that came as JSON without its length.
std::string safetensors_head(const Json& header, std::int64_t file_bytes);

}  // namespace plimsoll::artifact
