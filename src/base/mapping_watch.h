// SPDX-License-Identifier: Apache-2.0
// What happens when a mapped file becomes shorter while it is read? The system sends SIGBUS, which ends a
// process that does not expect it. Here zeros are put behind the file's new end, and the mapping is marked.
// Every other SIGBUS goes where it went before (docs/decisions/011-signals.md). For MappedFile alone. Any
// thread may call.
#pragma once

#include <cstddef>

namespace plimsoll {

/// Watches a mapping of `size` bytes. Returns its number, or -1 when too many are watched already: a cut then
/// ends the process, as without a watch.
int watch_mapping(const void* data, std::size_t size);
void unwatch_mapping(int number);

/// False for -1.
bool was_mapping_cut(int number);
/// Of all that were ever watched.
bool was_any_mapping_cut();

}  // namespace plimsoll
