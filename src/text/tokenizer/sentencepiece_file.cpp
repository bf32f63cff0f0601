// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/sentencepiece_file.h"

#include <bit>
#include <cmath>
#include <optional>

namespace plimsoll::text {
namespace {

// It is written for every unknown id; published models have at most 9 bytes.
constexpr std::size_t kLongestUnknownSurface = 256;

enum class WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  std::uint64_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t value = 0;  // of the number types
  std::string_view bytes;   // of kBytes

  std::int64_t integer() const { return static_cast<std::int32_t>(value); }  // int32 and enum
  bool flag() const { return value != 0; }
};

// Fields of one message in order; stops at its end or where it is damaged.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  std::optional<Field> next() {
    if (rest_.empty() || is_damaged_) return std::nullopt;
    Field field;
    std::uint64_t key = 0;
    is_damaged_ = !read_varint(key) || !read_value(key & 7, field);
    field.number = key >> 3;
    is_damaged_ |= field.number == 0;
    return is_damaged_ ? std::nullopt : std::optional(field);
  }
  bool is_damaged() const { return is_damaged_; }
  std::size_t bytes_left() const { return rest_.size(); }

 private:
  bool read_varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool read_fixed(std::size_t size, std::uint64_t& value) {
    if (rest_.size() < size) return false;
    value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(size);
    return true;
  }
  bool read_value(std::uint64_t type, Field& field) {
    field.type = static_cast<WireType>(type);
    switch (field.type) {
      case WireType::kVarint:
        return read_varint(field.value);
      case WireType::kFixed64:
        return read_fixed(8, field.value);
      case WireType::kFixed32:
        return read_fixed(4, field.value);
      case WireType::kBytes: {
        std::uint64_t size = 0;
        if (!read_varint(size) || size > rest_.size()) return false;
        field.bytes = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(static_cast<std::size_t>(size));
        return true;
      }
    }
    return false;  // groups, which no such file has
  }

  std::string_view rest_;
  bool is_damaged_ = false;
};

bool is(const Field& field, std::uint64_t number, WireType type) {
  return field.number == number && field.type == type;
}

// Each reader takes one message and is true when it is whole and holds what the format allows. Field numbers
// are those of sentencepiece_model.proto.
bool read_piece(std::string_view bytes, SentencePieceFile::Piece& piece) {
  Message message(bytes);
  while (const auto field = message.next()) {
    if (is(*field, 1, WireType::kBytes)) piece.text = field->bytes;
    if (is(*field, 2, WireType::kFixed32))
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
    if (is(*field, 3, WireType::kVarint)) {
      if (field->value < 1 || field->value > 6) return false;
      piece.type = static_cast<SentencePieceFile::PieceType>(field->value);
    }
  }
  return !message.is_damaged() && !piece.text.empty() && !std::isnan(piece.score);
}

bool read_trainer(std::string_view bytes, SentencePieceFile& file) {
  Message message(bytes);
  while (const auto field = message.next()) {
    if (is(*field, 3, WireType::kVarint)) {
      if (field->value < 1 || field->value > 4) return false;
      file.model_type = static_cast<SentencePieceFile::ModelType>(field->value);
    }
    if (is(*field, 24, WireType::kVarint)) file.treat_whitespace_as_suffix = field->flag();
    if (is(*field, 35, WireType::kVarint)) file.byte_fallback = field->flag();
    if (is(*field, 41, WireType::kVarint)) file.bos_id = field->integer();
    if (is(*field, 42, WireType::kVarint)) file.eos_id = field->integer();
    if (is(*field, 44, WireType::kBytes)) file.unk_surface = field->bytes;
  }
  return !message.is_damaged() && file.unk_surface.size() <= kLongestUnknownSurface;
}

bool read_normalizer(std::string_view bytes, SentencePieceFile& file) {
  Message message(bytes);
  while (const auto field = message.next()) {
    if (is(*field, 2, WireType::kBytes)) file.precompiled_charsmap = field->bytes;
    if (is(*field, 3, WireType::kVarint)) file.add_dummy_prefix = field->flag();
    if (is(*field, 4, WireType::kVarint)) file.remove_extra_whitespaces = field->flag();
    if (is(*field, 5, WireType::kVarint)) file.escape_whitespaces = field->flag();
  }
  return !message.is_damaged();
}

}  // namespace

Result<SentencePieceFile> read_sentencepiece(std::string_view file, std::string_view name) {
  SentencePieceFile read;
  read.bytes.assign(file.begin(), file.end());
  const std::string_view bytes(read.bytes.data(), read.bytes.size());
  Message message(bytes);
  std::size_t offset = 0;
  bool is_sound = true;
  while (is_sound) {
    offset = bytes.size() - message.bytes_left();
    const auto field = message.next();
    if (!field) break;
    if (is(*field, 1, WireType::kBytes)) {
      is_sound = read_piece(field->bytes, read.pieces.emplace_back());
    } else if (is(*field, 2, WireType::kBytes)) {
      is_sound = read_trainer(field->bytes, read);
    } else if (is(*field, 3, WireType::kBytes)) {
      is_sound = read_normalizer(field->bytes, read);
    }
  }
  if (!is_sound || message.is_damaged())
    return fail(ErrorCode::kMalformed,
                "this is not a SentencePiece model: a field is cut off or out of range",
                std::string(name) + ": byte " + std::to_string(offset));
  if (read.pieces.empty())
    return fail(ErrorCode::kMalformed, "a SentencePiece model without pieces", std::string(name));
  return read;
}

bool looks_like_sentencepiece(std::string_view file) {
  Message message(file);
  const auto field = message.next();
  SentencePieceFile::Piece piece;
  return field && is(*field, 1, WireType::kBytes) && read_piece(field->bytes, piece);
}

}  // namespace plimsoll::text
