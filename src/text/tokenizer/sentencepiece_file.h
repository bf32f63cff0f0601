// SPDX-License-Identifier: Apache-2.0
// Reads SentencePiece's `.model` files: the pieces and those settings that encoding and decoding need.
// Training settings, self tests and denormalisers (which would change decoded text) are passed over. The
// result owns its bytes and may be moved, not copied. Plain function; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::text {

struct SentencePieceFile {
  enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  enum class ModelType { kUnigram = 1, kBpe, kWord, kChar };
  struct Piece {
    std::string_view text;  // "▁the"; ids count from 0 in the order of pieces
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  std::vector<char> bytes;  // what the views below point into
  std::vector<Piece> pieces;
  ModelType model_type = ModelType::kUnigram;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  std::int64_t bos_id = 1, eos_id = 2;              // -1: the model has none
  std::string_view unk_surface = " \xE2\x81\x87 ";  // what an unknown id decodes to
  std::string_view precompiled_charsmap;            // empty: text stays as it is
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  SentencePieceFile() = default;
  SentencePieceFile(SentencePieceFile&&) = default;
  SentencePieceFile& operator=(SentencePieceFile&&) = default;
};

/// `name`: of the file, for errors.
/// Errors: kMalformed with the byte offset where the bytes are no such message.
/// Source: sentencepiece 0.2.3; the wire format is protocol buffers'.
Result<SentencePieceFile> read_sentencepiece(std::string_view file, std::string_view name);

/// True for bytes that start as such a file does: with a piece.
bool looks_like_sentencepiece(std::string_view file);

}  // namespace plimsoll::text
