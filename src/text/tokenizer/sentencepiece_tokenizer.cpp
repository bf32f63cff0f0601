// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/sentencepiece_tokenizer.h"

#include "text/tokenizer/word_mark.h"

namespace plimsoll::text {
namespace {

std::optional<TokenId> id_in(const SentencePieceFile& file, std::int64_t id) {
  if (id < 0 || static_cast<std::size_t>(id) >= file.pieces.size()) return std::nullopt;
  return static_cast<TokenId>(id);
}

}  // namespace

Result<TokenizerParts> sentencepiece_parts(const SentencePieceFile& file) {
  TokenizerParts parts;
  std::vector<Vocabulary::Entry> entries;
  std::vector<AddedToken> added;
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    const auto id = static_cast<std::int64_t>(entries.size());
    entries.push_back({piece.text, id});
    if (piece.type != SentencePieceFile::PieceType::kControl) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(id);
    token.content = std::string(piece.text);
    token.is_special = true;
    added.push_back(std::move(token));
  }
  PLIMSOLL_TRY(auto model, SentencePieceModel::build(file));
  PLIMSOLL_TRY(Vocabulary vocabulary, Vocabulary::build(entries, Spelling::kPlain));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  PLIMSOLL_TRY(parts.added, AddedTokens::build(std::move(added), parts.normalizer));
  parts.decoder = Decoder::marked(std::string(kWordMark), file.add_dummy_prefix);
  parts.sentencepiece = model.get();
  parts.model = std::move(model);
  parts.bos = id_in(file, file.bos_id);
  parts.eos = id_in(file, file.eos_id);
  // Llama's and Mistral's way; models without BOS, as T5, end their texts instead.
  if (parts.bos)
    parts.post_processor.before.push_back(*parts.bos);
  else if (parts.eos)
    parts.post_processor.after.push_back(*parts.eos);
  if (parts.eos) parts.stop_ids.push_back(*parts.eos);
  return parts;
}

}  // namespace plimsoll::text
