#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: tools/make_reference_unicode.py > src/text/tokenizer/reference_unicode_table.cpp

Asks the Python package `tokenizers` (0.23.3), one character at a time, what it takes for punctuation, a mark, a control
character. Its Rust crates follow Unicode 8 to 9 there, so no current Unicode table says it. utf8proc 2.8 (through
ctypes) is what normal forms and lower case are compared with: only characters where the two differ are listed."""
import ctypes
import ctypes.util
import sys

from tokenizers import normalizers, pre_tokenizers

CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
LINE = 110
utf8proc = ctypes.CDLL(ctypes.util.find_library("utf8proc"))
utf8proc.utf8proc_NFC.restype = utf8proc.utf8proc_NFD.restype = ctypes.c_void_p
utf8proc.utf8proc_NFKC.restype = utf8proc.utf8proc_NFKD.restype = ctypes.c_void_p


def form(name, text):
    made = getattr(utf8proc, "utf8proc_" + name)(ctypes.c_char_p(text.encode()))
    return ctypes.string_at(made).decode()  # not freed: the program ends soon


def bert(**flags):
    none = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**none, **flags}).normalize_str


def vanishes(normalize):
    return [c for c in CHARACTERS if normalize("a" + chr(c) + "b") == "ab"]


def is_punctuation(character):
    pieces = pre_tokenizers.BertPreTokenizer().pre_tokenize_str("a" + chr(character) + "b")
    return len(pieces) == 3


def differs(name, around):
    reference = getattr(normalizers, name)().normalize_str
    return [c for c in CHARACTERS if c and reference(around.format(chr(c))) != form(name, around.format(chr(c)))]


def ranges(characters):
    out = []
    for c in sorted(set(characters)):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def table(name, items):
    print(f"constexpr {name[0]} {name[1]}Rows[] = {{")
    line = "   "
    for item in items:
        text = " {" + ", ".join(f"0x{number:X}" for number in item) + "},"
        if len(line) + len(text) > LINE:
            print(line)
            line = "   "
        line += text
    print(line.rstrip(",") + "};")
    print(f"constinit const std::span<const {name[0]}> {name[1]}({name[1]}Rows);\n")


def main():
    # A mark that the reference does not know stands between a letter and its accents and keeps them apart.
    strangers = differs("NFC", "a{}\u0301\u0323") + differs("NFD", "a{}\u0301\u0323")
    # Parts of the one canonical composition that is newer than the reference.
    strangers += [0x11930, 0x11935, 0x11938]
    compat = [c for c in differs("NFKC", "{}") if c not in strangers]
    lower = normalizers.Lowercase().normalize_str
    lowered = [(c, ord(lower(chr(c)))) for c in CHARACTERS
               if len(lower(chr(c))) == 1 and ord(lower(chr(c))) != utf8proc.utf8proc_tolower(c)]
    print("// SPDX-License-Identifier: Apache-2.0\n"
          "// Written by tools/make_reference_unicode.py: edit that.\n"
          '#include "text/tokenizer/reference_unicode_table.h"\n\nnamespace plimsoll::text {\n')
    # NUL and U+FFFD are taken out by name, not as control characters; the effect is one.
    table(("CharacterRange", "kBertRemoved"), ranges(vanishes(bert(clean_text=True))))
    table(("CharacterRange", "kBertNonspacingMarks"), ranges(vanishes(bert(strip_accents=True))))
    table(("CharacterRange", "kBertPunctuation"), ranges(filter(is_punctuation, CHARACTERS)))
    table(("CharacterRange", "kCombiningMarks"), ranges(vanishes(normalizers.StripAccents().normalize_str)))
    table(("CharacterRange", "kNoNormalForms"), ranges(strangers))
    table(("CharacterRange", "kNoCompatibilityForms"), ranges(compat))
    table(("CharacterPair", "kNewerLowerCase"), lowered)
    print("}  // namespace plimsoll::text")


if __name__ == "__main__":
    sys.exit(main())
