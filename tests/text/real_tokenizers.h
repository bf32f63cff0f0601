// SPDX-License-Identifier: Apache-2.0
// Which real vocabularies can the tests of this room load? Those of the folder that PLIMSOLL_TOKENIZERS
// names, as tools/fetch_tokenizers fills it. A tokenizer is loaded once per process and kept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/text.h"

namespace plimsoll::text {

/// True when PLIMSOLL_TOKENIZERS names a folder; tests without one are skipped.
bool have_real_tokenizers();

/// Names of the families that the golden set holds rows of.
const std::vector<std::string>& family_names();

/// Path of a file below the folder.
std::string tokenizer_path(const std::string& relative);

/// Errors: those of opening and loading; kMalformed for an unknown family.
Result<std::shared_ptr<const Tokenizer>> load_family(const std::string& family);
Result<std::shared_ptr<const Tokenizer>> load_real_tokenizer(const std::string& relative);

}  // namespace plimsoll::text
