#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the two corpora of the tokenizer benchmark out of texts that this machine carries.

usage: perf/peers/corpus.py FOLDER [--bytes N]

FOLDER/english.txt: manual pages and the documents of installed packages. FOLDER/mixed.txt: half source code of five
languages, half translated messages of programs in all languages that are installed, with lines of emoji, addresses and
numbers among them. Documents are about 2 KB and separated by NUL bytes; no paragraph comes twice. Normal form C, and
nothing that a tokenizer takes for a special token, so that peers without those steps must give the same ids.
The same machine gives the same corpora; the line that is printed says how varied they are.
"""
import argparse
import gettext
import gzip
import hashlib
import random
import re
import sys
import sysconfig
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

DOCUMENT_BYTES = 2048
SPECIAL = re.compile(r"<\|[^\n]*?\|>|<\uff5c|</?s>|</?(?:think|tool_call|tool_response|unk|pad|mask|bos|eos)>|\[/?INST\]|\x00")
FILES_OF_A_KIND = 12  # of one folder whose names begin alike: generated manuals repeat each other
# Languages by the script they bring along; what is not installed is left out.
LANGUAGES = ("ar", "bg", "bn", "de", "el", "es", "fa", "fr", "gu", "he", "hi", "hu", "ja", "ka", "kn", "ko", "ml", "mr",
             "pa", "pl", "pt_BR", "ru", "sr", "ta", "te", "th", "tr", "uk", "vi", "zh_CN", "zh_TW")
RUN_CHARACTERS = 400  # in one language or from one source, before another takes over


def text_of(path: Path) -> str:
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return raw.decode("utf-8").replace("\r\n", "\n")
    except (OSError, ValueError, EOFError):
        return ""


def files(*patterns: tuple[str, str]) -> list[Path]:
    """The files below each (folder, pattern), some of each kind, in an order that says nothing about where they lie."""
    found = {path for folder, pattern in patterns for path in Path(folder).rglob(pattern) if path.is_file()}
    kinds: Counter[tuple[Path, str]] = Counter()
    kept = []
    for path in sorted(found, key=lambda path: hashlib.sha256(str(path).encode()).digest()):
        kind = (path.parent, re.split(r"[-_.:]", path.name)[0])
        kinds[kind] += 1
        if kinds[kind] <= FILES_OF_A_KIND:
            kept.append(path)
    return kept


def without_roff(text: str) -> str:
    """A manual page's prose: requests, comments and font changes taken out."""
    lines = []
    for line in text.split("\n"):
        line = re.sub(r"\\f(?:\[\w*\]|.)|\\[&%|^/,]|\\(?= )", "", line).replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")
        if request := re.match(r"[.']\s*(\w*)\s*(.*)", line):
            if request[1] in {"PP", "P", "LP", "TP", "IP", "Pp", "sp", "SH", "SS", "Sh", "Ss"}:
                lines.append("")
            line = request[2] if request[1] in {"SH", "SS", "B", "I", "BR", "RB", "IR", "RI", "BI", "Sh", "Ss"} else ""
            if not line:
                continue
        lines.append(line.replace('"', "") if line.isupper() else line)
    return "\n".join(lines)


def prose() -> Iterator[str]:
    """Paragraphs of English."""
    packages = Path(sysconfig.get_path("purelib"))
    for path in files(("/usr/share/man/man1", "*.gz"), ("/usr/share/man/man5", "*.gz"), ("/usr/share/man/man7", "*.gz"),
                      ("/usr/share/man/man2", "*.gz"), ("/usr/share/man/man8", "*.gz"), ("/usr/share/doc", "*.txt*"),
                      ("/usr/share/doc", "*.md*"), ("/usr/share/doc", "README*"), ("/usr/share/doc", "NEWS*"),
                      ("/usr/share/doc", "*.rst*"), ("/usr/share/perl", "*.pod"), (str(packages), "METADATA"),
                      (str(packages), "*.md"), (str(packages), "*.rst")):
        text = text_of(path)
        yield from (without_roff(text) if "/man/" in str(path) else text).split("\n\n")


