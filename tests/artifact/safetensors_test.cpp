// SPDX-License-Identifier: Apache-2.0
// Headers of safetensors files, entry by entry: what is sound, what each fault is called, and that sound but
// unusual spellings are read the same as usual ones.
#include "artifact/safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "base/json.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

using testing::safetensors_file;

struct Read {
  std::string file;
  Findings findings;
  SafetensorsHeader header;
};

std::unique_ptr<Read> read(std::string_view header, std::size_t data_bytes = 4) {
  auto result = std::make_unique<Read>();  // tensors view the file, which must stay where it is
  result->file = safetensors_file(header, std::string(data_bytes, '\0'));
  result->header =
      read_safetensors({std::as_bytes(std::span(result->file)), "f", {}, nullptr}, result->findings);
  return result;
}

std::string ids(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings)
    if (finding.id != "ST_ALIGNMENT") text += finding.id + " ";
  return text;
}

TEST(Safetensors, SpellingsThatMeanTheSame) {
  for (
      const char* header :
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"t": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}   )",
       R"({"t":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}})",
       R"({"\u0074":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"__metadata__":{"format":"pt","a\u00e9":"\ud83d\ude00 \"q\""},"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":{"of":["this"]}}})",
       R"({"t":{"dtype":"\u004632","shape":[1],"data_offsets":[0,4]}})",
       "{\n\t\"t\" : {\"dtype\":\"F32\",\r\n\"shape\":[ 1 ],\"data_offsets\":[0 , 4]}}"}) {
    const auto result = read(header);
    EXPECT_EQ(ids(result->findings), "") << header;
    ASSERT_EQ(result->header.tensors.size(), 1U) << header;
    const Tensor& tensor = result->header.tensors.front();
    EXPECT_EQ(tensor.name, "t");
    EXPECT_EQ(tensor.dtype, DType::kF32);
    EXPECT_EQ(tensor.shape, Shape{1});
    EXPECT_EQ(tensor.bytes, 4);
    EXPECT_EQ(tensor.offset_bytes, static_cast<std::int64_t>(result->file.size()) - 4);
  }
}

TEST(Safetensors, FaultsOfOneEntry) {
  const std::array<std::pair<const char*, const char*>, 22> kCases{{
      {R"("dtype":"F33","shape":[1],"data_offsets":[0,4])", "ST_DTYPE "},
      {R"("dtype":"f32","shape":[1],"data_offsets":[0,4])", "ST_DTYPE "},
      {R"("dtype":7,"shape":[1],"data_offsets":[0,4])", "ST_DTYPE "},
      {R"("shape":[1],"data_offsets":[0,4])", "ST_DTYPE "},
      {R"("dtype":"F32","data_offsets":[0,4])", "ST_SHAPE "},
      {R"("dtype":"F32","shape":"1","data_offsets":[0,4])", "ST_SHAPE "},
      {R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", "ST_SHAPE "},
      {R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", "ST_SHAPE "},
      {R"("dtype":"F32","shape":[null],"data_offsets":[0,4])", "ST_SHAPE "},
      {R"("dtype":"F32","shape":[9223372036854775808,2],"data_offsets":[0,4])", "ST_SHAPE_OVERFLOW "},
      {R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])", "ST_SHAPE_OVERFLOW "},
      {R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4])", "ST_SHAPE_OVERFLOW "},
      {R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", "ST_OFFSETS "},
      {R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", "ST_OFFSETS "},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])", "ST_OFFSETS "},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0])", "ST_OFFSETS "},
      {R"("dtype":"F32","shape":[1])", "ST_OFFSETS "},
      {R"("dtype":"F32","shape":[1],"data_offsets":[9223372036854775800,9223372036854775804])",
       "ST_OFFSETS "},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", "ST_SIZE_MISMATCH "},
      {R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])", "ST_DUP_KEY "},
      {R"("dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4])", "ST_DUP_KEY "},
      {R"("dtype":"F4","shape":[3],"data_offsets":[0,2])", "ST_SHAPE "},
  }};
  for (const auto& [entry, expected] : kCases) {
    const auto result = read("{\"t\":{" + std::string(entry) + "}}");
    EXPECT_EQ(ids(result->findings), expected) << entry;
    ASSERT_FALSE(result->findings.empty());
    for (const Finding& finding : result->findings)
      EXPECT_TRUE(finding.id == "ST_ALIGNMENT" || finding.where == "f: t") << finding.where << entry;
    EXPECT_TRUE(result->header.is_readable);
  }
}

