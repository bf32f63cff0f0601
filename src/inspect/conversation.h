// SPDX-License-Identifier: Apache-2.0
// Is this a model that conversations are held with? By its class, its files, its name and its card; a chat
// template is looked for elsewhere. Pure.
#pragma once

#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

enum class Conversation {
  kNone,     // it writes no text of its own: encoders, embedders, classifiers, encoder-decoders
  kBase,     // it goes on with any text; name or card say that it was not trained on conversations
  kUnknown,  // it writes text, and nothing says that it is a base model
};

/// Wants report.architecture and report.spec.
Conversation conversation_of(const Subject& subject, const Report& report);

}  // namespace plimsoll::inspect
