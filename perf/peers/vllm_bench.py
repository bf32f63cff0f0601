#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vllm bench serve` out of an unpacked package of vLLM 0.32, without the rest of vLLM.

usage: vllm_bench.py FOLDER FLAGS...    FOLDER holds `vllm/benchmarks`; FLAGS are those of `vllm bench serve`
The whole client runs as it is: everything below `vllm.benchmarks`. Stubbed is what its modules import from the rest of vllm:
- `utils.argparse_utils.FlexibleArgumentParser` is argparse's own parser,
- `utils.gc_utils.freeze_gc_heap` collects and freezes, `utils.network_utils.join_host_port` joins,
- `utils.import_utils.PlaceholderModule` and every other name are empty objects; none is used in a run on texts,
- `tokenizers.get_tokenizer` gives one that takes a word for a token; it makes and counts prompts, outputs are counted by `usage`,
- `logger.init_logger` gives a logger of Python's.
"""
import argparse
import gc
import importlib.abc
import importlib.machinery
import logging
import sys
import types
from pathlib import Path


class Words:
    """A tokenizer whose tokens are words out of `w0 w1 ...`."""
    vocab_size = 1000
    all_special_ids: list[int] = []
    bos_token_id = eos_token_id = None
    is_fast = True

    def __len__(self):
        return self.vocab_size

    def encode(self, text, **_):
        return [int(word[1:]) if word[1:].isdigit() else hash(word) % self.vocab_size for word in text.split()]

    def __call__(self, text, **_):
        return types.SimpleNamespace(input_ids=self.encode(text))

    def decode(self, ids, **_):
        return " ".join(f"w{i % self.vocab_size}" for i in ids)

    def num_special_tokens_to_add(self, *_):
        return 0

    def get_vocab(self):
        return {f"w{i}": i for i in range(self.vocab_size)}


def freeze_gc_heap():
    gc.collect()
    gc.freeze()


NAMES = {
    "vllm.utils.argparse_utils": {"FlexibleArgumentParser": argparse.ArgumentParser},
    "vllm.utils.gc_utils": {"freeze_gc_heap": freeze_gc_heap},
    "vllm.utils.network_utils": {"join_host_port": lambda host, port: f"{host}:{port}"},
    "vllm.tokenizers": {"get_tokenizer": lambda *_, **__: Words()},
    "vllm.logger": {"init_logger": logging.getLogger},
}


class Empty:
    def __init__(self, *_, **__):
        pass

    def __call__(self, *_, **__):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Empty,), {})


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name != "vllm" and not name.startswith("vllm.") or name.startswith("vllm.benchmarks"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        module.__path__ = [str(self.folder / "vllm")] if module.__name__ == "vllm" else []
        module.__dict__.update(NAMES.get(module.__name__, {}))


def main() -> None:
    sys.meta_path.insert(0, StubFinder(Path(sys.argv[1])))
    from vllm.benchmarks import serve  # noqa: PLC0415 - importable only now
    parser = argparse.ArgumentParser()
    serve.add_cli_args(parser)
    args = parser.parse_args(sys.argv[2:])
    serve.main(args)


if __name__ == "__main__":
    main()
