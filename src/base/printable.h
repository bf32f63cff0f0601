// SPDX-License-Identifier: Apache-2.0
// How does text that came from a file or a peer look on a terminal without steering it? Every line that
// people read goes through here once; JSON has its own escapes and does not. Pure; safe from any thread.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll {

/// True for what a terminal obeys instead of showing: control characters (C0, DEL, C1), the marks that turn
/// the direction of writing, and Unicode's own line ends.
bool steers_terminal(char32_t code_point);

/// `text` on one line: what steers is shown as \xNN or \uNNNN, bytes that are not UTF-8 as U+FFFD.
std::string printable(std::string_view text);

/// The same for a page whose line ends and tabs are meant.
std::string printable_page(std::string_view text);

}  // namespace plimsoll
