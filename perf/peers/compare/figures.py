# SPDX-License-Identifier: Apache-2.0
"""The figures of the table, each with what it must reach and what is wanted.

A condition looks at one round after another and is met when it is met by the median of the rounds. Conditions in one inner list are
alternatives ("at least the lesser of"); of the outer list all must hold.
"""
import dataclasses
import statistics

TITLES = {"plimsoll": "plimsoll", "llama": "llama.cpp", "openvino": "OpenVINO"}


@dataclasses.dataclass(frozen=True)
class Against:
    """Ours by theirs, from the same round."""
    engine: str
    factor: float

    def values(self, view):
        theirs = view.column(self.engine)
        return [ours / theirs[number] for number, ours in view.column("plimsoll").items() if number in theirs]

    def holds(self, value, view):
        return value >= self.factor if view.figure.is_speed else value <= self.factor

    def words(self, view):
        return f"{'≥' if view.figure.is_speed else '≤'} {self.factor:g}x {TITLES[self.engine]}"


@dataclasses.dataclass(frozen=True)
class Share:
    """Ours as a part of what the machine could do in that minute: `bandwidth`, or `peak` of multiplications."""
    of: str
    part: float

    def values(self, view):
        return list(view.shares(self.of).values())

    def holds(self, value, view):
        return value >= self.part

    def words(self, view):
        return f"≥ {self.part * 100:g} % of {self.of}"


@dataclasses.dataclass(frozen=True)
class Most:
    limit: float

    def values(self, view):
        return list(view.column("plimsoll").values())

    def holds(self, value, view):
        return value <= self.limit

    def words(self, view):
        return f"≤ {self.limit:g} {view.figure.unit}".strip()


@dataclasses.dataclass(frozen=True)
class Figure:
    """One row. `prompt`: tokens of a prompt, where the share of the multiplication peak is shown."""
    title: str
    part: str
    name: str
    model: str
    unit: str
    must: tuple = ()
    goal: tuple = ()
    is_speed: bool = True
    digits: int = 1
    prompt: int = 0
    shows_bandwidth: bool = False


def decodes():
    floors = {"smollm2-q4_0": (((Against("llama", 1.7),),), ((Against("llama", 2.2),),)), "smollm2-q4_1": ((), ()),
              "smollm2-q8_0": (((Against("llama", 1.5), Share("bandwidth", 0.75)),), ((Against("llama", 2.0), Share("bandwidth", 0.88)),)),
              "smollm2-bf16": (((Against("llama", 1.5), Share("bandwidth", 0.85)),), ((Against("llama", 1.8), Share("bandwidth", 0.93)),))}
    return [Figure("decode, one stream, tok/s", "decode", "decode_tok_s", model, "tok/s", *floor, shows_bandwidth=True)
            for model, floor in floors.items()]


def prefills():
    whole = (((Against("openvino", 1.2),), (Against("llama", 2.3),)), ((Against("openvino", 1.5),),))
    rows = []
    for tokens, share in ((512, 0.75), (2048, 0.72)):
        for model, floor in (("smollm2-q4_0", whole), ("smollm2-q8_0", whole),
                             ("smollm2-bf16", (((Against("llama", 1.5),),), ((Share("peak", share),),)))):
            rows.append(Figure(f"prefill of {tokens:,}, tok/s", "prefill", f"prefill_{tokens}_tok_s", model, "tok/s", *floor, digits=0,
                               prompt=tokens))
    return rows


def many():
    rows = []
    for streams, factor in ((8, 1.6), (16, 1.6), (32, 1.5)):
        for model in ("smollm2-q4_0", "smollm2-q8_0"):
            rows.append(Figure(f"total at {streams} streams, 128 in, 64 out, tok/s", "totals", f"total_{streams}_tok_s", model, "tok/s",
                               ((Against("openvino", factor),), (Against("llama", 2.2),)),
                               ((Against("openvino", 2.0),), (Against("llama", 2.8),)), digits=0))
    return [*rows, Figure("32 streams decoding, prompts cached, tok/s", "cached", "cached_32_tok_s", "smollm2-q4_0", "tok/s",
                          ((Against("openvino", 2.5),),), ((Against("openvino", 3.5),),), digits=0)]


def times():
    rows = []
    for model in ("smollm2-q4_0", "smollm2-q8_0", "smollm2-bf16"):
        rows.append(Figure("TTFT, 1,024 tokens cached, 16 new, ms", "prefix", "prefix_ttft_ms", model, "ms", ((Against("openvino", 0.65),),),
                           ((Against("openvino", 0.5),),), is_speed=False))
    for model, goal in (("smollm2-q4_0", 0.4), ("smollm2-q8_0", 0.4), ("smollm2-bf16", 0.5)):
        rows.append(Figure("ms per token at 4k context", "context", "context_4k_ms", model, "ms", ((Against("llama", 0.6),),),
                           ((Against("llama", goal),),), is_speed=False))
    for model in ("smollm2-q4_0", "smollm2-q8_0", "smollm2-bf16"):
        rows.append(Figure("start to first token, second start, s", "start", "start_s", model, "s", ((Most(0.3),),), ((Most(0.15),),),
                           is_speed=False, digits=2))
    return rows


def rest():
    rows = []
    for model in ("smollm2-q4_0", "smollm2-q8_0"):
        rows.append(Figure("anonymous memory behind 32 streams, MB", "memory", "anonymous_mb", model, "MB", is_speed=False, digits=0))
        rows.append(Figure("anonymous + packed - weights - KV in use, MB", "memory", "over_mb", model, "MB", ((Most(100),),), ((Most(60),),),
                           is_speed=False, digits=0))
    rows.append(Figure("a step beside a busy process on one core, times alone", "neighbour", "neighbour_times", "smollm2-q4_0", "",
                       ((Most(2.2),),), ((Most(1.6),),), is_speed=False, digits=2))
    for model in ("qwen3-0.6b-q4_k_m", "qwen3-0.6b-q8_0", "qwen3-0.6b-bf16", "moe-q8_0"):
        rows.append(Figure("decode, one stream, tok/s", "shapes", "decode_tok_s", model, "tok/s", shows_bandwidth="moe" not in model))
        rows.append(Figure("prefill of 512, tok/s", "shapes", "prefill_512_tok_s", model, "tok/s", digits=0, prompt=512))
    for model in ("smollm2-q4_0", "smollm2-q8_0"):
        rows.append(Figure("likeliest token of `auto` is float32's, %", "quality", "same_top_percent", model, "%", digits=2))
        rows.append(Figure("KL of `auto` from float32, mean, 1/1000 nat", "quality", "kl_mean_mnats", model, "", digits=2, is_speed=False))
    return rows


FIGURES = [*decodes(), *prefills(), *many(), *times(), *rest()]


def verdict(groups, view, was_measured):
    """What is asked for, and whether it is met by the turns that may be judged, which are those of `view`."""
    if not groups:
        return ""
    answers = []
    for group in groups:
        judged = [(condition, condition.values(view)) for condition in group]
        known = [condition.holds(statistics.median(values), view) for condition, values in judged if values]
        answers.append(any(known) if known else None)
    text = " and ".join(" or ".join(condition.words(view) for condition in group) for group in groups)
    if False in answers:
        return f"{text}: **missed**"
    unknown = "not judged, others were busy" if was_measured and not view.rows else "not measured"
    return f"{text}: {unknown if None in answers else 'met'}"
