// SPDX-License-Identifier: Apache-2.0
// Attention of tiles against a double-precision reference, and the same bits for a query in every tile.
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/kernels/every_isa.h"

namespace plimsoll::kernels {
namespace {

class AttentionOf : public EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isas, AttentionOf, ::testing::ValuesIn(available_isas()), isa_name);

struct Case {
  std::int64_t head_dim = 64, value_dim = 64, positions = 300, block_size = 16;
  int group = 3;
  DType dtype = DType::kBF16;
};

// The cache of one head, its blocks in no order, and queries that may see all of it.
class Cache {
 public:
  Cache(const Kernels& kernels, const Case& its_case, const std::vector<float>& keys,
        const std::vector<float>& values, std::size_t misaligned = 0)
      : case_(its_case) {
    const std::int64_t count = (case_.positions + case_.block_size - 1) / case_.block_size;
    blocks_.resize(static_cast<std::size_t>(count));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    std::shuffle(blocks_.begin(), blocks_.end(), std::mt19937(3));
    tile_.cached.dtype = case_.dtype;
    tile_.cached.head_dim = case_.head_dim;
    tile_.cached.value_dim = case_.value_dim;
    tile_.cached.key_bytes = bytes_of(case_.head_dim);
    tile_.cached.value_bytes = bytes_of(case_.value_dim);
    tile_.cached.blocks = blocks_.data();
    tile_.cached.block_size = case_.block_size;
    tile_.cached.block_bytes = (tile_.cached.key_bytes + tile_.cached.value_bytes) * case_.block_size;
    bytes_.resize(static_cast<std::size_t>(count * tile_.cached.block_bytes) + misaligned);
    tile_.cached.keys = bytes_.data() + misaligned;
    tile_.cached.values = tile_.cached.keys + tile_.cached.key_bytes * case_.block_size;
    tile_.scale = 1.0f / std::sqrt(static_cast<float>(case_.head_dim));
    for (std::int64_t p = 0; p < case_.positions; ++p) {
      const std::int64_t block = blocks_[static_cast<std::size_t>(p / case_.block_size)];
      const auto at = misaligned + static_cast<std::size_t>(block * tile_.cached.block_bytes);
      const std::int64_t slot = p % case_.block_size;
      write(kernels, keys.data() + p * case_.head_dim, case_.head_dim,
            bytes_.data() + at + slot * tile_.cached.key_bytes);
      write(kernels, values.data() + p * case_.value_dim, case_.value_dim,
            bytes_.data() + at + case_.block_size * tile_.cached.key_bytes + slot * tile_.cached.value_bytes);
    }
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  AttentionTile& tile() { return tile_; }

  /// As stored. [head_dim] or [value_dim]
  std::vector<double> key(std::int64_t p) const {
    return read(tile_.cached.keys, tile_.cached.key_bytes, case_.head_dim, p);
  }
  std::vector<double> value(std::int64_t p) const {
    return read(tile_.cached.values, tile_.cached.value_bytes, case_.value_dim, p);
  }

 private:
  std::int64_t bytes_of(std::int64_t n) const {
    return n * info(case_.dtype).block_bytes + (case_.dtype == DType::kI8 ? 4 : 0);
  }
  void write(const Kernels& kernels, const float* from, std::int64_t n, std::byte* to) const {
    if (case_.dtype == DType::kF32) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
    } else if (case_.dtype == DType::kBF16) {
      std::vector<std::uint16_t> codes(static_cast<std::size_t>(n));
      kernels.to_bf16(from, n, codes.data());
      std::memcpy(to, codes.data(), codes.size() * 2);
    } else if (case_.dtype == DType::kF8E4M3) {
      kernels.to_e4m3(from, n, reinterpret_cast<std::uint8_t*>(to));
    } else {
      const float scale = kernels.to_i8(from, n, reinterpret_cast<std::int8_t*>(to + 4));
      std::memcpy(to, &scale, sizeof scale);
    }
  }
  std::vector<double> read(const std::byte* base, std::int64_t stride, std::int64_t n, std::int64_t p) const {
    const std::byte* at = base +
                          blocks_[static_cast<std::size_t>(p / case_.block_size)] * tile_.cached.block_bytes +
                          p % case_.block_size * stride;
    std::vector<float> widened(static_cast<std::size_t>(n));
    if (case_.dtype == DType::kF32 || case_.dtype == DType::kBF16) {
      kernels_for(Isa::kScalar).to_float(case_.dtype, at, n, widened.data());
    } else {
      float scale = 1;
      if (case_.dtype == DType::kI8) std::memcpy(&scale, at, sizeof scale);
      const auto* codes = reinterpret_cast<const std::uint8_t*>(at) + (case_.dtype == DType::kI8 ? 4 : 0);
      for (std::int64_t i = 0; i < n; ++i)
        widened[static_cast<std::size_t>(i)] = scale * code_values(case_.dtype)[codes[i]];
    }
    return {widened.begin(), widened.end()};
  }

