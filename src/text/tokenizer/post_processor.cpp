// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/post_processor.h"

#include <utility>

namespace plimsoll::text {
namespace {

constexpr int kMaxDepth = 20;
constexpr const char* kWhere = "tokenizer.json: /post_processor";

Result<TokenId> read_id(const Json& json) {
  const auto id = json.as_integer();
  if (!id || *id < 0 || *id > INT32_MAX)
    return fail(ErrorCode::kMalformed, "a special token has no id: " + dump(json), kWhere);
  return static_cast<TokenId>(*id);
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids":
// [1]}}}
Status read_template(const Json& json, PostProcessor& made) {
  bool is_after = false;
  std::vector<TokenId> before, after;
  if (std::exchange(made.has_template, true))
    return fail(ErrorCode::kUnsupported, "more than one template is not supported", kWhere);
  for (const Json& part : json["single"].items()) {
    if (part.contains("Sequence")) {
      if (is_after)
        return fail(ErrorCode::kUnsupported, "a template that repeats its text is not supported", kWhere);
      is_after = true;
      continue;
    }
    const std::string* name = part["SpecialToken"]["id"].as_string();
    if (!name)
      return fail(ErrorCode::kMalformed, "a template part is neither SpecialToken nor Sequence", kWhere);
    const Json& token = json["special_tokens"][*name];
    if (!token["ids"].is_array())
      return fail(ErrorCode::kMalformed, "special token " + *name + " has no ids", kWhere);
    for (const Json& item : token["ids"].items()) {
      PLIMSOLL_TRY(const TokenId id, read_id(item));
      (is_after ? after : before).push_back(id);
    }
  }
  made.before.insert(made.before.begin(), before.begin(), before.end());
  made.after.insert(made.after.end(), after.begin(), after.end());
  return {};
}

Status read(const Json& json, int depth, PostProcessor& made) {
  if (json.is_null()) return {};
  const std::string* type = json["type"].as_string();
  if (!type) return fail(ErrorCode::kMalformed, "a post-processor has no type", kWhere);
  if (depth > kMaxDepth) return fail(ErrorCode::kMalformed, "post-processors are nested too deeply", kWhere);
  if (*type == "ByteLevel") return {};  // moves offsets only
  if (*type == "TemplateProcessing") return read_template(json, made);
  if (*type == "Sequence") {
    for (const Json& part : json["processors"].items()) PLIMSOLL_TRY_VOID(read(part, depth + 1, made));
    return {};
  }
  if (*type == "RobertaProcessing" || *type == "BertProcessing") {
    PLIMSOLL_TRY(const TokenId first,
                 read_id(json["cls"].items().size() == 2 ? json["cls"].items()[1] : Json()));
    PLIMSOLL_TRY(const TokenId last,
                 read_id(json["sep"].items().size() == 2 ? json["sep"].items()[1] : Json()));
    made.before.insert(made.before.begin(), first);
    made.after.push_back(last);
    return {};
  }
  return fail(ErrorCode::kUnsupported, "post-processor kind " + *type + " is not supported", kWhere);
}

}  // namespace

Result<PostProcessor> PostProcessor::from_json(const Json& json) {
  PostProcessor made;
  PLIMSOLL_TRY_VOID(read(json, 0, made));
  return made;
}

}  // namespace plimsoll::text
