// SPDX-License-Identifier: Apache-2.0
// Processor configs out of any JSON, asked for images, clips and sounds of usual and of absurd sizes: a count
// or an error, never a crash, and no answer that takes long or much memory.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "model/image_tokens.h"

namespace {

using namespace plimsoll;

void check(const model::ProcessorFiles& files, const Result<model::Expansion>& expansion) {
  constexpr std::size_t kMostTexts = std::size_t{1} << 22;
  if (!expansion) return;
  if (expansion->media_tokens < 0 || expansion->mark_tokens < 0) std::abort();
  if (expansion->texts.size() > kMostTexts) std::abort();
  for (const auto& run : expansion->texts)
    if (run.times < 0 || model::text_tokens_by_rule(files, run.text) < 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = parse_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!json) return 0;
  const model::ProcessorFiles files{(*json)["config"], (*json)["processor"], (*json)["image"],
                                    (*json)["video"]};
  (void)model::processor_rule(files);
  const model::PixelSize own{(*json)["height"].as_integer().value_or(0),
                             (*json)["width"].as_integer().value_or(0)};
  const std::int64_t frames = (*json)["frames"].as_integer().value_or(0);
  const double rate = (*json)["rate"].as_double().value_or(0);
  for (const model::PixelSize size_of :
       {own, model::PixelSize{224, 224}, model::PixelSize{1080, 1920}, model::PixelSize{1, 1},
        model::PixelSize{model::kMaxSide, 1}, model::PixelSize{model::kMaxSide, model::kMaxSide}})
    check(files, model::expand_image(files, size_of));
  for (const model::Clip& clip :
       {model::Clip{own, frames, rate}, model::Clip{{1080, 1920}, 120, 2},
        model::Clip{{1080, 1920}, 4'000, 1e-9}, model::Clip{{1, model::kMaxSide}, 1, 1e300}})
    check(files, model::expand_video(files, clip));
  for (const std::int64_t samples :
       {(*json)["samples"].as_integer().value_or(0), std::int64_t{480'000}, std::int64_t{1}, INT64_MAX})
    check(files, model::expand_audio(files, samples));
  (void)(model::takes_image(files) && model::takes_video(files) && model::takes_audio(files));
  (void)model::sampling_rate(files);
  return 0;
}
