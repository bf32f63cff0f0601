// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/sentencepiece_model.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "text/tokenizer/byte_tokens.h"
#include "text/tokenizer/sentencepiece_bpe.h"
#include "text/tokenizer/utf8_steps.h"
#include "text/tokenizer/vocabulary_trie.h"
#include "text/tokenizer/word_mark.h"

namespace plimsoll::text {
namespace {

constexpr float kUnknownPenalty = 10.0f;  // an unknown character costs this more than the worst piece
constexpr float kUserSymbolBonus = 0.1f;  // per byte: such symbols win over what log probabilities sum up to

bool is_findable(SentencePieceFile::PieceType type) {
  using Type = SentencePieceFile::PieceType;
  return type == Type::kNormal || type == Type::kUserDefined || type == Type::kUnused;
}

// Every single byte that starts no character becomes U+FFFD, where Python would make one of several.
void append_repaired(std::string& text, std::string_view bytes) {
  while (!bytes.empty()) {
    const DecodedChar first = decode_utf8(bytes);
    append_utf8(text, first.valid ? first.code_point : kReplacementCharacter);
    bytes.remove_prefix(first.valid ? static_cast<std::size_t>(first.bytes) : 1);
  }
}

}  // namespace

Result<std::unique_ptr<SentencePieceModel>> SentencePieceModel::build(const SentencePieceFile& file) {
  using ModelType = SentencePieceFile::ModelType;
  if (file.model_type != ModelType::kUnigram && file.model_type != ModelType::kBpe)
    return fail(ErrorCode::kUnsupported, "SentencePiece's word and character models are not supported", {},
                "use a unigram or BPE model");
  PLIMSOLL_TRY(SentencePieceText text, SentencePieceText::build(file));
  std::unique_ptr<SentencePieceModel> model(new SentencePieceModel(std::move(text)));
  model->is_unigram_ = file.model_type == ModelType::kUnigram;
  model->byte_fallback_ = file.byte_fallback;
  model->strips_dummy_prefix_ = file.add_dummy_prefix || file.remove_extra_whitespaces;
  model->strips_all_blanks_ = file.remove_extra_whitespaces;
  model->unknown_surface_ = file.unk_surface;
  PLIMSOLL_TRY_VOID(model->take_pieces(file));
  model->find_joints();
  return model;
}

Status SentencePieceModel::take_pieces(const SentencePieceFile& file) {
  std::vector<Vocabulary::Entry> all, findable;
  lowest_score_ = std::numeric_limits<float>::max();
  bool has_unknown = false;
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const SentencePieceFile::Piece& piece = file.pieces[i];
    const auto id = static_cast<TokenId>(i);
    all.push_back({piece.text, id});
    types_.push_back(piece.type);
    scores_.push_back(piece.score);
    has_unused_ |= piece.type == PieceType::kUnused;
    if (piece.type == PieceType::kNormal) lowest_score_ = std::min(lowest_score_, piece.score);
    if (piece.type == PieceType::kUnknown) {
      if (has_unknown) return fail(ErrorCode::kMalformed, "two pieces of a SentencePiece model are unknown");
      has_unknown = true;
      unknown_id_ = id;
    }
    if (is_findable(piece.type))
      findable.push_back({piece.text, id});
    else
      reserved_.emplace(piece.text, id);
  }
  if (!has_unknown) return fail(ErrorCode::kMalformed, "a SentencePiece model has no unknown piece");
  PLIMSOLL_TRY(texts_, Vocabulary::build(all, Spelling::kPlain));
  PLIMSOLL_TRY_VOID(check_token_lengths(texts_));
  PLIMSOLL_TRY(findable_, Vocabulary::build(findable, Spelling::kPlain));
  for (const Vocabulary::Entry& entry : all)
    if (texts_.find_bytes(entry.text) != static_cast<TokenId>(entry.id))
      return fail(ErrorCode::kMalformed, "two pieces of a SentencePiece model are equal, one has the id " +
                                             std::to_string(entry.id));
  const auto byte_ids = byte_token_ids(texts_);
  for (std::size_t byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = byte_ids[byte] >= 0 ? byte_ids[byte] : unknown_id_;
  if (is_unigram_) trie_ = trie_of(findable_);
  return {};
}

void SentencePieceModel::find_joints() {
  for (TokenId id = 0; id < size(); ++id) {
    if (!is_findable(type_of(id))) continue;
    const std::string_view text = text_of(id);
    for (std::size_t at = text.find(kWordMark, 1); at != std::string_view::npos;
         at = text.find(kWordMark, at + 1)) {
      std::size_t before = at - 1;
      while (before > 0 && !is_boundary(text, before)) --before;
      joints_.insert(decode_utf8(text.substr(before)).code_point);
    }
  }
}

TokenId SentencePieceModel::id_of(std::string_view piece) const {
  if (const auto id = findable_.find_bytes(piece)) return *id;
  const auto reserved = reserved_.find(std::string(piece));
  return reserved == reserved_.end() ? unknown_id_ : reserved->second;
}

void SentencePieceModel::encode(std::string_view text, const PieceSink& sink) const {
  std::string normalized;
  std::vector<std::size_t> origin;
  text_.normalize(text, normalized, sink.spans ? &origin : nullptr);
  std::vector<Part> parts;
  if (is_unigram_)
    encode_unigram(normalized, parts);
  else
    encode_bpe(normalized, parts);
  bool is_after_unknown = false;
  for (const Part& part : parts) {
    const std::size_t begin = sink.spans ? origin[part.begin] : 0, end = sink.spans ? origin[part.end] : 0;
    const bool is_unknown = part.id == unknown_id_;
    if (is_unknown && byte_fallback_) {
      for (std::size_t at = part.begin; at < part.end; ++at)
        sink.add(byte_ids_[static_cast<unsigned char>(normalized[at])], begin,
                 at + 1 == part.end ? end : begin);
    } else if (is_unknown && is_after_unknown) {
      if (sink.spans) sink.spans->back().end = end;
    } else {
      sink.add(part.id, begin, end);
    }
    is_after_unknown = is_unknown;
  }
}

void SentencePieceModel::encode_bpe(std::string_view normalized, std::vector<Part>& parts) const {
  // Runs of text between which nothing can join are independent, unless unused pieces are taken apart: how
  // depends on what was joined elsewhere.
  SentencePieceBpe run(*this, normalized);
  const bool may_cut = !has_unused_;
  char32_t before = kWordMarkCharacter;
  for (std::size_t at = 0; at < normalized.size();) {
    const std::string_view rest = normalized.substr(at);
    const std::size_t symbol = text_.user_symbol(rest);
    const DecodedChar first = decode_utf8(rest);
    const bool is_joint = first.code_point != kWordMarkCharacter || joints_.contains(before);
    if (may_cut && !run.is_empty() && (symbol > 0 || !is_joint)) run.flush(parts);
    const std::size_t bytes = symbol > 0 ? symbol : static_cast<std::size_t>(first.bytes);
    run.add(at, bytes, symbol > 0);
    if (may_cut && symbol > 0) run.flush(parts);
    before = first.code_point;
    at += bytes;
  }
  run.flush(parts);
}

void SentencePieceModel::encode_unigram(std::string_view normalized, std::vector<Part>& parts) const {
  struct Node {
    float score = 0;  // of the best way to cut the text up to here
    TokenId id = -1;  // its last piece; -1: no way leads here yet
    std::size_t begin = 0;
  };
  std::vector<Node> nodes(normalized.size() + 1);
  // Sums are rounded as the reference rounds them: ties depend on it.
  const auto offer = [&](std::size_t begin, std::size_t end, TokenId id, float score) {
    Node& node = nodes[end];
    if (node.id < 0 || score > node.score) node = {score, id, begin};
  };
  const float unknown_score = lowest_score_ - kUnknownPenalty;
  for (std::size_t at = 0; at < normalized.size();) {
    const float till_here = nodes[at].score;
    const std::size_t character = character_bytes(normalized, at);
    bool has_single = false;
    trie_.each_prefix(normalized.substr(at), [&](std::size_t length, TokenId id) {
      if (is_unused(id)) return;
      const float score = type_of(id) == PieceType::kUserDefined
                              ? kUserSymbolBonus * static_cast<float>(length - 1)
                              : scores_[static_cast<std::size_t>(id)];
      offer(at, at + length, id, score + till_here);
      has_single |= length == character;
    });
    if (!has_single) offer(at, at + character, unknown_id_, unknown_score + till_here);
    at += character;
  }
  for (std::size_t end = normalized.size(); end > 0; end = nodes[end].begin)
    parts.push_back({nodes[end].begin, end, nodes[end].id});
  std::reverse(parts.begin(), parts.end());
}

std::string SentencePieceModel::decode(std::span<const TokenId> ids) const {
  std::string text, bytes;
  const auto flush_bytes = [&] {
    append_repaired(text, bytes);
    bytes.clear();
  };
  bool may_strip = true, has_stripped = false;
  for (const TokenId id : ids) {
    if (id < 0 || id >= size()) continue;
    const PieceType type = type_of(id);
    std::string_view piece = text_of(id);
    if (type == PieceType::kByte) {
      if (const int byte = byte_of_token(piece); byte >= 0) bytes += static_cast<char>(byte);
      continue;
    }
    flush_bytes();
    if (has_stripped || !text.empty()) may_strip = false;
    has_stripped = false;
    if (type == PieceType::kControl) continue;
    if (type == PieceType::kUnknown) {
      text += unknown_surface_;
      continue;
    }
    if (may_strip && strips_dummy_prefix_ && piece.starts_with(kWordMark)) {
      piece.remove_prefix(kWordMark.size());
      has_stripped = !strips_all_blanks_;
    }
    for (std::size_t blank = piece.find(kWordMark); blank != std::string_view::npos;
         blank = piece.find(kWordMark)) {
      text += piece.substr(0, blank);
      text += ' ';
      piece.remove_prefix(blank + kWordMark.size());
    }
    text += piece;
  }
  flush_bytes();
  return text;
}

}  // namespace plimsoll::text
