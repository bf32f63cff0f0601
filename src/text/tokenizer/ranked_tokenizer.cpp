// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/ranked_tokenizer.h"

#include "text/tokenizer/rank_model.h"

namespace plimsoll::text {

Result<TokenizerParts> ranked_parts(const RankedVocabulary& ranked) {
  TokenizerParts parts;
  PLIMSOLL_TRY(Vocabulary vocabulary, Vocabulary::build(ranked.entries, Spelling::kBytes));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  parts.model = std::make_unique<RankModel>(*parts.vocabulary);
  if (ranked.is_normalized_nfc) parts.normalizer.add_nfc();
  PLIMSOLL_TRY_VOID(parts.pre_tokenizer.add_split(ranked.pattern, PreTokenizer::Behavior::kRemoved, true,
                                                  RegexFlavour::kRust));
  parts.decoder = Decoder::byte_level();
  std::vector<AddedToken> added;
  for (const SpecialToken& special : ranked.specials) {
    AddedToken token;
    token.id = special.id;
    token.content = special.text;
    token.is_special = true;
    added.push_back(std::move(token));
  }
  PLIMSOLL_TRY(parts.added, AddedTokens::build(std::move(added), parts.normalizer));
  parts.bos = ranked.bos;
  parts.eos = ranked.eos;
  if (parts.bos) parts.post_processor.before.push_back(*parts.bos);
  if (parts.eos) parts.stop_ids.push_back(*parts.eos);
  return parts;
}

}  // namespace plimsoll::text