TEST(Safetensors, TextsThatAreNoHeader) {
  const std::string deep(100'000, '[');
  for (const std::string& header : {std::string(""),
                                    std::string("[]"),
                                    std::string("null"),
                                    std::string(" {}"),
                                    std::string("{"),
                                    std::string("{}x"),
                                    std::string("{\"a\":1}}"),
                                    std::string("{\"a\":}"),
                                    std::string("{\"a\" 1}"),
                                    std::string("{a:1}"),
                                    std::string("{\"a\":NaN}"),
                                    std::string("{\"a\":Infinity}"),
                                    std::string("{\"a\":01}"),
                                    std::string("{\"a\":1.}"),
                                    std::string("{\"a\":+1}"),
                                    std::string("{\"a\":\"\\x\"}"),
                                    std::string("{\"a\":\"\\ud800\"}"),
                                    std::string("{\"\\udc00\":1}"),
                                    std::string("{\"a\":\"\n\"}"),
                                    std::string("{\"a\":tru}"),
                                    std::string("{\"a\":{},}"),
                                    std::string("{,}"),
                                    "{\"a\":" + deep,
                                    std::string("{\"a\":\"b"),
                                    std::string("{\"a\":{}}\0", 9)}) {
    const auto result = read(header);
    // Faults of entries before the place where the text stops being JSON may be told too.
    ASSERT_FALSE(result->findings.empty()) << header.substr(0, 40);
    EXPECT_EQ(result->findings.back().id, "ST_HEADER_JSON") << header.substr(0, 40);
    EXPECT_FALSE(result->header.is_readable) << header.substr(0, 40);
  }
  for (const std::string& header :
       {std::string("{\"a\xff\":1}"), std::string("\xFE\xFF{}"), std::string("{\"\xC0\xAF\":1}"),
        std::string("{\"\xED\xA0\x80\":1}"), std::string("{\"a\":\"\xE2\x82\"}")})
    EXPECT_EQ(ids(read(header)->findings), "ST_HEADER_UTF8 ") << header;
  EXPECT_EQ(ids(read("\xEF\xBB\xBF{}")->findings), "ST_HEADER_JSON ");
}

TEST(Safetensors, MetadataHoldsStrings) {
  EXPECT_EQ(ids(read(R"({"__metadata__":{}})", 0)->findings), "");
  for (const char* value : {"1", "null", "[]", "{\"a\":1}", "{\"a\":null}", "{\"a\":{\"b\":\"c\"}}"})
    EXPECT_EQ(ids(read("{\"__metadata__\":" + std::string(value) + "}", 0)->findings), "ST_METADATA ")
        << value;
  EXPECT_EQ(ids(read(R"({"__metadata__":{},"__metadata__":{}})", 0)->findings), "ST_DUP_KEY ");
}

TEST(Safetensors, ManyFaultsAreToldShortly) {
  std::string header = "{";
  for (int i = 0; i < 5000; ++i)
    header += (i ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"?","shape":[],"data_offsets":[0,0]})";
  const auto result = read(header + "}", 0);
  ASSERT_LT(result->findings.size(), 30U);
  EXPECT_NE(result->findings.back().message.find("4980 more"), std::string::npos)
      << result->findings.back().message;
}

TEST(Safetensors, OrderOfTheHeaderMeansNothing) {
  const auto result = read(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},"z":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})");
  EXPECT_EQ(ids(result->findings), "");
  ASSERT_EQ(result->header.tensors.size(), 3U);
  EXPECT_EQ(result->header.tensors[0].name, "a");
  EXPECT_EQ(result->header.tensors[1].name, "z");
  EXPECT_EQ(result->header.tensors[2].name, "b");
}

TEST(Safetensors, ShapesOfAnyRank) {
  const auto result = read(R"({"t":{"dtype":"U8","shape":[1,1,2,1,1,2,1],"data_offsets":[0,4]}})");
  EXPECT_EQ(ids(result->findings), "");
  EXPECT_EQ(result->header.tensors.front().shape, (Shape{1, 1, 2, 1, 1, 2, 1}));
  EXPECT_EQ(result->header.tensors.front().elements(), 4);
}

