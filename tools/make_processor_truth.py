#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts with transformers' own processors by how many tokens an image, a video or a sound lengthens a prompt.

    make_processor_truth.py CASES.json            writes the rows of each case back into the file
    make_processor_truth.py --check CASES.json    exits 1 when the rows differ from the ones there

CASES.json: [{"name", "config", "processor", "image", "video", "rows": [{"kind", "height", "width", "frames",
"fps", "samples", "tokens", "media"}]}]: the four objects stand for config.json, processor_config.json,
preprocessor_config.json and video_preprocessor_config.json, null where there is no such file. `tokens` is the
length of what replaces the placeholder, `media` how many of them carry an encoder's output; null where the
processor refuses. The tokenizer is made here: every special token is one id and every pre-token of Qwen's
pattern is one, so text between special tokens counts as its pre-tokens. Pixels are never made: tensors live on
torch's meta device. Needs transformers, torch, torchvision and pillow.
"""
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from torchvision.transforms.v2 import functional as vision
from transformers.video_utils import VideoMetadata

WORDS = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,%d}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# What each tokenizer calls its special tokens; the attributes a processor looks for.
NAMES = {
    "image_token": "<image>", "video_token": "<video>", "audio_token": "<audio>", "boi_token": "<boi>",
    "eoi_token": "<eoi>", "boa_token": "<boa>", "eoa_token": "<eoa>", "start_image_token": "<img>",
    "end_image_token": "</img>", "context_image_token": "<ctx>", "vision_bos_token": "<vbos>",
    "vision_eos_token": "<veos>", "audio_bos_token": "<abos>", "audio_eos_token": "<aeos>",
    "img_line_break_token": "<break>",
}
FIXED = [
    "<|image|>", "<|patch|>", "<|image_start|>", "<|image_end|>", "<|tile_x_separator|>", "<|tile_y_separator|>",
    "[IMG]", "[IMG_BREAK]", "[IMG_END]", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>",
    "<|media_begin|>", "<|media_content|>", "<|media_end|>", "<|media_pad|>", "<|kimi_k25_video_placeholder|>",
    "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", "<|img_thumbnail|>", "<|begin_of_image|>",
    "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>", "<|video|>", "<|python_tag|>",
    "]<]image[>[", "]<]video[>[", "]<]start of image[>[", "]<]end of image[>[",
    "<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>", "TILE_GLOBAL",
]
FIXED += [f"<row_{i}_col_{j}>" for i in range(1, 65) for j in range(1, 65)]
FIXED += [f"<|img_row_{i}_col_{j}|>" for i in range(1, 33) for j in range(1, 33)]
FIXED += [f"TILE_{i}" for i in range(1, 65)]
# Kinds whose vocabulary keeps up to three digits together.
THREE_DIGITS = {"Kimi_K25Processor", "Glm4vProcessor", "Glm46VProcessor", "Idefics3Processor"}
# These find their tokens by their own spelling, so the tokenizer must not offer another.
UNNAMED = {"Qwen2VLProcessor": (), "Qwen2_5_VLProcessor": (), "Qwen3VLProcessor": (), "Glm4vProcessor": (),
           "Glm46VProcessor": (), "Kimi_K25Processor": (), "MllamaProcessor": (), "MiniMaxM3VLProcessor": (),
           "Llama4Processor": (), "PixtralProcessor": ()}


def tokenizer_for(kind: str):
    named = {key: text for key, text in NAMES.items() if kind not in UNNAMED}
    special = ["<bos>", "<eos>", "<unk>", "<pad>", *FIXED, *named.values()]
    base = Tokenizer(models.WordLevel({text: i for i, text in enumerate(special)}, unk_token="<unk>"))
    base.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS % (3 if kind in THREE_DIGITS else 1)), "isolated")
    base.add_special_tokens(special)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=base, bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", pad_token="<pad>",
        extra_special_tokens=named)


# These look at values of their tensors, so theirs are one byte that stands for all.
ON_CPU = {"Llama4Processor", "LlavaProcessor"}


def pixels(shape: tuple, processor):
    if type(processor).__name__ in ON_CPU:
        return torch.zeros(1, dtype=torch.uint8).expand(shape)
    return torch.empty(shape, dtype=torch.uint8, device="meta")


def resized(image, size, *_, **__):
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise ValueError("empty image")
    return torch.empty(1, dtype=image.dtype, device=image.device).expand((*image.shape[:-2], height, width))


def make_processor(case: dict):
    name = case["class"]
    with tempfile.TemporaryDirectory() as folder:
        files = {"config.json": case.get("config"), "processor_config.json": case.get("processor"),
                 "preprocessor_config.json": case.get("image"), "video_preprocessor_config.json": case.get("video")}
        for file, value in files.items():
            if value is not None:
                (Path(folder) / file).write_text(json.dumps(value))
        tokenizer = tokenizer_for(name)
        tokenizer.save_pretrained(folder)
        processor = getattr(transformers, name).from_pretrained(folder)
        processor.tokenizer = tokenizer  # a model_type may have made another class of it
        return processor


def media_of(row: dict, processor):
    """The keyword arguments and the placeholder of one input."""
    if row["kind"] == "image":
        token = getattr(processor, "image_token")
        return {"images": [pixels((3, row["height"], row["width"]), processor)]}, token
    if row["kind"] == "video":
        frames = row["frames"]
        clip = pixels((frames, 3, row["height"], row["width"]), processor)
        data = VideoMetadata(total_num_frames=frames, fps=row["fps"], duration=frames / row["fps"],
                             frames_indices=list(range(frames)), height=row["height"], width=row["width"])
        return {"videos": [clip], "videos_kwargs": {"video_metadata": [data]}}, processor.video_token
    return {"audio": [np.zeros(row["samples"], dtype=np.float32)]}, processor.audio_token


class Expanded(Exception):
    """All that is wanted is known; what follows would need pixels, and an id per token."""


def count(processor, row: dict):
    """What replaces the placeholder, as (tokens, tokens that carry an encoder's output)."""
    given, placeholder = media_of(row, processor)
    seen = {}
    for what in ("image", "video", "audio"):
        name = f"replace_{what}_token"
        original = getattr(type(processor), name, None)
        if original is None:
            continue

        def spy(*args, _original=original, _what=what, **kwargs):
            seen[_what] = _original(processor, *args, **kwargs)
            raise Expanded

        setattr(processor, name, spy)
    processor._check_special_mm_tokens = lambda *args, **kwargs: None
    try:
        processor(text=[placeholder], **given)
    except Expanded:
        pass
    except Exception as error:  # its refusals are of many types
        return None, None, f"{type(error).__name__}: {error}"
    text = seen[row["kind"]]
    tokens = media = 0
    for carrier in carriers_of(processor, row["kind"], placeholder):
        runs = re.compile(f"(?:{re.escape(carrier)})+")
        found = text.count(carrier)
        tokens += found - len(runs.findall(text))  # so that each run may stand for itself
        media += found
        text = runs.sub(carrier, text)
    return tokens + len(processor.tokenizer(text, add_special_tokens=False)["input_ids"]), media, None


def carriers_of(processor, kind: str, placeholder: str) -> set:
    """The tokens that carry an encoder's output."""
    name = type(processor).__name__
    if name == "Llama4Processor":
        return {"<|patch|>"}
    if name in ("Gemma3Processor", "Gemma3nProcessor"):
        return {f"<{kind}>"}
    if name == "InternVLProcessor":
        return {"<ctx>"}
    if name == "AyaVisionProcessor":
        return {"<|IMG_PATCH|>"}
    if name in ("Glm4vProcessor", "Glm46VProcessor"):
        return {"<|image|>"}
    return set() if name == "MllamaProcessor" else {placeholder}


def remade(cases: list) -> list:
    for case in cases:
        try:
            processor = make_processor(case)
        except Exception as error:
            raise SystemExit(f"{case['name']}: {error}") from error
        for row in case["rows"]:
            row["tokens"], row["media"], why = count(processor, row)
            if why:
                print(f"{case['name']} {row}: {why}", file=sys.stderr)
    return cases


def written(cases: list) -> str:
    text = json.dumps(cases, indent=1)
    # One row and one small object a line.
    return re.sub(r"\{[^{}]*\}|\[[^\[\]{}]*\]", lambda found: " ".join(found[0].split()), text) + "\n"


def main() -> int:
    vision.resize = resized
    path = Path(sys.argv[-1])
    before = path.read_text()
    after = written(remade(json.loads(before)))
    if "--check" in sys.argv:
        print("the rows are the processors'" if before == after else "the rows differ")
        return before != after
    path.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
