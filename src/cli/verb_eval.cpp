// SPDX-License-Identifier: Apache-2.0
// `eval MODEL`: perplexity, distance from float32, recall of a pass key; a row for each way of computing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>

#include "base/mapped_file.h"
#include "cli/engine_flags.h"
#include "cli/idle_flags.h"
#include "cli/model_argument.h"
#include "cli/verbs.h"
#include "report/report.h"
#include "serve/serve.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kReferenceDtype = "float32";
constexpr const char* kAsDtype = "auto";   // the cache as --dtype has it
constexpr const char* kAsStored = "none";  // the weights

struct Flags {
  const CLI::App* verb = nullptr;
  CommonFlags common;
  EngineFlags engine;
  std::string model;
  std::vector<std::string> dtypes, cache_dtypes, quantizations;
  std::string text_file, ids_file;
  bool wants_kl = false;
  std::string windows = "strided";
  std::string stride, max_windows;
  bool wants_passkey = false;
  serve::PasskeyTask passkey;
};

bool has_text(const Flags& flags) {
  return !flags.text_file.empty() || !flags.ids_file.empty();
}

Status check_flags(const Flags& flags) {
  if (!has_text(flags) && !flags.wants_passkey)
    return fail(ErrorCode::kUsage, "nothing to measure is named", "",
                "give --perplexity FILE, --token-ids FILE or --passkey");
  return refuse_idle_flags(
      *flags.verb,
      {{!has_text(flags),
        {"--kl", "--windows", "--stride", "--max-windows", "--max-model-len"},
        "without a text: --perplexity FILE or --token-ids FILE"},
       {!flags.text_file.empty(), {"--token-ids"}, "beside --perplexity: one text is measured"},
       {flags.windows == "llama.cpp", {"--stride"}, "beside --windows llama.cpp: they stand side by side"},
       {!flags.wants_passkey,
        {"--passkey-lengths", "--passkey-depths", "--passkey-trials", "--seed"},
        "without --passkey"}});
}

/// One row of the table: what differs from row to row is set here.
Result<serve::Variant> variant_of(const Flags& flags, const std::string& dtype,
                                  const std::string& cache_dtype = kAsDtype,
                                  const std::string& quantization = kAsStored) {
  EngineFlags engine = flags.engine;
  engine.dtype = dtype;
  engine.kv_cache_dtype = cache_dtype;
  if (quantization != kAsStored) engine.quantization = quantization;
  PLIMSOLL_TRY(const serve::LoadOptions load, load_options(engine, flags.model, flags.common));
  return serve::Variant{
      .settings = {{"dtype", dtype}, {"kv_cache_dtype", cache_dtype}, {"quantization", quantization}},
      .engine = load.engine};
}

/// A row for each --dtype; then, beside the last of them, one for each further change alone.
Result<std::vector<serve::Variant>> variants_of(const Flags& flags) {
  std::vector<std::string> dtypes = flags.dtypes;
  if (dtypes.empty()) dtypes = {"auto"};
  if (flags.dtypes.empty() && flags.wants_kl) dtypes = {kReferenceDtype, "auto"};
  std::vector<serve::Variant> variants;
  const auto add = [&](const std::string& dtype, const std::string& cache_dtype,
                       const std::string& quantization) -> Status {
    PLIMSOLL_TRY(serve::Variant variant, variant_of(flags, dtype, cache_dtype, quantization));
    const auto is_same = [&](const serve::Variant& other) { return other.settings == variant.settings; };
    if (std::ranges::none_of(variants, is_same)) variants.push_back(std::move(variant));
    return {};
  };
  for (const std::string& dtype : dtypes) PLIMSOLL_TRY_VOID(add(dtype, kAsDtype, kAsStored));
  for (const std::string& cache_dtype : flags.cache_dtypes)
    PLIMSOLL_TRY_VOID(add(dtypes.back(), cache_dtype, kAsStored));
  for (const std::string& quantization : flags.quantizations)
    PLIMSOLL_TRY_VOID(add(dtypes.back(), kAsDtype, quantization));
  return variants;
}

Result<std::vector<engine::TokenId>> read_ids(const std::string& path) {
  PLIMSOLL_TRY(const Json list, read_json_file(path));
  if (!list.is_array())
    return fail(ErrorCode::kMalformed, "the file is no list", path, "give one JSON list of integers");
  std::vector<engine::TokenId> ids;
  for (const Json& item : list.items()) {
    const auto id = item.as_integer();
    if (!id || *id < 0 || *id > std::numeric_limits<engine::TokenId>::max())
      return fail(ErrorCode::kMalformed, "the file holds something else than token ids: " + dump(item), path,
                  "give one JSON list of integers");
    ids.push_back(static_cast<engine::TokenId>(*id));
  }
  return ids;
}

Result<serve::TextTask> text_task(const Flags& flags) {
  constexpr std::int64_t kMostBytes = std::int64_t{4} << 30;
  serve::TextTask task;
  if (flags.ids_file.empty()) {
    task.path = flags.text_file;
    PLIMSOLL_TRY(task.text, read_file(flags.text_file, kMostBytes));
  } else {
    task.path = flags.ids_file;
    PLIMSOLL_TRY(task.ids, read_ids(flags.ids_file));
  }
  task.rule = flags.windows == "llama.cpp" ? serve::WindowRule::kLlamaCpp : serve::WindowRule::kStrided;
  PLIMSOLL_TRY(task.ctx_size, size_flag(flags.engine.max_model_len, "--max-model-len", INT32_MAX));
  PLIMSOLL_TRY(task.stride, size_flag(flags.stride, "--stride", INT32_MAX));
  PLIMSOLL_TRY(task.max_windows, size_flag(flags.max_windows, "--max-windows", INT32_MAX));
  if (flags.wants_kl) {
    PLIMSOLL_TRY(task.reference, variant_of(flags, kReferenceDtype));
  }
  return task;
}