  Case case_;
  AttentionTile tile_;
  std::vector<std::int32_t> blocks_;
  std::vector<std::byte> bytes_;
};

std::vector<double> reference(const Cache& cache, const AttentionTile& tile, const AttentionQuery& query) {
  std::vector<double> scores, out(static_cast<std::size_t>(tile.cached.value_dim));
  double highest = query.sink ? static_cast<double>(*query.sink) : -1e300;
  for (std::int64_t p = query.first; p < query.end; ++p) {
    const auto key = cache.key(p);
    double score = 0;
    for (std::size_t d = 0; d < key.size(); ++d) score += key[d] * static_cast<double>(query.query[d]);
    score = score * static_cast<double>(tile.scale) +
            static_cast<double>(query.slope) * static_cast<double>(p + 1 - query.end);
    const auto cap = static_cast<double>(tile.soft_cap);
    scores.push_back(cap > 0 ? cap * std::tanh(score / cap) : score);
    highest = std::max(highest, scores.back());
  }
  double sum = query.sink ? std::exp(static_cast<double>(*query.sink) - highest) : 0;
  for (const double score : scores) sum += std::exp(score - highest);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto value = cache.value(query.first + static_cast<std::int64_t>(i));
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += std::exp(scores[i] - highest) / sum * value[d];
  }
  return out;
}

// Outputs of all queries, `rows` of which make a tile with the heads of the group: [rows, group, value_dim]
std::vector<float> attend_in_tiles(const Kernels& kernels, const AttentionTile& whole, int group, int rows,
                                   bool by_span = false) {
  std::vector<AttentionQuery> queries(whole.queries.begin(), whole.queries.end());
  const std::int64_t dim = whole.cached.value_dim;
  std::vector<float> out(queries.size() * static_cast<std::size_t>(dim), -1.0f);
  for (std::size_t q = 0; q < queries.size(); ++q)
    queries[q].out = out.data() + static_cast<std::int64_t>(q) * dim;
  std::vector<float> scratch(static_cast<std::size_t>(attention_scratch(whole.cached.head_dim, dim)), 7.0f);
  const auto step = static_cast<std::size_t>(rows * group);
  for (std::size_t first = 0; first < queries.size(); first += step) {
    AttentionTile tile = whole;
    tile.queries = std::span(queries).subspan(first, std::min(step, queries.size() - first));
    if (!by_span) {
      attend(kernels, tile, scratch.data());
      continue;
    }
    AttentionRange seen{tile.queries[0].first, tile.queries[0].end};
    for (const AttentionQuery& query : tile.queries)
      seen = {std::min(seen.first, query.first), std::max(seen.end, query.end)};
    const AttentionRange spans = attention_spans(seen);
    const std::int64_t floats = std::ssize(tile.queries) * attention_part(dim);
    std::vector<float> parts(static_cast<std::size_t>(spans.count() * floats), 7.0f);
    for (std::int64_t span = spans.end; span-- > spans.first;)
      attend_span(kernels, tile, span, parts.data() + (span - spans.first) * floats, scratch.data());
    finish_spans(kernels, tile, spans.count(), parts.data());
  }
  return out;
}

// The last `rows` positions' queries of each head of the group; what they point to lives here.
struct Queries {
  Queries(const Case& its_case, int rows, const std::vector<float>& numbers, std::int64_t window = 0) {
    for (int r = 0; r < rows; ++r)
      for (int head = 0; head < its_case.group; ++head) {
        const std::int64_t end = its_case.positions - rows + 1 + r;
        all.push_back({.query = numbers.data() + (r * its_case.group + head) * its_case.head_dim,
                       .first = window > 0 ? std::max<std::int64_t>(0, end - window) : 0,
                       .end = end});
      }
  }
  std::vector<AttentionQuery> all;
};

// Sums of products and of weights in f32: hundreds of steps of half a unit each, outputs of around 1.
constexpr double kNear = 4e-6;

void expect_near(const std::vector<float>& found, std::size_t at, const std::vector<double>& expected,
                 double tolerance = kNear) {
  for (std::size_t d = 0; d < expected.size(); ++d)
    ASSERT_NEAR(static_cast<double>(found[at + d]), expected[d], tolerance) << "element " << d;
}

