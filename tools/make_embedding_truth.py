#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/embeddings: tiny embedding models with random weights, and what Sentence Transformers makes of
texts with them. Needs sentence-transformers 6.2.0, transformers 5.23.0 and torch; run from the repository.

    python3 tools/make_embedding_truth.py
"""
import json
import pathlib
import shutil
import tempfile

import torch
import transformers
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

ROOT = pathlib.Path(__file__).resolve().parent.parent / "data" / "embeddings"
TEXTS = ["", "a", "the cat sat on the mat", "The Café, naïve & 東京; don't!", "unknowable ∀x words\tgo\u00a0here",
         "one two three four five six seven eight nine ten eleven"]
MODES = ["lasttoken", "cls", "mean", "mean_sqrt_len_tokens", "weightedmean", "max"]
WORDS = ["the", "cat", "sat", "on", "mat", "one", "two", "three", "four", "five", "six", "seven", "un", "##know",
         "##able", "cafe", "naive", "don", "words", "here", "go"]


def byte_tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(alphabet)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "t"), ("a", "t"), ("o", "n")]
    for left, right in merges:
        vocab[left + right] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    end = tokenizer.token_to_id("<|endoftext|>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|endoftext|>", pair="$A <|endoftext|> $B <|endoftext|>", special_tokens=[("<|endoftext|>", end)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<|endoftext|>",
                                                eos_token="<|endoftext|>")


def word_tokenizer(cls, sep, specials):
    letters = "abcdefghijklmnopqrstuvwxyz&;,!'東京"
    tokens = specials + list(letters) + ["##" + c for c in letters[:26]] + WORDS
    tokenizer = Tokenizer(models.WordPiece(vocab={t: i for i, t in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B {sep}",
        special_tokens=[(cls, tokens.index(cls)), (sep, tokens.index(sep))])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=specials[1], unk_token="[UNK]", cls_token=cls, sep_token=sep,
        mask_token=specials[4])


def randomize(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_norm = "norm" in name.lower() and name.endswith("weight")
            parameter.copy_(1 + 0.2 * noise if is_norm else 0.3 * noise)
    return model.eval()


def qwen3():
    tokenizer = byte_tokenizer()
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=256, tie_word_embeddings=False)
    # As published: the class with a head is named, and the file has neither its prefix nor the head.
    return randomize(transformers.Qwen3Model(config), 1), tokenizer, "Qwen3ForCausalLM"


def bert():
    tokenizer = word_tokenizer("[CLS]", "[SEP]", ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"])
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, pad_token_id=1)
    return randomize(transformers.BertModel(config), 2), tokenizer, "BertModel"


def roberta():
    tokenizer = word_tokenizer("<s>", "</s>", ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
        max_position_embeddings=66, type_vocab_size=1, pad_token_id=1, hidden_act="gelu_new")
    return randomize(transformers.RobertaModel(config), 3), tokenizer, "RobertaModel"


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_folder(folder, made, mode, is_normalized, max_seq_length):
    model, tokenizer, architecture = made
    if folder.exists():
        shutil.rmtree(folder)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = [architecture]
    write_json(folder / "config.json", config)
    kinds = ["Transformer", "Pooling"] + ["Normalize"] * is_normalized
    paths = ["", "1_Pooling", "2_Normalize"]
    write_json(folder / "modules.json",
               [{"idx": i, "name": str(i), "path": paths[i], "type": f"sentence_transformers.models.{kind}"}
                for i, kind in enumerate(kinds)])
    write_json(folder / "1_Pooling" / "config.json",
               {"word_embedding_dimension": model.config.hidden_size, "pooling_mode": mode, "include_prompt": True})
    if is_normalized:
        (folder / "2_Normalize").mkdir()
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_seq_length, "do_lower_case": False})


def numbers(vector):
    return [float(f"{float(value):.8g}") for value in vector]


def truth(folder):
    """Of every text its ids and its embedding as the folder says, and pooled otherwise without a norm."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "model"
        shutil.copytree(folder, copy)
        own = SentenceTransformer(str(copy), device="cpu")
        modules = json.loads((copy / "modules.json").read_text())[:2]
        write_json(copy / "modules.json", modules)
        pooling = json.loads((copy / "1_Pooling" / "config.json").read_text())
        others = {}
        for mode in MODES:
            write_json(copy / "1_Pooling" / "config.json", {**pooling, "pooling_mode": mode})
            others[mode] = SentenceTransformer(str(copy), device="cpu")
        for text in TEXTS:
            rows.append({"text": text, "ids": own.tokenizer(text)["input_ids"],
                         "embedding": numbers(own.encode(text)),
                         "pooled": {mode: numbers(model.encode(text)) for mode, model in others.items()}})
    return rows


def main():
    write_folder(ROOT / "qwen3_last", qwen3(), "lasttoken", True, 128)
    write_folder(ROOT / "bert_mean", bert(), "mean", True, 48)
    write_folder(ROOT / "roberta_cls", roberta(), "cls", False, 64)
    for name in ["qwen3_last", "bert_mean", "roberta_cls"]:
        write_json(ROOT / f"{name}.json", truth(ROOT / name))


if __name__ == "__main__":
    main()
