"""Writes fixtures/unigram.gguf: a unigram vocabulary that sentencepiece learned, with its charsmap nmt_nfkc.

    pip install sentencepiece protobuf
    python tests/makers/make_unigram_vocab.py [--out PATH]

It learns from the texts of the recorded answers, so that its tokens are what these have, in every script.

But: another version of sentencepiece may learn another one, which then calls for new recorded answers.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from fixture_texts import texts
from gguf import GGUFValueType, TokenType

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from reference import ROOT, write_metadata

TOKENS = 1200
USER_DEFINED = ["<sep>", "<extra_id_0>", "<extra_id_1>", "ab"]


def main() -> None:
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as protocol

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "fixtures" / "unigram.gguf")
    out = parser.parse_args().out
    lines = (
        line for text in texts() for line in text.decode("utf-8", "ignore").replace("\0", "").split("\n")
    )
    learned = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for line in lines if line),
        model_writer=learned,
        model_type="unigram",
        vocab_size=TOKENS,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        user_defined_symbols=USER_DEFINED,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
        num_threads=1,
    )
    model = protocol.ModelProto.FromString(learned.getvalue())
    charsmap = list(model.normalizer_spec.precompiled_charsmap)
    write_metadata(
        out,
        {
            "general.architecture": "t5",
            "general.name": "ggufbpe unigram fixture",
            "tokenizer.ggml.model": "t5",
            "tokenizer.ggml.tokens": [piece.piece for piece in model.pieces],
            "tokenizer.ggml.scores": [piece.score for piece in model.pieces],
            "tokenizer.ggml.token_type": [int(TokenType(piece.type)) for piece in model.pieces],
            "tokenizer.ggml.add_space_prefix": True,
            "tokenizer.ggml.remove_extra_whitespaces": True,
            "tokenizer.ggml.precompiled_charsmap": (charsmap, GGUFValueType.ARRAY, GGUFValueType.UINT8),
        },
    )
    print(f"{out}: {len(model.pieces)} tokens, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
