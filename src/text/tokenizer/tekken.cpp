// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tekken.h"

#include "text/tokenizer/base64.h"

namespace plimsoll::text {
namespace {

// Special tokens of files up to version v7, which do not list them.
constexpr const char* kOldSpecials[] = {"<unk>",
                                        "<s>",
                                        "</s>",
                                        "[INST]",
                                        "[/INST]",
                                        "[AVAILABLE_TOOLS]",
                                        "[/AVAILABLE_TOOLS]",
                                        "[TOOL_RESULTS]",
                                        "[/TOOL_RESULTS]",
                                        "[TOOL_CALLS]",
                                        "[IMG]",
                                        "<pad>",
                                        "[IMG_BREAK]",
                                        "[IMG_END]",
                                        "[PREFIX]",
                                        "[MIDDLE]",
                                        "[SUFFIX]",
                                        "[SYSTEM_PROMPT]",
                                        "[/SYSTEM_PROMPT]",
                                        "[TOOL_CONTENT]"};
constexpr std::int64_t kMaxTokens = 1 << 24;
// Each becomes a string before the file has shown anything for it; published files have 1,000.
constexpr std::int64_t kMaxSpecials = 100'000;

tl::unexpected<Error> malformed(std::string message, const std::string& pointer) {
  return fail(ErrorCode::kMalformed, std::move(message), "tekken.json: " + pointer);
}

Result<std::int64_t> read_count(const Json& config, const char* name, std::int64_t most) {
  const auto count = config[name].as_integer();
  if (!count || *count < 0 || *count > most)
    return malformed(std::string(name) + " must be a number of tokens, at most " + std::to_string(most),
                     std::string("/config/") + name);
  return *count;
}

Status read_specials(const Json& listed, std::int64_t num_specials, RankedVocabulary& read) {
  std::vector<std::string> names;
  if (listed.is_null()) names.assign(std::begin(kOldSpecials), std::end(kOldSpecials));
  names.resize(static_cast<std::size_t>(num_specials));
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const std::string pointer = "/special_tokens/" + std::to_string(i);
    const auto rank = listed.items()[i]["rank"].as_integer();
    const std::string* text = listed.items()[i]["token_str"].as_string();
    if (!rank || *rank < 0 || *rank >= num_specials || !text || text->empty())
      return malformed("a special token needs a token_str and a rank below " + std::to_string(num_specials),
                       pointer);
    names[static_cast<std::size_t>(*rank)] = *text;
  }
  for (std::int64_t id = 0; id < num_specials; ++id) {
    std::string& name = names[static_cast<std::size_t>(id)];
    if (name.empty()) name = "<SPECIAL_" + std::to_string(id) + ">";
    if (name == "<s>") read.bos = static_cast<TokenId>(id);
    if (name == "</s>") read.eos = static_cast<TokenId>(id);
    read.specials.push_back({std::move(name), static_cast<TokenId>(id)});
  }
  return {};
}

// Tokens of the file's first `num_tokens` ranks; ids count on behind the special ones.
Status read_tokens(const Json& vocab, std::int64_t num_tokens, std::int64_t num_specials,
                   RankedVocabulary& read) {
  const auto& items = vocab.items();
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_tokens); ++i) {
    const auto pointer = [i] { return "/vocab/" + std::to_string(i); };
    if (items[i]["rank"].as_integer() != static_cast<std::int64_t>(i))
      return malformed("rank " + std::to_string(i) + " is expected here", pointer() + "/rank");
    const std::string* text = items[i]["token_bytes"].as_string();
    if (!text || text->empty() || !append_base64(read.bytes, *text))
      return malformed("the bytes of a token must be base64", pointer() + "/token_bytes");
    ends.push_back(read.bytes.size());
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::string_view bytes(read.bytes.data() + begin, ends[i] - begin);
    read.entries.push_back({bytes, num_specials + static_cast<std::int64_t>(i)});
    begin = ends[i];
  }
  return {};
}

}  // namespace

Result<RankedVocabulary> read_tekken(const Json& file) {
  const Json& config = file["config"];
  RankedVocabulary read;
  const std::string* pattern = config["pattern"].as_string();
  if (!pattern || pattern->empty())
    return malformed("the expression that cuts text into pieces is missing", "/config/pattern");
  read.pattern = *pattern;
  PLIMSOLL_TRY(const std::int64_t size, read_count(config, "default_vocab_size", kMaxTokens));
  PLIMSOLL_TRY(const std::int64_t num_specials,
               read_count(config, "default_num_special_tokens", kMaxSpecials));
  const std::int64_t num_tokens = size - num_specials;
  if (num_tokens < 0 || num_tokens > static_cast<std::int64_t>(file["vocab"].size()))
    return malformed("the vocabulary lists " + std::to_string(file["vocab"].size()) +
                         " tokens, the sizes ask for " + std::to_string(num_tokens),
                     "/config/default_vocab_size");
  PLIMSOLL_TRY_VOID(read_specials(file["special_tokens"], num_specials, read));
  PLIMSOLL_TRY_VOID(read_tokens(file["vocab"], num_tokens, num_specials, read));
  return read;
}

}  // namespace plimsoll::text