def code() -> Iterator[str]:
    """Pieces of source code, cut at blank lines."""
    standard = sysconfig.get_path("stdlib")
    for path in files((standard, "*.py"), ("/usr/include", "*.h"), ("/usr/include/c++", "*"), ("/usr/share/nodejs", "*.js"),
                      ("/usr/share/perl", "*.pm"), ("/usr/share/cmake-3.25", "*.cmake"), ("/usr/lib/git-core", "git-*")):
        if path.stat().st_size < 400_000:
            yield from text_of(path).split("\n\n")


def messages() -> Iterator[str]:
    """Translated messages, a few of one language after a few of another."""

    def of_language(name: str) -> Iterator[str]:
        run: list[str] = []
        for path in files((f"/usr/share/locale/{name}", "*.mo")):
            try:
                with path.open("rb") as file:
                    catalogue = gettext.GNUTranslations(file)
            except (OSError, ValueError, UnicodeDecodeError):
                continue
            for key, text in catalogue._catalog.items():
                if isinstance(text, str) and key and len(text) > 30 and text != key:
                    run.append(text)
                if sum(map(len, run)) > RUN_CHARACTERS:
                    yield "\n".join(run)
                    run = []

    for row in zip_longest(*(of_language(name) for name in LANGUAGES)):
        yield from (text for text in row if text)


def odds() -> Iterator[str]:
    """Lines of emoji, addresses and numbers, without end."""
    chance = random.Random(20260115)
    emoji = [chr(code) for start, end in ((0x1F300, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F900, 0x1F9FF), (0x2600, 0x26FF))
             for code in range(start, end)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    while True:
        word = "".join(chance.choices(letters, k=chance.randint(3, 11)))
        yield chance.choice((
            "".join(chance.choices(emoji, k=chance.randint(1, 4))) + " " + word,
            f"https://{word}.example/{chance.randint(1, 10**6)}?q={word[::-1]}&n={chance.random():.4f}",
            f"{chance.randint(0, 10**9):,} / {chance.uniform(-1e4, 1e4):.3e} = 0x{chance.getrandbits(48):x}",
            f"\U0001F469\u200d\U0001F4BB {chance.choice(emoji)}\ufe0f {chance.randint(1900, 2099)}-{chance.randint(1, 12):02}"))


def mixture() -> Iterator[str]:
    """Code and messages by turns of about the same size, now and then a line that is neither."""
    sources, written, strange = [code(), messages()], [0, 0], odds()
    while True:
        lesser = written.index(min(written))
        text = next(sources[lesser], None)
        if text is None:
            return
        written[lesser] += len(text.encode())
        yield text
        if written[0] % 11 == 0:
            yield next(strange)


def documents(paragraphs: Iterator[str], total: int) -> list[str]:
    """Documents of about 2 KB out of paragraphs that were not seen before, `total` bytes in all."""
    seen: set[str] = set()
    made: list[str] = []
    current: list[str] = []
    size = written = 0
    for paragraph in paragraphs:
        text = unicodedata.normalize("NFC", paragraph).strip("\n")
        squeezed = " ".join(text.split())
        if not 20 <= len(squeezed) or len(text) > 4 * DOCUMENT_BYTES or squeezed in seen or SPECIAL.search(text):
            continue
        seen.add(squeezed)
        current.append(text)
        size += len(text.encode()) + 2
        if size >= DOCUMENT_BYTES:
            made.append("\n\n".join(current))
            written += size
            current, size = [], 0
            if written >= total:
                break
    return made


def describe(name: str, made: list[str]) -> str:
    words = [word for text in made for word in text.split()]
    size = sum(len(text.encode()) for text in made)
    beyond_ascii = sum(not character.isascii() for text in made for character in text)
    return (f"{name}: {size / 1e6:.2f} MB, {len(made)} documents, {len(words)} words, {len(set(words))} different "
            f"({len(set(words)) / max(1, len(words)):.3f}), {beyond_ascii / max(1, sum(map(len, made))):.3f} of the "
            "characters beyond ASCII")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bytes", type=int, default=5_000_000)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, paragraphs in (("english", prose()), ("mixed", mixture())):
        made = documents(paragraphs, arguments.bytes)
        (arguments.folder / f"{name}.txt").write_bytes("\0".join(made).encode())
        print(describe(name, made))
        if sum(len(text.encode()) for text in made) < 0.95 * arguments.bytes:
            print(f"{name}: this machine carries too little text for {arguments.bytes} bytes", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
