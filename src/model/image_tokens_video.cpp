// SPDX-License-Identifier: Apache-2.0
// Clips as grids: which frames are taken, how several of them become one row of patches, and the times that
// are written between them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/image_tokens_resize.h"
#include "model/image_tokens_rules.h"

namespace plimsoll::model {
namespace {

std::int64_t count_of(const Frames& frames) {
  return static_cast<std::int64_t>(frames.size());
}

/// What the processors of Qwen's line read for clips.
struct ClipFigures {
  std::int64_t patch, merge, time;
  Sides size;
  bool resizes, caps_pixels;
  std::int64_t max_video_tokens;
};

struct ClipDefaults {
  std::int64_t patch;
  Sides size;
  std::int64_t max_video_tokens = 1;
};

ClipFigures read_clip(KeyReader& keys, const ClipDefaults& defaults) {
  return {keys.integer("patch_size", 1, kMaxPatch, defaults.patch),
          keys.integer("merge_size", 1, kMaxMerge, 2),
          keys.integer("temporal_patch_size", 1, kMaxMerge, 2),
          read_sides(keys, "size", defaults.size, true),
          keys.flag("do_resize", true),
          keys.flag("cap_pixels_per_frame", false),
          keys.integer("max_video_tokens", 1, kMaxPerImage, defaults.max_video_tokens)};
}

/// Frames merged in time, and the tokens of each such group.
struct ClipGrid {
  std::int64_t groups = 0, tokens_per_group = 0;
  std::int64_t tokens() const { return times(groups, tokens_per_group); }
};

Result<ClipGrid> grid_of(const ClipFigures& clip, PixelSize size, std::int64_t frames) {
  const std::int64_t factor = clip.patch * clip.merge;
  if (size.height % factor != 0 || size.width % factor != 0)
    return refuse(fmt::format("with do_resize false, sides must be multiples of {}", factor));
  return ClipGrid{divided_up(frames, clip.time),
                  times(size.height / clip.patch, size.width / clip.patch) / (clip.merge * clip.merge)};
}

Result<PixelBudget> budget_of(const ClipFigures& clip) {
  if (!clip.size.shortest || !clip.size.longest)
    return refuse("the processor's size needs shortest_edge and longest_edge, in pixels");
  return PixelBudget{clip.patch * clip.merge, *clip.size.shortest, *clip.size.longest};
}

std::int64_t a_little_over(std::int64_t pixels) {
  return cut(real(pixels) * 1.05);
}

// Qwen2-VL: `num_frames`, or `fps` within min_frames and max_frames, in whole groups; none by default.
Result<Frames> sample_qwen2(Processor& p, const Clip& clip, std::int64_t time) {
  if (!p.video.flag("do_sample_frames", false)) return all_frames(clip.frames);
  const std::int64_t least = p.video.integer("min_frames", 1, kMaxFrames, 4);
  const std::int64_t most = p.video.integer("max_frames", 1, kMaxFrames, 768);
  const std::int64_t fixed = p.video.integer("num_frames", 1, kMaxFrames, kMaxFrames);
  const double rate = p.video.positive("fps", 1);
  PLIMSOLL_TRY_VOID(p.status());
  const bool has_fixed = p.video.has("num_frames");
  if (has_fixed == p.video.has("fps")) return refuse("sampling needs either num_frames or fps");
  std::int64_t taken = 0;
  if (has_fixed) {
    taken = round_half_even(real(fixed) / real(time)) * time;
  } else {
    const double cap = real(std::min(most, clip.frames) / time * time);
    double wanted = real(clip.frames) / clip.frames_per_second * rate;
    wanted = std::min({std::max(wanted, real(least)), cap, real(clip.frames)});
    taken = cut(std::floor(wanted / real(time))) * time;
  }
  if (taken < 1 || taken > clip.frames)
    return refuse(fmt::format("{} frames of {} would be taken", taken, clip.frames));
  const double step = real(clip.frames) / real(taken);
  Frames frames(static_cast<std::size_t>(cut(std::ceil(real(clip.frames) / step))));
  for (std::size_t at = 0; at < frames.size(); ++at) frames[at] = cut(static_cast<double>(at) * step);
  return frames;
}

Result<Expansion> qwen2_clip(Processor& p, const Clip& clip, std::int64_t patch,
                             const std::optional<Sides>& forced_size) {
  ClipFigures figures =
      read_clip(p.video, {patch, Sides::edges(128 * 28 * 28, 28 * 28 * 768), /*max_video_tokens=*/128'000});
  if (p.video.has("min_pixels")) figures.size.shortest = p.video.integer("min_pixels", 1, kMaxPixels);
  if (p.video.has("max_pixels")) figures.size.longest = p.video.integer("max_pixels", 1, kMaxPixels);
  if (forced_size) figures.size = *forced_size;
  PLIMSOLL_TRY_VOID(p.status());
  PLIMSOLL_TRY(const Frames frames, sample_qwen2(p, clip, figures.time));
  PixelSize size = clip.size;
  if (figures.resizes) {
    PLIMSOLL_TRY(PixelBudget budget, budget_of(figures));
    if (figures.caps_pixels) {
      const double total = real(figures.max_video_tokens * budget.factor * budget.factor) * 0.9;
      budget.max_pixels =
          std::max(std::min(budget.max_pixels, times(cut(total), figures.time) / count_of(frames)),
                   a_little_over(budget.min_pixels));
    }
    PLIMSOLL_TRY(size, fit_pixels(size, budget));
  }
  PLIMSOLL_TRY(const ClipGrid grid, grid_of(figures, size, count_of(frames)));
  return Expansion{grid.tokens(), 0, {}};
}

// Qwen3-VL: `num_frames` or `fps`, from the first frame to the last.
Result<Frames> sample_qwen3(Processor& p, const Clip& clip) {
  if (!p.video.flag("do_sample_frames", true)) return all_frames(clip.frames);
  const std::int64_t least = p.video.integer("min_frames", 1, kMaxFrames, 4);
  const std::int64_t most = p.video.integer("max_frames", 1, kMaxFrames, 768);
  std::int64_t taken = p.video.integer("num_frames", 1, kMaxFrames, 1);
  const double rate = p.video.positive("fps", 2);
  PLIMSOLL_TRY_VOID(p.status());
  // An explicit null switches the rate off, so that the frames alone decide.
  const bool has_rate = !p.video.contains("fps") || p.video.has("fps");
  if (p.video.has("num_frames") && has_rate) return refuse("sampling takes num_frames or fps, not both");
  if (!p.video.has("num_frames")) {
    taken = std::min(std::max(clip.frames, least), most);
    if (has_rate)
      taken = std::min(
          {std::max(cut(real(clip.frames) / clip.frames_per_second * rate), least), most, clip.frames});
  }
  Frames frames;
  for (const double place : spread(0, real(clip.frames - 1), taken)) frames.push_back(round_half_even(place));
  return frames;
}

// GLM-4.1V: `fps` up to max_duration, in pairs.
Frames sample_glm4v(const Clip& clip, double rate, double max_duration) {
  const std::int64_t last = clip.frames - 1;
  const double duration = real(clip.frames) / clip.frames_per_second;
  Frames frames;
  const auto take = [&](double place) {
    const std::int64_t frame = std::min(last, cut(std::ceil(place)));
    if (frames.empty() || frames.back() != frame) frames.push_back(frame);
  };
  if (duration <= max_duration) {
    const std::int64_t taken = std::max<std::int64_t>(cut(std::floor(duration * rate)), 1);
    if (rate >= clip.frames_per_second) {  // steps of at most one frame, which pass none by
      const double end = std::ceil(real(taken - 1) * clip.frames_per_second / rate);
      frames = all_frames(std::min(last, cut(end)) + 1);
    }
    for (std::int64_t at = 0; rate < clip.frames_per_second && at < taken; ++at)
      take(real(at) * clip.frames_per_second / rate);
  } else if (const std::int64_t taken = cut(max_duration * rate); taken >= clip.frames) {
    frames = all_frames(clip.frames);
  } else {
    for (const double second : spread(0, duration, taken)) take(second * clip.frames_per_second);
  }
  if (frames.size() % 2 != 0) frames.push_back(frames.back());
  return frames;
}

// GLM-4.6V: three, one or half a group a second, by the clip's length; 640 frames at most, in pairs.
Frames sample_glm46v(const Clip& clip, std::int64_t time) {
  constexpr double kLongest = 2'400;
  constexpr std::int64_t kMost = 640;
  const double duration = real(clip.frames) / clip.frames_per_second, seen = std::min(duration, kLongest);
  const double rate = seen <= 30 ? 3 : seen <= 300 ? 1 : 0.5;
  const std::int64_t wanted = std::min(cut(seen * rate * real(time)), kMost);
  const double frame_seconds = 1 / clip.frames_per_second, step = 1 / (real(time) * rate);
  Frames frames;
  double next = 0;
  for (std::int64_t frame = 0; clip.frames >= wanted && frame < clip.frames; ++frame) {
    if (real(frame) * frame_seconds < next) continue;
    next += step;
    frames.push_back(frame);
    if (next >= std::floor(duration)) break;
  }
  const auto spread_over = [&](std::int64_t first, std::int64_t last) {
    frames.clear();
    for (const double place : spread(real(first), real(last), wanted)) frames.push_back(cut(place));
  };
  const std::int64_t found = count_of(frames);
  if (found < wanted && found > 0)
    spread_over(frames.front(), frames.back());
  else if (found != wanted)
    spread_over(0, clip.frames - 1);
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  if (frames.size() % 2 != 0) frames.push_back(frames.back());
  return frames;
}

template <class Sample, class Write>
Result<Expansion> glm_clip(Processor& p, const Clip& clip, Sample sample, Write write_time) {
  const ClipFigures figures = read_clip(p.video, {14, Sides::edges(112 * 112, 28 * 28 * 2 * 30000)});
  const bool samples = p.video.flag("do_sample_frames", true);
  PLIMSOLL_TRY_VOID(p.status());
  const Frames frames = samples ? sample(figures.time) : all_frames(clip.frames);
  if (frames.empty()) return refuse("no frame would be taken");
  PixelSize size = clip.size;
  if (figures.resizes) {
    PLIMSOLL_TRY(const PixelBudget budget, budget_of(figures));
    PLIMSOLL_TRY(size, fit_clip(size, count_of(frames), figures.time, budget));
  }
  PLIMSOLL_TRY(const ClipGrid grid, grid_of(figures, size, count_of(frames)));
  Expansion expansion{grid.tokens(), 2 * grid.groups, {}};
  // A group is named after every second frame, however many it holds.
  for (std::int64_t group = 0; group < grid.groups; ++group) {
    const std::size_t at = std::min(static_cast<std::size_t>(2 * group), (frames.size() - 1) / 2 * 2);
    expansion.texts.push_back({write_time(real(frames[at]) / clip.frames_per_second)});
  }
  return expansion;
}

}  // namespace

Frames all_frames(std::int64_t frames) {
  Frames all(static_cast<std::size_t>(frames));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<double> spread(double first, double last, std::int64_t count) {
  std::vector<double> places;
  const double step = count > 1 ? (last - first) / real(count - 1) : 0;
  for (std::int64_t at = 0; at < count; ++at) places.push_back(first + real(at) * step);
  if (count > 1) places.back() = last;
  return places;
}

Result<Frames> sample_evenly(Processor& p, const Clip& clip, bool does_by_default) {
  const bool samples = p.video.flag("do_sample_frames", does_by_default);
  const std::int64_t fixed = p.video.integer("num_frames", 1, kMaxFrames, p.default_num_frames.value_or(1));
  const double rate = p.video.positive("fps", p.default_fps.value_or(1));
  PLIMSOLL_TRY_VOID(p.status());
  if (!samples) return all_frames(clip.frames);
  const bool has_fixed =
      p.video.has("num_frames") || (p.default_num_frames && !p.video.contains("num_frames"));
  const bool has_rate = p.video.has("fps") || (p.default_fps && !p.video.contains("fps"));
  if (has_fixed && has_rate) return refuse("sampling takes num_frames or fps, not both");
  if (!has_fixed && !has_rate) return all_frames(clip.frames);
  const std::int64_t taken =
      has_fixed ? fixed : std::max<std::int64_t>(1, cut(real(clip.frames) / clip.frames_per_second * rate));
  if (taken > clip.frames) return refuse(fmt::format("{} frames of {} would be taken", taken, clip.frames));
  Frames frames;
  for (std::int64_t at = 0; at < taken; ++at) frames.push_back(at * clip.frames / taken);
  return frames;
}

Result<Expansion> qwen2_vl_video(Processor& p, const Clip& clip) {
  return qwen2_clip(p, clip, 14, std::nullopt);
}

// The processors of the omni models hand their own size to the video processor, whatever its file says.
Result<Expansion> qwen2_omni_video(Processor& p, const Clip& clip) {
  return qwen2_clip(p, clip, 14, Sides::edges(128 * 28 * 28, 768 * 28 * 28));
}

Result<Expansion> qwen3_omni_video(Processor& p, const Clip& clip) {
  return qwen2_clip(p, clip, 14, Sides::edges(128 * 32 * 32, 768 * 32 * 32));
}

Result<Expansion> qwen3_vl_video(Processor& p, const Clip& clip) {
  const ClipFigures figures =
      read_clip(p.video, {16, Sides::edges(128 * 32 * 32, 32 * 32 * 768), /*max_video_tokens=*/768});
  PLIMSOLL_TRY_VOID(p.status());
  PLIMSOLL_TRY(Frames frames, sample_qwen3(p, clip));
  const std::int64_t taken = count_of(frames);
  PixelSize size = clip.size;
  if (figures.resizes) {
    PLIMSOLL_TRY(PixelBudget budget, budget_of(figures));
    if (figures.caps_pixels) {
      const std::int64_t share =
          std::min(figures.max_video_tokens * budget.factor * budget.factor, budget.max_pixels / taken);
      budget.max_pixels = times(std::max(share, a_little_over(budget.min_pixels)), taken);
    }
    PLIMSOLL_TRY(size, fit_clip(size, taken, figures.time, budget));
  }
  PLIMSOLL_TRY(const ClipGrid grid, grid_of(figures, size, taken));
  while (count_of(frames) % figures.time != 0) frames.push_back(frames.back());
  Expansion expansion{grid.tokens(), 2 * grid.groups, {}};
  for (std::size_t at = 0; at < frames.size(); at += static_cast<std::size_t>(figures.time)) {
    const double first = real(frames[at]) / clip.frames_per_second;
    const double last =
        real(frames[at + static_cast<std::size_t>(figures.time) - 1]) / clip.frames_per_second;
    expansion.texts.push_back({fmt::format("<{:.1f} seconds>", (first + last) / 2)});
  }
  return expansion;
}

Result<Expansion> glm4v_video(Processor& p, const Clip& clip) {
  const double rate = p.video.positive("fps", 2), max_duration = p.video.positive("max_duration", 300);
  return glm_clip(
      p, clip, [&](std::int64_t) { return sample_glm4v(clip, rate, max_duration); },
      [](double seconds) { return fmt::format("{}", cut(seconds)); });
}

Result<Expansion> glm46v_video(Processor& p, const Clip& clip) {
  return glm_clip(
      p, clip, [&](std::int64_t time) { return sample_glm46v(clip, time); },
      [](double seconds) { return fmt::format("{:.1f} seconds", seconds); });
}

Result<Expansion> minimax_m3_video(Processor& p, const Clip& clip) {
  const ClipFigures figures = read_clip(p.video, {14, Sides::square(672)});
  PLIMSOLL_TRY_VOID(p.status());
  PLIMSOLL_TRY(const Frames frames, sample_evenly(p, clip, false));
  // The processor switches resizing off: its callers are to hand in frames of a fitting size.
  PLIMSOLL_TRY(const ClipGrid grid, grid_of(figures, clip.size, count_of(frames)));
  Expansion expansion{grid.tokens(), 2 * grid.groups, {}};
  for (std::int64_t group = 0; group < grid.groups; ++group) {
    const std::size_t at = std::min(static_cast<std::size_t>(group * figures.time), frames.size() - 1);
    expansion.texts.push_back(
        {fmt::format("]<]{:.1f} seconds[>[", real(frames[at]) / clip.frames_per_second)});
  }
  return expansion;
}

}  // namespace plimsoll::model