template <class T>
void keep_first_of_each(std::vector<T>& values) {
  std::vector<T> kept;
  for (const T& value : values)
    if (std::ranges::find(kept, value) == kept.end()) kept.push_back(value);
  values = std::move(kept);
}

Result<serve::EvalOptions> options_of(const Flags& flags) {
  serve::EvalOptions options;
  options.model = flags.model;
  options.lock = flags.common.lock;
  PLIMSOLL_TRY(options.variants, variants_of(flags));
  if (has_text(flags)) {
    PLIMSOLL_TRY(options.text, text_task(flags));
  }
  if (flags.wants_passkey) {
    options.passkey = flags.passkey;
    keep_first_of_each(options.passkey->lengths);
    keep_first_of_each(options.passkey->depths);
  }
  return options;
}

int run(Flags& flags) {
  if (const Status sound = check_flags(flags); !sound) return report_error(flags.common, sound.error());
  if (const Status settled = settle_model(flags.model, flags.common); !settled)
    return report_error(flags.common, settled.error());
  auto options = options_of(flags);
  if (!options) return report_error(flags.common, options.error());
  report::ProgressLine line(flags.common.quiet);
  options->on_progress = [&line](std::string_view text) { line.show(text); };
  const auto report = serve::evaluate(*options);
  if (!report) return report_error(flags.common, report.error());
  const Status written = write_output(
      flags.common, flags.common.is_json() ? dump_pretty(serve::to_json(*report)) : serve::to_text(*report));
  if (!written) return report_error(flags.common, written.error());
  return worst_level(report->findings) == FindingLevel::kError ? exit_status(ErrorCode::kNo) : 0;
}

void add_text_flags(CLI::App& verb, Flags& flags) {
  verb.add_option("--perplexity,--text-file", flags.text_file, "text to predict");
  verb.add_option("--token-ids", flags.ids_file, "the text as a JSON list of token ids");
  verb.add_flag("--kl", flags.wants_kl, "also the distance from the float32 run of the same model");
  verb.add_option("--max-model-len,--ctx-size", flags.engine.max_model_len,
                  "tokens of a window (default 512, or the model's context)");
  verb.add_option("--windows", flags.windows,
                  "strided: every token once, as Hugging Face evaluates; llama.cpp: as llama-perplexity")
      ->check(CLI::IsMember({"strided", "llama.cpp"}))
      ->capture_default_str();
  verb.add_option("--stride", flags.stride,
                  "with strided windows: tokens from one to the next (default half of one)");
  verb.add_option("--max-windows", flags.max_windows, "stop after so many (default all)");
}

void add_passkey_flags(CLI::App& verb, Flags& flags) {
  verb.add_flag("--passkey", flags.wants_passkey, "is a number found again in a long filler?");
  verb.add_option("--passkey-lengths", flags.passkey.lengths,
                  "tokens of prompt and answer (default: native and extended context)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 30));
  verb.add_option("--passkey-depths", flags.passkey.depths, "percent of the filler before the key")
      ->delimiter(',')
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  verb.add_option("--passkey-trials", flags.passkey.trials, "keys for each length and depth")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb.add_option("--seed", flags.passkey.seed, "of the keys")->capture_default_str();
}

}  // namespace

Verb add_eval(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = app.add_subcommand("eval", "perplexity, distance from float32, recall over the context");
  flags->verb = verb;
  verb->add_option("MODEL", flags->model, kModelHelp);
  verb->add_option("--dtype", flags->dtypes, "rows of the table (default auto; with --kl float32,auto)")
      ->delimiter(',')
      ->check(CLI::IsMember({"auto", "float32"}));
  verb->add_option("--kv-cache-dtype", flags->cache_dtypes,
                   "further rows, with keys and values as fp8, int8, bfloat16 or float32")
      ->delimiter(',');
  verb->add_option("--quantization", flags->quantizations,
                   "further rows, with weights rounded to int8 or int4 while they are loaded")
      ->delimiter(',')
      ->check(CLI::IsMember({"int8", "int4"}));
  add_text_flags(*verb, *flags);
  add_passkey_flags(*verb, *flags);
  add_size_flags(*verb, flags->engine);
  add_common_flags(*verb, flags->common);
  verb->footer(
      std::string(
          "Examples:\n"
          "  plimsoll eval ./model --perplexity text.txt --kl\n"
          "  plimsoll eval ./model --perplexity text.txt --kl --kv-cache-dtype fp8,int8 --quantization int4\n"
          "  plimsoll eval ./model --perplexity text.txt --windows llama.cpp --ctx-size 512\n"
          "  plimsoll eval ./model --passkey --passkey-lengths 2048,8192 --format json\n"
          "Columns (docs/formulas/eval.md): perplexity, lower is better, and its standard error; bits/byte "
          "compares\n"
          "models of different vocabularies; KL: distance from float32 in nats, 0 is none; same top %: how "
          "often\n"
          "the likeliest token is the same; |d logit|: mean difference of logits; RMS dp %: of the "
          "probability of\n"
          "the text's own token.") +
      kModelEnvironment);
  return make_verb(verb, flags, run);
}

}  // namespace plimsoll::cli