TEST(Safetensors, HeaderWithoutItsData) {
  const std::string file = safetensors_file(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   )");
  Findings findings;
  const auto size = static_cast<std::int64_t>(file.size()) + 4;
  const auto header = read_safetensors({std::as_bytes(std::span(file)), "f", size, nullptr}, findings);
  EXPECT_EQ(ids(findings), "");
  EXPECT_EQ(header.tensors.size(), 1U);
}

// Sound entries are read by one path, all others by another; here both read the same ones.
TEST(Safetensors, BothPathsAgree) {
  std::mt19937 random(7);
  const char* dtypes[] = {"F64", "F32", "BF16", "I8", "BOOL", "F8_E4M3", "C64", "F6_E2M3"};
  const int widths[] = {64, 32, 16, 8, 8, 8, 64, 6};
  for (int round = 0; round < 200; ++round) {
    const std::size_t type = random() % 8;
    std::string shape;
    std::uint64_t elements = 1;
    const std::uint64_t rank = random() % 7;
    for (std::uint64_t i = 0; i < rank; ++i) {
      const std::uint64_t dimension = 4 * (random() % 4);
      elements *= dimension;
      shape += (i ? "," : "") + std::to_string(dimension);
    }
    if (type == 7 && elements == 1) continue;  // six bits alone fill no byte
    const auto bytes = elements * static_cast<std::uint64_t>(widths[type]) / 8;
    const std::string fields = R"("dtype":")" + std::string(dtypes[type]) + R"(","shape":[)" + shape +
                               R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]";
    const auto plain = read("{\"t\":{" + fields + "}}", bytes),
               odd = read("{\"t\":{" + fields + ",\"x\":0}}", bytes);
    EXPECT_EQ(ids(plain->findings), "") << fields;
    EXPECT_EQ(ids(odd->findings), "") << fields;
    ASSERT_EQ(plain->header.tensors.size(), 1U);
    ASSERT_EQ(odd->header.tensors.size(), 1U);
    const Tensor &a = plain->header.tensors.front(), &b = odd->header.tensors.front();
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.dtype, b.dtype);
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.bytes, static_cast<std::int64_t>(bytes));
  }
}

// Such members are shorter than any tensor's entry: the table of names once filled up, and a search in it had
// no end.
TEST(Safetensors, ManyMembersThatAreNoTensors) {
  std::string header = "{";
  for (int i = 0; i < 20'000; ++i) header += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
  const auto result = read(header + ",\"7\":1}");
  EXPECT_TRUE(result->header.tensors.empty());
  EXPECT_NE(ids(result->findings).find("ST_DUP_KEY"), std::string::npos);
}

TEST(Safetensors, NamesHaveALimitTogether) {
  for (const char* spelled : {"n", "\\u0041"}) {
    const auto header_with = [&](int count) {
      std::string header = "{";
      for (int i = 0; i < count; ++i)
        header += (i ? ",\"" : "\"") + std::string(2'000'000, 'n') + spelled + std::to_string(i) +
                  R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
      return header + "}";
    };
    EXPECT_EQ(ids(read(header_with(8), 0)->findings), "") << spelled;
    EXPECT_EQ(ids(read(header_with(9), 0)->findings), "ST_COUNT ") << spelled;
  }
}

// Pages of a header that no model has are given back, so that views into them would bring them all in again.
TEST(Safetensors, NamesOfAHugeHeaderAreCopiesAndRight) {
  const testing::MadeFolder folder;
  std::string header = "{";
  for (int i = 0; i < 2000; ++i)
    header += (i ? ",\"model.layers." : "\"model.layers.") + std::to_string(i) +
              R"(.w":{"dtype":"U8","shape":[0],)" + std::string(20'000, ' ') + R"("data_offsets":[0,0]})";
  folder.put("f", safetensors_file(header + "}"));
  const auto mapped = MappedFile::open((folder.path() / "f").string());
  ASSERT_TRUE(mapped);
  Findings findings;
  const SafetensorsHeader read = read_safetensors({mapped->bytes(), "f", {}, &*mapped}, findings);
  EXPECT_EQ(ids(findings), "");
  ASSERT_EQ(read.tensors.size(), 2000U);
  const auto* begin = reinterpret_cast<const char*>(mapped->bytes().data());
  for (std::size_t i = 0; i < 2000; ++i) {
    const std::string_view name = read.tensors[i].name;
    EXPECT_EQ(name, "model.layers." + std::to_string(i) + ".w");
    EXPECT_FALSE(name.data() >= begin && name.data() < begin + mapped->bytes().size());
  }
}

}  // namespace
}  // namespace plimsoll::artifact
