// SPDX-License-Identifier: Apache-2.0
// What floats do the blocks stand for whose codes are patterns, powers of three or four-bit floats with
// scales inside? One function per type, in plain code for every instruction set. Pure functions; `out` holds
// the elements of one block. Source: docs/formats/gguf_blocks.md.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

void read_iq2_xxs(const std::uint8_t* block, float* out);  // 66 bytes -> [256]
void read_iq2_xs(const std::uint8_t* block, float* out);   // 74 bytes -> [256]
void read_iq2_s(const std::uint8_t* block, float* out);    // 82 bytes -> [256]
void read_iq3_xxs(const std::uint8_t* block, float* out);  // 98 bytes -> [256]
void read_iq3_s(const std::uint8_t* block, float* out);    // 110 bytes -> [256]
void read_iq1_s(const std::uint8_t* block, float* out);    // 50 bytes -> [256]
void read_iq1_m(const std::uint8_t* block, float* out);    // 56 bytes -> [256]
void read_tq1_0(const std::uint8_t* block, float* out);    // 54 bytes -> [256]
void read_tq2_0(const std::uint8_t* block, float* out);    // 66 bytes -> [256]
void read_nvfp4(const std::uint8_t* block, float* out);    // 36 bytes -> [64]

}  // namespace plimsoll::kernels
