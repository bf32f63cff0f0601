// SPDX-License-Identifier: Apache-2.0
// How often did this program ask for heap memory? Its operator new counts, on all threads. Linked into a
// program of its own.
#pragma once

#include <cstdint>

namespace plimsoll::testing {

/// Calls of any operator new since the program started.
std::int64_t num_allocations();

}  // namespace plimsoll::testing
