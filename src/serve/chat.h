// SPDX-License-Identifier: Apache-2.0
// How do messages become a prompt? Checks what the API asks of them, lets the text room normalise and render
// them, and encodes the text. Pure; any thread.
#pragma once

#include <string>

#include "serve/fields.h"
#include "serve/model_context.h"
#include "serve/request.h"

namespace plimsoll::serve {

/// The messages as the template gets them (text::normalized_messages), with the roles and contents that the
/// API requires. Errors: 400 naming the place, for instance messages[0].content[1].image_url.
ApiResult<Json> normalise_messages(const Json& messages, bool takes_parts);

/// Reads messages, tools and the template's settings of a request, renders and encodes.
/// Errors (kept in `fields`): 400 for a fault of the messages, of the template, or when the model has none.
Prompt read_chat_prompt(Fields& fields, const ModelContext& context);

/// Text of a message: its string, or its text parts joined with a newline.
std::string message_text(const Json& message);

}  // namespace plimsoll::serve
