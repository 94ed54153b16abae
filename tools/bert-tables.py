#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes bert_tables.h: which code points the BERT tokenizer strips, removes and splits at.

The reference tokenizer's character classes are those of Unicode 8 and stay so, whatever Unicode
library is installed; so they are asked from it, code point by code point.
It needs the packages of tests/reference/requirements.txt.  example: tools/bert-tables.py > tools/bert_tables.h
"""
import argparse
import sys

argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
# After the arguments, so that --help needs no packages.
try:
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
except ImportError as error:
    sys.exit(f"bert-tables.py: {error}; see --help")

PER_LINE = 6
OFF = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}


def ranges(is_member):
    """The maximal ranges of code points, surrogates aside, for which is_member("a<c>b") holds."""
    found = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or not is_member("a" + chr(code) + "b"):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def print_table(name, why, pairs):
    print(f"\n/* {why} */")
    print(f"static const struct code_range {name}[] = {{")
    for start in range(0, len(pairs), PER_LINE):
        print("    " + " ".join(f"{{0x{lo:04X}, 0x{hi:04X}}}," for lo, hi in pairs[start : start + PER_LINE]))
    print("};")


def main():
    accents = BertNormalizer(**{**OFF, "strip_accents": True})
    clean = BertNormalizer(**{**OFF, "clean_text": True})
    split = BertPreTokenizer()
    print("/* SPDX-License-Identifier: MIT")
    print(" * Character classes of the BERT tokenizer. Written by bert-tables.py. */")
    print("/* clang-format off */")
    print_table("stripped", "Nonspacing marks, dropped with the accents.",
                ranges(lambda s: accents.normalize_str(s) == "ab"))
    print_table("removed", "Controls, formats, private use, NUL and U+FFFD, dropped by cleaning.",
                ranges(lambda s: clean.normalize_str(s) == "ab"))
    print_table("punctuation", "Characters that are words by themselves.",
                ranges(lambda s: len(split.pre_tokenize_str(s)) == 3))
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