TEST_P(AttentionOf, EqualsTheReferenceAtOddSizes) {
  for (const std::int64_t dim : {1, 8, 20, 64, 80, 128, 256})
    for (const int group : {1, 2, 3, 4, 7, 8})
      for (const std::int64_t positions : {1, 15, 127, 128, 129, 300}) {
        Case one{.head_dim = dim, .value_dim = dim, .positions = positions, .group = group};
        one.dtype = group % 2 ? DType::kBF16 : DType::kF32;
        one.block_size = group == 7 ? 5 : 16;
        SCOPED_TRACE(::testing::Message() << dim << " x " << group << " at " << positions);
        Cache cache(kernels(), one, random_floats(positions * dim), random_floats(positions * dim),
                    one.dtype == DType::kBF16 ? 2 : 0);
        const auto numbers = random_floats(group * dim);
        const Queries queries(one, 1, numbers);
        cache.tile().queries = queries.all;
        const auto out = attend_in_tiles(kernels(), cache.tile(), group, 1);
        for (std::size_t q = 0; q < queries.all.size(); ++q)
          expect_near(out, q * static_cast<std::size_t>(dim), reference(cache, cache.tile(), queries.all[q]));
      }
}

TEST_P(AttentionOf, EveryFormAndRuleEqualsTheReference) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF8E4M3, DType::kI8})
    for (const auto& [dim, value_dim] : {std::pair(64, 64), {72, 40}, {20, 33}}) {
      const Case one{.head_dim = dim, .value_dim = value_dim, .positions = 600, .dtype = dtype};
      SCOPED_TRACE(::testing::Message() << name(dtype) << " " << dim << " " << value_dim);
      Cache cache(kernels(), one, random_floats(one.positions * dim),
                  random_floats(one.positions * value_dim));
      const auto numbers = random_floats(4 * one.group * dim);
      Queries queries(one, 4, numbers, 270);
      const std::vector<float> sinks{0.5f, -1.0f, 3.0f};
      for (std::size_t q = 0; q < queries.all.size(); ++q) {
        queries.all[q].sink = &sinks[q % 3];
        queries.all[q].slope = q % 3 == 0 ? 0.0f : 0.01f;
      }
      cache.tile().soft_cap = 2.0f;
      cache.tile().queries = queries.all;
      const auto out = attend_in_tiles(kernels(), cache.tile(), one.group, 4);
      for (std::size_t q = 0; q < queries.all.size(); ++q)
        expect_near(out, q * static_cast<std::size_t>(value_dim),
                    reference(cache, cache.tile(), queries.all[q]));
    }
}

TEST_P(AttentionOf, NoTileAndNoSharingChangesABit) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF8E4M3, DType::kI8})
    for (const std::int64_t window : {0, 3, 130})
      for (const std::int64_t dim : {20, 64}) {
        const Case one{.head_dim = dim, .value_dim = dim, .positions = 700, .dtype = dtype};
        SCOPED_TRACE(::testing::Message() << name(dtype) << " window " << window << " dim " << dim);
        Cache cache(kernels(), one, random_floats(one.positions * dim), random_floats(one.positions * dim));
        constexpr int kRows = 150;  // over a border of splits and one of spans
        const auto numbers = random_floats(kRows * one.group * dim);
        const Queries queries(one, kRows, numbers, window);
        cache.tile().queries = queries.all;
        const auto alone = attend_in_tiles(kernels(), cache.tile(), 1, 1);
        for (const int rows : {2, 5, 10})
          ASSERT_EQ(attend_in_tiles(kernels(), cache.tile(), one.group, rows, rows > 2), alone) << rows;
      }
}

// What one row sees no other's weights touch: a number that is none stays with those who see it.
TEST_P(AttentionOf, NoNumberReachesQueriesThatDoNotSeeIt) {
  const Case one{.positions = 40, .group = 1};
  auto values = random_floats(one.positions * one.value_dim);
  values[38 * 64 + 5] = __builtin_inff();
  Cache cache(kernels(), one, random_floats(one.positions * one.head_dim), values);
  const auto numbers = random_floats(8 * one.head_dim);
  const Queries queries(one, 8, numbers);
  cache.tile().queries = queries.all;
  const auto out = attend_in_tiles(kernels(), cache.tile(), 1, 8);
  for (std::size_t row = 0; row < 8; ++row) EXPECT_EQ(std::isfinite(out[row * 64 + 5]), row < 6) << row;
}

TEST_P(AttentionOf, NeighboursWithoutATableAreReadInOrder) {
  const Case one{.dtype = DType::kF32};
  const auto keys = random_floats(one.positions * 64), values = random_floats(one.positions * 64);
  Cache cache(kernels(), one, keys, values);
  const auto numbers = random_floats(one.group * 64);
  const Queries queries(one, 1, numbers);
  cache.tile().queries = queries.all;
  const auto expected = attend_in_tiles(kernels(), cache.tile(), one.group, 1);
  AttentionTile plain = cache.tile();
  plain.cached.blocks = nullptr;
  plain.cached.keys = reinterpret_cast<const std::byte*>(keys.data());
  plain.cached.values = reinterpret_cast<const std::byte*>(values.data());
  EXPECT_EQ(attend_in_tiles(kernels(), plain, one.group, 1), expected);
}

}  // namespace
}  // namespace plimsoll::kernels
