// SPDX-License-Identifier: Apache-2.0
// Attention's rows of the plain table (attention.h): one query at a time. Private to the room.
#pragma once

#include "kernels/attention.h"

namespace plimsoll::kernels {

void scalar_attend_split(const AttentionTile& tile, std::int64_t split, float* parts, float* scratch);
void scalar_merge_parts(const float* part, std::int64_t value_dim, float* into);
void scalar_finish_part(const float* part, const float* sink, std::int64_t value_dim, float* out);

}  // namespace plimsoll::kernels
