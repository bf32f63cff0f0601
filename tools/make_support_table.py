#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/facts/support_table.cpp: which engine lists which architecture, since which release.

Facts are read from unpacked source distributions and wheels of the package registry:

    tools/make_support_table.py --vllm DIR --sglang DIR --llama-cpp DIR > src/facts/support_table.cpp

The folders of --vllm and --sglang hold one folder per release, named after it (0.33.0); in each lies the package's
own tree (vllm/..., sglang/...), of older releases at least the registry. --llama-cpp is the source tree. Nothing of
those sources is copied but the names of architectures and where they are listed.
"""
import argparse
import ast
import re
from pathlib import Path


def release_key(name):
    return [int(number) for number in re.findall(r"\d+", name)]


def releases(folder):
    return sorted((path for path in Path(folder).iterdir() if path.is_dir()), key=lambda path: release_key(path.name))


def dictionaries(path):
    """Name -> {key: value node} of every dict that a module assigns at its top level."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Dict):
            found[target.id] = {
                key.value: item for key, item in zip(value.keys, value.values) if isinstance(key, ast.Constant)
            }
    return found


GENERATION = ("_TEXT_GENERATION_MODELS", "_GENERATION_MODELS", "_MULTIMODAL_MODELS", "_CONDITIONAL_GENERATION_MODELS")


def vllm_classes_with_lora(tree):
    """Names of model classes that take LoRA adapters."""
    names = set()
    for path in [*tree.glob("vllm/model_executor/models/**/*.py"), *tree.glob("vllm/models/**/*.py")]:
        for name, bases in re.findall(r"^class (\w+)\(([^)]*)\)", path.read_text(), re.M):
            if "SupportsLoRA" in bases:
                names.add(name)
    return names


def vllm_rows(folder):
    listed, until, multimodal, classes = {}, {}, set(), {}
    folders = releases(folder)
    for release in folders:
        registry = next(release.glob("**/registry.py"))
        tables = dictionaries(registry)
        for table in GENERATION:
            for name, value in tables.get(table, {}).items():
                listed.setdefault(name, release.name)
                if release == folders[-1]:
                    classes[name] = value.elts[1].value if isinstance(value, ast.Tuple) else ""
                    if table in ("_MULTIMODAL_MODELS",):
                        multimodal.add(name)
    newest = folders[-1]
    tables = dictionaries(next(newest.glob("**/registry.py")))
    for name, value in tables.get("_TRANSFORMERS_SUPPORTED_MODELS", {}).items():
        listed.setdefault(name, newest.name)
        classes.setdefault(name, "")
    until = {name: value.value for name, value in tables["_PREVIOUSLY_SUPPORTED_MODELS"].items()}
    lora = vllm_classes_with_lora(newest)
    for name, since in sorted(listed.items()):
        gone = until.get(name, "") if name not in classes else ""
        if name not in classes and not gone:
            continue  # listed once under another meaning; the newest release says nothing of it
        yield name, "kVllm", since, gone, name in multimodal, classes.get(name) in lora


def sglang_rows(folder):
    listed, newest = {}, set()
    folders = releases(folder)
    for release in folders:
        for path in release.glob("sglang/srt/models/**/*.py"):
            match = re.search(r"^EntryClass\s*=\s*(\[[^\]]*\]|\w+)", path.read_text(), re.M)
            for name in re.findall(r"\w+", match.group(1)) if match else []:
                listed.setdefault(name, release.name)
                if release == folders[-1]:
                    newest.add(name)
    for name, since in sorted(listed.items()):
        if name in newest:
            yield name, "kSglang", since, "", False, False


def llama_cpp_rows(folder):
    tables = dictionaries(Path(folder) / "conversion" / "__init__.py")
    # A class that has a projector alone is converted too: its text part by the class of its text_config. What is
    # only an encoder is no model that is served.
    images = {name for name in tables["MMPROJ_MODEL_MAP"] if not name.endswith(("VisionModel", "RADIOModel"))}
    for name in sorted(images | set(tables["TEXT_MODEL_MAP"])):
        yield name, "kLlamaCpp", "", "", name in images, False


def gguf_names(folder):
    """Names of general.architecture; "clip" is a projector, no model of its own."""
    text = (Path(folder) / "gguf-py" / "gguf" / "constants.py").read_text()
    table = re.search(r"^MODEL_ARCH_NAMES.*?^}", text, re.M | re.S).group(0)
    return sorted(set(re.findall(r':\s*"([^"]+)"', table)) - {"clip"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", required=True)
    parser.add_argument("--sglang", required=True)
    parser.add_argument("--llama-cpp", required=True)
    flags = parser.parse_args()
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Generated by tools/make_support_table.py from the engines' own registries; see docs/formats/support.md.")
    print("#include \"facts/support.h\"\n\nnamespace plimsoll::facts {\nnamespace {\n")
    print("using enum ServingEngine;\n")
    print("constexpr Listing kListings[] = {")
    for rows in (vllm_rows(flags.vllm), sglang_rows(flags.sglang), llama_cpp_rows(flags.llama_cpp)):
        for name, engine, since, until, multimodal, lora in rows:
            if not re.fullmatch(r"\w+", name):
                continue
            print(f'    {{"{name}", {engine}, "{since}", "{until}", {str(multimodal).lower()}, {str(lora).lower()}}},')
    print("};\n\nconstexpr std::string_view kGgufArchitectures[] = {")
    for name in gguf_names(flags.llama_cpp):
        print(f'    "{name}",')
    print("};\n\n}  // namespace\n")
    print("std::span<const Listing> all_listings() {\n  return kListings;\n}\n")
    print("std::span<const std::string_view> gguf_architectures() {\n  return kGgufArchitectures;\n}\n")
    print("}  // namespace plimsoll::facts")


if __name__ == "__main__":
    main()
