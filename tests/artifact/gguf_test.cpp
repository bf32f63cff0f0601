// SPDX-License-Identifier: Apache-2.0
// GGUF headers put together byte by byte: versions, byte orders, types, limits.
#include "artifact/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

using testing::gguf_file;
using testing::gguf_key;
using testing::gguf_start;
using testing::gguf_string;
using testing::gguf_tensor;
using testing::le32;
using testing::le64;

struct Read {
  std::string file;
  Findings findings;
  GgufHeader header;
};

std::unique_ptr<Read> read(std::string file) {
  auto result = std::make_unique<Read>();  // tensors view the file, which must stay where it is
  result->file = std::move(file);
  result->header = read_gguf({std::as_bytes(std::span(result->file)), "f", {}, nullptr}, result->findings);
  return result;
}

std::string ids(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding.id + " ";
  return text;
}

constexpr std::uint32_t kU32 = 4, kString = 8, kArray = 9;

TEST(Gguf, Version1CountsIn32Bits) {
  const auto text = [](std::string_view t) {
    return le32(static_cast<std::uint32_t>(t.size())) + std::string(t);
  };
  const std::string header = "GGUF" + le32(1) + le32(1) + le32(1) + text("k") + le32(kString) + text("v") +
                             text("t") + le32(2) + le32(8) + le32(2) + le32(0) + le64(0);
  const auto result = read(gguf_file(header, std::string(64, '\0')));
  EXPECT_EQ(ids(result->findings), "");
  EXPECT_EQ(result->header.metadata["k"], Json("v"));
  ASSERT_EQ(result->header.tensors.size(), 1U);
  EXPECT_EQ(result->header.tensors.front().shape, (Shape{2, 8}));
  EXPECT_EQ(result->header.tensors.front().bytes, 64);
}

TEST(Gguf, OtherVersionsAndByteOrders) {
  EXPECT_EQ(ids(read(gguf_start(0, 0, 4))->findings), "GGUF_VERSION ");
  EXPECT_EQ(ids(read(gguf_start(0, 0, 0))->findings), "GGUF_VERSION ");
  std::string big = gguf_start(0, 0);
  std::reverse(big.begin() + 4, big.begin() + 8);
  const auto result = read(big);
  EXPECT_EQ(ids(result->findings), "GGUF_BIG_ENDIAN ");
  EXPECT_EQ(result->findings.front().kind, FindingKind::kUnsupported);
}

// Elements and bytes of a block, as gguf 0.19.0 has them in GGML_QUANT_SIZES; q8_1 as ggml's struct has it.
TEST(Gguf, EveryTensorType) {
  struct Row {
    std::uint32_t type;
    std::uint64_t elements;
    std::int64_t bytes;
  };
  constexpr Row kRows[] = {{0, 1, 4},      {1, 1, 2},      {2, 32, 18},    {3, 32, 20},    {6, 32, 22},
                           {7, 32, 24},    {8, 32, 34},    {9, 32, 36},    {10, 256, 84},  {11, 256, 110},
                           {12, 256, 144}, {13, 256, 176}, {14, 256, 210}, {15, 256, 292}, {16, 256, 66},
                           {17, 256, 74},  {18, 256, 98},  {19, 256, 50},  {20, 32, 18},   {21, 256, 110},
                           {22, 256, 82},  {23, 256, 136}, {24, 1, 1},     {25, 1, 2},     {26, 1, 4},
                           {27, 1, 8},     {28, 1, 8},     {29, 256, 56},  {30, 1, 2},     {34, 256, 54},
                           {35, 256, 66},  {39, 32, 17},   {40, 64, 36},   {41, 128, 18}};
  for (const Row& row : kRows) {
    const auto result =
        read(gguf_file(gguf_start(1, 0) + gguf_tensor("t", {row.elements * 2, 3}, row.type, 0),
                       std::string(static_cast<std::size_t>(row.bytes) * 6, '\0')));
    EXPECT_EQ(ids(result->findings), "") << row.type;
    ASSERT_EQ(result->header.tensors.size(), 1U) << row.type;
    EXPECT_EQ(result->header.tensors.front().bytes, row.bytes * 6) << row.type;
  }
  for (const std::uint32_t type : {4U, 5U, 31U, 33U, 36U, 38U, 42U, 250U})
    EXPECT_EQ(
        ids(read(gguf_file(gguf_start(1, 0) + gguf_tensor("t", {256}, type, 0), std::string(2048, '\0')))
                ->findings),
        "GGUF_TENSOR_TYPE ")
        << type;
}

