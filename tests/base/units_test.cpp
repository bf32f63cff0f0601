// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/utf8.h"

namespace plimsoll {
namespace {

TEST(Units, SizesReadAsTheCommandLinePromises) {
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("32k"), 32'000);
  EXPECT_EQ(parse_size("32K"), 32'768);
  EXPECT_EQ(parse_size("30g"), 30 * kGB);
  EXPECT_EQ(parse_size("30G"), 30 * kGiB);
  EXPECT_EQ(parse_size("500MB"), 500'000'000);
  EXPECT_EQ(parse_size("476MiB"), 476 * kMiB);
  EXPECT_EQ(parse_size("22.05GiB"), 23'676'007'219);
  for (const char* text : {"", "-1", "x", "1x", "1.2.3", "99999999999999999999", "9000000000T", "1 GB",
                           "4096.7", "4096.0", "0.5B"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Units, ProductsThatOverflowAreNothing) {
  EXPECT_EQ(checked_product(1 << 20, 1 << 20), std::int64_t{1} << 40);
  EXPECT_FALSE(checked_product(std::int64_t{1} << 40, std::int64_t{1} << 40));
  EXPECT_FALSE(checked_product(-1, 2));
}

TEST(Units, PrintsLettersAndCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(131072), "131,072");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(as_gb(Bytes(359'999'963'128)), "360.00 GB");
  EXPECT_EQ(as_gib(Bytes(359'999'963'128)), "335.28 GiB");
}

TEST(DTypes, TableIsInTheOrderOfTheEnum) {
  for (int i = 0; i <= static_cast<int>(DType::kNVFP4); ++i)
    EXPECT_EQ(info(static_cast<DType>(i)).dtype, static_cast<DType>(i));
}

TEST(DTypes, SpellingsAndSizes) {
  EXPECT_EQ(dtype_from_safetensors("BF16"), DType::kBF16);
  EXPECT_EQ(dtype_from_safetensors("F8_E4M3"), DType::kF8E4M3);
  EXPECT_FALSE(dtype_from_safetensors("bf16"));
  EXPECT_FALSE(dtype_from_safetensors("Q4_0"));
  EXPECT_EQ(dtype_from_gguf(14), DType::kQ6K);
  EXPECT_FALSE(dtype_from_gguf(4));
  EXPECT_EQ(dtype_from_config("torch.bfloat16"), DType::kBF16);
  EXPECT_EQ(stored_bytes(DType::kQ4_0, 64), Bytes(36));
  EXPECT_FALSE(stored_bytes(DType::kQ4_0, 33));
}

TEST(Utf8, RepairsLikePythonsReplace) {
  EXPECT_EQ(replace_invalid_utf8("a\xf0\x9f\x98z"), "a\uFFFDz");
  EXPECT_EQ(replace_invalid_utf8("\xe2\x28\xa1"), "\uFFFD(\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_TRUE(is_valid_utf8("김치찌개를"));
  EXPECT_TRUE(decode_utf8("\xf0\x9f").truncated);
}

TEST(Hash, Sha256OfTheStandardExample) {
  const std::string text = "abc";
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(text))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace plimsoll
