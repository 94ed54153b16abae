# SPDX-License-Identifier: MIT
"""Compares heed-embed with the reference tokenizer and a reference runtime; prints TAP.

usage: reference.py HEED_EMBED HEED_INFO MODEL_DIR WORK_DIR
"""
import json
import os
import random
import subprocess
import sys

try:
    import numpy as np
    from tokenizers import Tokenizer
except ImportError as error:
    sys.exit(f"reference.py: {error}")

import bert
import sentences

MAX_TOKENS = 256
MIN_COSINE = 0.999999
MAX_DIFFERENCE = 2e-5
FLOAT64_EVERY = 8  # float64 is slow, so it judges every 8th line


class Tap:
    """Test Anything Protocol: numbered results, the plan at the end."""

    def __init__(self):
        self.count = self.failed = 0

    def result(self, passed, name, skip=None):
        self.count += 1
        self.failed += not passed
        print(f"{'ok' if passed else 'not ok'} {self.count} - {name}" + (f" # SKIP {skip}" if skip else ""), flush=True)

    def note(self, text):
        print(f"# {text}", flush=True)

    def finish(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


class Embedder:
    """Runs heed-embed on files of lines."""

    def __init__(self, program, model, work):
        self.program, self.model, self.work = program, model, work

    def write(self, name, lines):
        path = os.path.join(self.work, name)
        with open(path, "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
        return path

    def run(self, *arguments):
        command = [self.program, "--model", self.model, "--quiet", "--max-tokens", str(MAX_TOKENS), *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout

    def ids(self, path):
        return [json.loads(line) for line in self.run("--tokens", path).splitlines()]

    def embeddings(self, path, *arguments):
        output = os.path.join(self.work, "embeddings.npy")
        self.run("--format", "npy", "--output", output, *arguments, path)
        return np.load(output)


def load_tokenizer(model):
    tokenizer = Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=MAX_TOKENS)
    return tokenizer


def reference_ids(tokenizer, lines):
    return [encoding.ids for encoding in tokenizer.encode_batch([sentences.text_of(line) for line in lines])]


def compare_ids(tap, name, lines, found, expected):
    wrong = [i for i in range(len(expected)) if i >= len(found) or found[i] != expected[i]]
    equal = len(expected) - len(wrong)
    tap.result(not wrong and len(found) == len(expected), f"{name}: {equal} of {len(expected)} equal")
    for i in wrong[:10]:
        tap.note(f"line {i + 1} {lines[i][:60]!r}: {found[i][:12] if i < len(found) else None}, not {expected[i][:12]}")


def every_code_point():
    """Each assigned plane's code points between letters, where no line feed would end the line."""
    points = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000)]
    return [f"a{chr(point)}b".encode() for point in points if point != 0x0A]


def compare_tokens(tap, embedder, model, lines, path):
    tokenizer = load_tokenizer(model)
    expected = reference_ids(tokenizer, lines)
    compare_ids(tap, "token ids", lines, embedder.ids(path), expected)
    points = every_code_point()
    compare_ids(tap, "token ids around every code point", points,
                embedder.ids(embedder.write("points.txt", points)), reference_ids(tokenizer, points))
    return expected


def compare_embeddings(tap, name, found, expected):
    found = found.astype(np.float64)
    cosines = (found * expected).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    difference = np.abs(found - expected).max()
    count = len(expected)
    tap.result(bool((cosines >= MIN_COSINE).all()), f"cosine with {name}: least {cosines.min():.9f} of {count} lines")
    tap.result(bool(difference <= MAX_DIFFERENCE), f"difference from {name}: largest {difference:.3g} of {count} lines")


def compare_runtimes(tap, model, ids, found):
    weights = bert.Weights(model)
    runtime = bert.OnnxBert(weights)
    expected = np.array([bert.sentence_embedding(runtime.states(line)) for line in ids])
    compare_embeddings(tap, "ONNX Runtime", found, expected)
    exact = bert.Float64Bert(weights)
    expected = np.array([bert.sentence_embedding(exact.states(line)) for line in ids[::FLOAT64_EVERY]])
    compare_embeddings(tap, "float64", found[::FLOAT64_EVERY], expected)


def compare_bytes(tap, name, found, expected):
    equal = found.shape == expected.shape and found.tobytes() == expected.tobytes()
    tap.result(equal, f"same bytes {name}")


def compare_levels(tap, embedder, info, path):
    levels = {level["name"]: level for level in json.loads(subprocess.check_output([info, "--json"]))["levels"]}
    base = None
    for name in ("avx2", "avx512", "neon"):
        level = levels.get(name, {"supported": False, "reason": "this library has no such level"})
        if not level["supported"]:
            tap.result(True, f"same bytes with --isa {name}", skip=level["reason"])
            continue
        found = embedder.embeddings(path, "--isa", name)
        if base is None:
            base = name, found
            tap.note(f"--isa {name} is what the other levels are compared with")
        else:
            compare_bytes(tap, f"with --isa {name} as with {base[0]}", found, base[1])


def compare_conditions(tap, embedder, info, lines, path, found):
    one = embedder.embeddings(path, "--threads", "1")
    compare_bytes(tap, "with 1 thread", one, found)
    compare_bytes(tap, "with 2 threads as with 1", embedder.embeddings(path, "--threads", "2"), one)
    compare_bytes(tap, "with one line in a batch", embedder.embeddings(path, "--batch-tokens", "1"), found)
    compare_bytes(tap, "with 100000 tokens in a batch", embedder.embeddings(path, "--batch-tokens", "100000"), found)
    order = list(range(len(lines)))
    random.Random(sentences.SEED).shuffle(order)
    shuffled = embedder.embeddings(embedder.write("shuffled.txt", [lines[i] for i in order]))
    compare_bytes(tap, "in any order of the lines", shuffled, found[order])
    compare_levels(tap, embedder, info, path)


def main(program, info, model, work):
    tap = Tap()
    embedder = Embedder(program, model, work)
    lines = sentences.lines()
    path = embedder.write("sentences.txt", lines)
    ids = compare_tokens(tap, embedder, model, lines, path)
    found = embedder.embeddings(path)
    tap.result(found.shape[0] == len(lines), f"{found.shape[1]} numbers for each of {len(lines)} lines")
    compare_runtimes(tap, model, ids, found)
    compare_conditions(tap, embedder, info, lines, path, found)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