TEST(Gguf, CountsAndLengthsThatCannotBe) {
  const std::uint64_t huge[] = {std::uint64_t{1} << 40, std::uint64_t{1} << 63, UINT64_MAX};
  for (const std::uint64_t count : huge) {
    EXPECT_EQ(ids(read(gguf_start(count, 0))->findings), "GGUF_COUNT ");
    EXPECT_EQ(ids(read(gguf_start(0, count))->findings), "GGUF_COUNT ");
    EXPECT_EQ(ids(read(gguf_start(0, 1) + le64(count) + std::string(40, 'k'))->findings), "GGUF_STRING_LEN ");
    EXPECT_EQ(ids(read(gguf_start(0, 1) + gguf_key("k", kString, le64(count)))->findings),
              "GGUF_STRING_LEN ");
    for (const std::uint32_t type : {0U, 1U, 5U, 7U, 8U, 10U, 12U})
      EXPECT_EQ(ids(read(gguf_start(0, 1) + gguf_key("k", kArray, le32(type) + le64(count)))->findings),
                "GGUF_ARRAY_LEN ")
          << type;
  }
  EXPECT_EQ(
      ids(read(gguf_start(0, 1) + gguf_key("k", kArray, le32(kArray) + le64(1) + le32(0) + le64(1) + "x"))
              ->findings),
      "GGUF_NESTED_ARRAY ");
  EXPECT_EQ(ids(read(gguf_start(0, 1) + gguf_key("k", 13, "x"))->findings), "GGUF_VALUE_TYPE ");
  EXPECT_EQ(
      ids(read(gguf_start(0, 2) + gguf_key("k", kU32, le32(1)) + gguf_key("k", kU32, le32(2)))->findings),
      "GGUF_DUP_KEY ");
}

