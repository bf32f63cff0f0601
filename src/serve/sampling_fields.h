// SPDX-License-Identifier: Apache-2.0
// How may the next token be chosen, when does a sequence end? The sampling fields that all endpoints share.
#pragma once

#include <string>
#include <vector>

#include "serve/fields.h"
#include "serve/request.h"

namespace plimsoll::serve {

constexpr int kMaxLogprobs = 20;  // as OpenAI's top_logprobs and vLLM's --max-logprobs

/// Fills sampling, stop strings and stop ids of `request`; faults stay in `fields`.
void read_sampling(Fields& fields, const ModelContext& context, GenerationRequest& request);

/// Faults for fields that would change the answer and that this server cannot honour.
void refuse_unsupported(Fields& fields);

}  // namespace plimsoll::serve
