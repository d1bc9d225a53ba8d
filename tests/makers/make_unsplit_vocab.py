"""Writes fixtures/unsplit.gguf: a byte-level vocabulary learned from texts that no pre-tokenizer had split.

    python tests/makers/make_unsplit_vocab.py [--out PATH]

Merges of a real vocabulary stay within the words of its own pre-tokenizer, so under another one much of the
splitting does not show: GPT-2's has no merge of "." and a line break, and gives the same ids wherever the
words end between them. Here merges go across everything that the fixture texts have, and a word that ends
elsewhere gives other ids. The same texts always give the same file.

But: new fixture texts may call for a new file, and then for new recorded answers.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fixture_texts import texts
from gguf import TokenType
from loading_rules import byte_alphabet
from make_raw_vocab import learn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from reference import ROOT, write_metadata

MERGES = 4000
LONGEST = 600  # bytes of a text to learn from: the runs beyond have nothing new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "fixtures" / "unsplit.gguf")
    out = parser.parse_args().out
    alphabet = byte_alphabet()
    merges = learn([[alphabet[byte] for byte in text] for text in texts() if len(text) <= LONGEST], MERGES)
    tokens = list(dict.fromkeys([*alphabet, *map("".join, merges), "<|endoftext|>"]))
    end = tokens.index("<|endoftext|>")
    write_metadata(
        out,
        {
            "general.architecture": "gpt2",
            "general.name": "ggufbpe unsplit fixture",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [
                int(TokenType.CONTROL if token == end else TokenType.NORMAL) for token in range(len(tokens))
            ],
            "tokenizer.ggml.merges": [f"{left} {right}" for left, right in merges],
            "tokenizer.ggml.bos_token_id": end,
            "tokenizer.ggml.eos_token_id": end,
        },
    )
    print(f"{out}: {len(tokens)} tokens, {len(merges)} merges, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
