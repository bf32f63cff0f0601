// SPDX-License-Identifier: Apache-2.0
// Which patterns of elements do the codes of iq1_*, iq2_* and iq3_* stand for? One word for each code:
// element j of eight takes bits 2j and 2j+1, element j of four bits 3j to 3j+2, and holds an index into the
// type's few values. Constants of the formats. Source: docs/formats/gguf_blocks.md.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

extern const std::uint16_t kIq2XxsBook[256];  // of eight elements
extern const std::uint16_t kIq2XsBook[512];
extern const std::uint16_t kIq2SBook[1024];
extern const std::uint16_t kIq1Book[2048];    // iq1_s and iq1_m
extern const std::uint16_t kIq3XxsBook[256];  // of four elements
extern const std::uint16_t kIq3SBook[512];

}  // namespace plimsoll::kernels
