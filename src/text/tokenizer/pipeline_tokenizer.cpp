// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pipeline_tokenizer.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "base/utf8.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/piece_encoder.h"

namespace plimsoll::text {
namespace {

// Working memory for as many calls as run at the same time. A call borrows one; idle ones are few.
class EncoderPool {
 public:
  std::unique_ptr<PieceEncoder> borrow(const PieceModel& model) {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto encoder = std::move(idle_.back());
        idle_.pop_back();
        return encoder;
      }
    }
    return std::make_unique<PieceEncoder>(model);
  }
  void give_back(std::unique_ptr<PieceEncoder> encoder) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(encoder));
  }

 private:
  static constexpr std::size_t kMaxIdle = 4;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PieceEncoder>> idle_;
};

enum TokenKind : std::uint8_t { kAbsent, kPlain, kAdded, kSpecial };

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
    kinds_.resize(static_cast<std::size_t>(
        std::max<std::int64_t>(parts_.vocabulary->size(), std::int64_t{parts_.added.highest_id()} + 1)));
    for (TokenId id = 0; id < parts_.vocabulary->size(); ++id)
      if (parts_.vocabulary->has(id)) kinds_[static_cast<std::size_t>(id)] = kPlain;
    for (const AddedToken& token : parts_.added.tokens())
      kinds_[static_cast<std::size_t>(token.id)] =
          token.is_special && token.keeps_spelling ? kSpecial : kAdded;
  }

  std::vector<TokenId> encode(std::string_view utf8, const EncodeOptions& options) const override {
    auto encoder = pool_.borrow(*parts_.model);
    encode_all(utf8, options, Job{encoder.get(), nullptr});
    std::vector<TokenId> ids = encoder->take();
    pool_.give_back(std::move(encoder));
    return ids;
  }

  Encoding encode_with_spans(std::string_view utf8, const EncodeOptions& options) const override {
    Encoding made;
    encode_all(utf8, options, Job{nullptr, &made});
    return made;
  }

  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const override {
    if (parts_.decoder.joins_bytes()) {
      std::string bytes;
      bytes.reserve(ids.size() * 5);
      for (const TokenId id : ids)
        if (!skip_special_tokens || kind_of(id) != kSpecial) append_bytes(id, bytes);
      return is_valid_utf8(bytes) ? bytes : replace_invalid_utf8(bytes);
    }
    if (parts_.sentencepiece) return decode_runs(ids, skip_special_tokens);
    std::vector<std::string> tokens;
    for (const TokenId id : ids)
      if (kind_of(id) != kAbsent && (!skip_special_tokens || kind_of(id) != kSpecial))
        tokens.push_back(*token_text(id));
    return parts_.decoder.decode(std::move(tokens));
  }

  bool decodes_by_bytes() const override { return parts_.decoder.joins_bytes(); }

  std::string token_bytes(TokenId id) const override {
    std::string bytes;
    if (parts_.decoder.joins_bytes())
      append_bytes(id, bytes);
    else if (const auto text = token_text(id))
      bytes = parts_.decoder.bytes_of(*text);
    return bytes;
  }

  std::optional<std::string> token_text(TokenId id) const override {
    if (const AddedToken* token = parts_.added.find(id)) return token->content;
    if (!parts_.vocabulary->has(id)) return std::nullopt;
    return parts_.vocabulary->text_of(id);
  }

  std::optional<TokenId> id_of(std::string_view token) const override {
    if (const AddedToken* found = parts_.added.find(token)) return found->id;
    return parts_.vocabulary->find_text(token);
  }

  std::vector<std::size_t> special_breaks(std::string_view utf8) const override {
    std::vector<std::size_t> places = parts_.added.special_breaks(utf8, AddedTokens::Stage::kRawText);
    if (parts_.added.has_stage(AddedTokens::Stage::kNormalizedText)) {
      std::string storage;
      std::vector<Span> origin;
      const std::string_view text = parts_.normalizer.apply(utf8, storage, &origin);
      const Piece normalized{text, 0, origin.empty() ? nullptr : &origin};
      for (const std::size_t at : parts_.added.special_breaks(text, AddedTokens::Stage::kNormalizedText))
        places.push_back(at == 0 ? 0 : normalized.source(at - 1, at).end);
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }

  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(kinds_.size()); }
  bool is_special(TokenId id) const override { return kind_of(id) == kSpecial; }
  std::optional<TokenId> bos() const override { return parts_.bos; }
  std::optional<TokenId> eos() const override { return parts_.eos; }
  const std::vector<TokenId>& stop_ids() const override { return parts_.stop_ids; }

 private:
  /// Where one call's ids go: one of the two. Spans are found the slow way, piece by piece.
  struct Job {
    PieceEncoder* encoder;
    Encoding* placed;

    void add(TokenId id, Span span) const {
      if (encoder) return encoder->add(id);
      placed->ids.push_back(id);
      placed->spans.push_back(span);
    }
  };

  TokenKind kind_of(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < kinds_.size() ? kinds_[static_cast<std::size_t>(id)]
                                                                   : kAbsent;
  }

  // SentencePiece knows special tokens as nothing: what lies between them decodes by itself.
  std::string decode_runs(std::span<const TokenId> ids, bool skip_special_tokens) const {
    std::string text;
    std::vector<TokenId> run;
    for (const TokenId id : ids) {
      if (kind_of(id) != kSpecial) {
        run.push_back(id);
        continue;
      }
      text += parts_.sentencepiece->decode(std::exchange(run, {}));
      if (!skip_special_tokens) text += parts_.added.find(id)->content;
    }
    return text + parts_.sentencepiece->decode(run);
  }

  std::string added_bytes(const std::string& content) const {
    return parts_.vocabulary->spelling() == Spelling::kBytes ? content : token_to_bytes(content);
  }

  void append_bytes(TokenId id, std::string& bytes) const {
    const TokenKind kind = kind_of(id);
    if (kind == kPlain && parts_.vocabulary->spelling() != Spelling::kPlain)
      bytes += parts_.vocabulary->bytes_of(id);
    else if (kind == kPlain)  // a vocabulary spelled plainly whose decoder takes it for byte characters
      bytes += token_to_bytes(parts_.vocabulary->bytes_of(id));
    else if (kind != kAbsent)
      bytes += added_bytes(parts_.added.find(id)->content);
  }

  void encode_all(std::string_view utf8, const EncodeOptions& options, const Job& job) const {
    std::string repaired;
    if (!is_valid_utf8(utf8)) utf8 = repaired = replace_invalid_utf8(utf8);
    if (options.add_special_tokens)
      for (const TokenId id : parts_.post_processor.before) job.add(id, {0, 0});
    for (const auto& part :
         parts_.added.split(utf8, AddedTokens::Stage::kRawText, options.parse_special, options.barriers)) {
      if (part.token)
        job.add(part.token->id, part.span);
      else
        encode_text(utf8, part.span, options, job);
    }
    if (options.add_special_tokens)
      for (const TokenId id : parts_.post_processor.after) job.add(id, {utf8.size(), utf8.size()});
  }

  // One text between added tokens: `span` of `whole`.
  void encode_text(std::string_view whole, Span span, const EncodeOptions& options, const Job& job) const {
    const std::string_view raw = whole.substr(span.begin, span.end - span.begin);
    // Where barriers stand in normalised text nobody knows: none of its special tokens counts then.
    const auto barrier = std::upper_bound(options.barriers.begin(), options.barriers.end(), span.begin);
    const bool with_special =
        options.parse_special && (barrier == options.barriers.end() || *barrier >= span.end);
    std::string storage;
    std::vector<Span> origin;
    const std::string_view text = parts_.normalizer.apply(
        raw, storage, job.placed || parts_.pre_tokenizer.needs_origin() ? &origin : nullptr);
    const bool is_start = span.begin == 0 && (origin.empty() || origin[0].begin == 0);
    const std::size_t first_span = job.placed ? job.placed->spans.size() : 0;
    if (!parts_.added.has_stage(AddedTokens::Stage::kNormalizedText)) {
      encode_pieces(text, 0, is_start, job);
    } else {
      for (const auto& part : parts_.added.split(text, AddedTokens::Stage::kNormalizedText, with_special)) {
        if (part.token)
          job.add(part.token->id, part.span);
        else
          encode_pieces(text.substr(part.span.begin, part.span.end - part.span.begin), part.span.begin,
                        is_start && part.span.begin == 0, job);
      }
    }
    if (!job.placed) return;
    // So far spans are of the normalised text.
    const Piece normalized{text, 0, origin.empty() ? nullptr : &origin};
    for (std::size_t i = first_span; i < job.placed->spans.size(); ++i) {
      Span& each = job.placed->spans[i];
      each = normalized.source(each.begin, each.end);
      each = {each.begin + span.begin, each.end + span.begin};
    }
  }

  // `offset`: where `text` begins in the normalised text.
  void encode_pieces(std::string_view text, std::size_t offset, bool is_start, const Job& job) const {
    const Regex* pattern = parts_.pre_tokenizer.single_pattern();
    if (pattern && job.encoder) return encode_matches(text, *pattern, *job.encoder);
    PreTokenizer::Storage storage;
    storage.keeps_origin = job.placed != nullptr;
    for (const Piece& piece : parts_.pre_tokenizer.split(text, is_start, storage)) {
      if (job.encoder) {
        add_piece(piece.text, *job.encoder);
        continue;
      }
      std::vector<Span> spans;
      parts_.model->encode(piece.text, {job.placed->ids, &spans});
      for (const Span each : spans) {
        const Span source = piece.source(each.begin, each.end);
        job.placed->spans.push_back({source.begin + offset, source.end + offset});
      }
    }
    if (job.encoder) job.encoder->flush();  // the pieces may lie in `storage`
  }

  void encode_matches(std::string_view text, const Regex& pattern, PieceEncoder& encoder) const {
    const bool keeps_gaps = parts_.pre_tokenizer.keeps_gaps();
    const auto add = [&](std::size_t begin, std::size_t end) {
      encoder.add(text.substr(begin, end - begin), text.size() - begin);
    };
    std::array<Span, 64> matches;
    std::size_t done = 0;
    for (Regex::Cursor cursor; cursor.at < text.size();) {
      const std::size_t count = pattern.find_some(text, cursor, matches);
      for (std::size_t i = 0; i < count; ++i) {
        if (keeps_gaps && matches[i].begin > done) add(done, matches[i].begin);
        add(matches[i].begin, matches[i].end);
        done = matches[i].end;
      }
    }
    if (keeps_gaps && done < text.size()) add(done, text.size());
    encoder.flush();
  }

  // A long piece, in parts where the model knows places that nothing crosses.
  void add_piece(std::string_view piece, PieceEncoder& encoder) const {
    while (!piece.empty()) {
      const std::size_t size = parts_.model->safe_cut(piece);
      encoder.add(piece.substr(0, size), piece.size());
      piece.remove_prefix(size);
    }
  }

  TokenizerParts parts_;
  std::vector<TokenKind> kinds_;  // by id
  mutable EncoderPool pool_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer(TokenizerParts parts) {
  return std::make_shared<const PipelineTokenizer>(std::move(parts));
}

}  // namespace plimsoll::text