TEST(Gguf, AllArraysTogetherHaveALimit) {
  const std::string array = le32(0) + le64(65'536) + std::string(65'536, '\1');
  std::string keys;
  for (int i = 0; i < 30; ++i) keys += gguf_key("k" + std::to_string(i), kArray, array);
  const auto result = read(gguf_start(0, 31) + keys + gguf_key("after", kU32, le32(7)));
  std::size_t kept = 0;
  for (const auto& [key, value] : result->header.metadata.members()) kept += value.size();
  EXPECT_EQ(kept, 6U * 65'536);             // the most that 400,000 hold
  EXPECT_EQ(result->findings.size(), 21U);  // of the other 24 the first, and how many more
  EXPECT_EQ(result->findings.front().id, "GGUF_VALUE_LONG");
  EXPECT_EQ(result->header.metadata["after"], Json(7));
}

// One array of the tokenizer may have nearly all of it; others have a limit of their own beside it.
TEST(Gguf, ArraysOfTheTokenizerTogetherHaveALimit) {
  const auto array = [](std::uint64_t count) {
    return le32(0) + le64(count) + std::string(static_cast<std::size_t>(count), '\1');
  };
  const auto result =
      read(gguf_start(0, 5) + gguf_key("tokenizer.a", kArray, array(1'300'000)) +
           gguf_key("tokenizer.b", kArray, array(100'001)) + gguf_key("tokenizer.c", kArray, array(100'000)) +
           gguf_key("tokenizer.d", kArray, array(1)) + gguf_key("other", kArray, array(65'536)));
  const Json& kept = result->header.metadata;
  EXPECT_EQ(kept["tokenizer.a"].size(), 1'300'000U);
  EXPECT_TRUE(kept["tokenizer.b"].is_null());
  EXPECT_EQ(kept["tokenizer.c"].size(), 100'000U);
  EXPECT_TRUE(kept["tokenizer.d"].is_null());
  EXPECT_EQ(kept["other"].size(), 65'536U);
  EXPECT_EQ(ids(result->findings), "GGUF_VALUE_LONG GGUF_VALUE_LONG ");
}

TEST(Gguf, AllTextsTogetherHaveALimit) {
  const std::string text = gguf_string(std::string(16'000'000, 't'));
  std::string keys;
  for (int i = 0; i < 3; ++i) keys += gguf_key("k" + std::to_string(i), kString, text);
  const auto result = read(gguf_start(0, 5) + keys + gguf_key(std::string(65'000, 'n'), kU32, le32(1)) +
                           gguf_key("list", kArray, le32(kString) + le64(2) + text + gguf_string("x")));
  EXPECT_EQ(ids(result->findings), "GGUF_VALUE_LONG GGUF_VALUE_LONG ");
  EXPECT_TRUE(result->header.metadata["k1"].is_string());
  EXPECT_TRUE(result->header.metadata["k2"].is_null());
  EXPECT_TRUE(result->header.metadata["list"].is_null());
  EXPECT_TRUE(result->header.is_readable);
}

TEST(Gguf, LongValuesArePassedOver) {
  const std::string array = gguf_key("other", kArray, le32(0) + le64(100'000) + std::string(100'000, '\1'));
  std::string texts = le32(kString) + le64(70'000);
  for (int i = 0; i < 70'000; ++i) texts += gguf_string("t");
  const auto result = read(
      gguf_start(0, 4) + array + gguf_key("texts", kArray, texts) +
      gguf_key("tokenizer.ggml.token_type", kArray, le32(0) + le64(100'000) + std::string(100'000, '\1')) +
      gguf_key("after", kU32, le32(7)));
  EXPECT_EQ(ids(result->findings), "GGUF_VALUE_LONG GGUF_VALUE_LONG ");
  EXPECT_TRUE(result->header.metadata["other"].is_null());
  EXPECT_TRUE(result->header.metadata["texts"].is_null());
  EXPECT_EQ(result->header.metadata["tokenizer.ggml.token_type"].size(), 100'000U);
  EXPECT_EQ(result->header.metadata["after"], Json(7));
}

TEST(Gguf, TensorsThatCannotBe) {
  const auto of = [](const std::string& tensor) {
    return ids(read(gguf_file(gguf_start(1, 0) + tensor, std::string(256, '\0')))->findings);
  };
  EXPECT_EQ(of(gguf_tensor("t", {8}, 0, 0)), "");
  EXPECT_EQ(of(gguf_tensor("t", {}, 0, 0)), "");
  EXPECT_EQ(of(gguf_tensor("t", {8, 0}, 0, 0)), "GGUF_SHAPE ");
  EXPECT_EQ(of(gguf_tensor("t", {1, 1, 1, 1, 1}, 0, 0)), "GGUF_NDIMS ");
  EXPECT_EQ(of(gguf_tensor("t", {UINT64_MAX}, 0, 0)), "GGUF_SHAPE_OVERFLOW ");
  EXPECT_EQ(of(gguf_tensor("t", {std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0, 0)),
            "GGUF_SHAPE_OVERFLOW ");
  EXPECT_EQ(of(gguf_tensor("t", {std::uint64_t{1} << 62}, 0, 0)), "GGUF_SHAPE_OVERFLOW ");
  EXPECT_EQ(of(gguf_tensor("t", {8}, 0, UINT64_MAX - 31)), "GGUF_SHAPE_OVERFLOW ");
  EXPECT_EQ(of(gguf_tensor("t", {8}, 0, 0x7FFFFFFFFFFFFF00)), "GGUF_TRUNCATED ");
  EXPECT_EQ(of(gguf_tensor("t", {8}, 0, 4)), "GGUF_ALIGNMENT ");
  EXPECT_EQ(of(gguf_tensor("t", {31}, 2, 0)), "GGUF_BLOCK ");
  EXPECT_EQ(of(gguf_tensor("t", {128}, 0, 0)), "GGUF_TRUNCATED ");
  EXPECT_EQ(of(gguf_tensor("\xff", {8}, 0, 0)), "GGUF_NAME ");
  EXPECT_EQ(of(gguf_tensor(std::string(63, 'n'), {8}, 0, 0)), "");
  EXPECT_EQ(of(gguf_tensor(std::string(64, 'n'), {8}, 0, 0)), "GGUF_NAME ");  // ggml keeps 63
}

// llama.cpp takes tensors only in the list's order, one behind the other.
TEST(Gguf, TensorsFollowOneAnother) {
  const auto of = [](std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    const std::string list =
        gguf_tensor("a", {8}, 0, first) + gguf_tensor("b", {8}, 0, second) + gguf_tensor("c", {8}, 0, third);
    return ids(read(gguf_file(gguf_start(3, 0) + list, std::string(256, '\0')))->findings);
  };
  EXPECT_EQ(of(0, 32, 64), "");
  EXPECT_EQ(of(0, 32, 96), "GGUF_OFFSET ");
  EXPECT_EQ(of(32, 64, 96), "GGUF_OFFSET ");
  EXPECT_EQ(of(0, 64, 32), "GGUF_OFFSET ");
  EXPECT_EQ(of(0, 0, 64), "GGUF_OVERLAP ");
}

TEST(Gguf, HeaderWithoutItsData) {
  const std::string header = gguf_file(gguf_start(1, 0) + gguf_tensor("t", {8}, 0, 0), "");
  Findings findings;
  const auto size = static_cast<std::int64_t>(header.size()) + 32;
  EXPECT_EQ(read_gguf({std::as_bytes(std::span(header)), "f", size, nullptr}, findings).tensors.size(), 1U);
  EXPECT_EQ(ids(findings), "");
}

}  // namespace
}  // namespace plimsoll::artifact
