// SPDX-License-Identifier: Apache-2.0
// How does memory for 100,000 of something come cheaply? The system hands out pages of 4 KiB one fault at a
// time, some microseconds each on a virtual machine; pages of 2 MiB come 512 times as rarely. Owns nothing;
// any thread.
#pragma once

#include <cstddef>

namespace plimsoll {

/// Asks for large pages in `bytes` of memory that was not used yet. A wish: nothing is lost where the system
/// knows none, and a part that is never used takes no memory.
void use_large_pages(void* data, std::size_t bytes);

}  // namespace plimsoll
