"""Exports a model's vocabulary as a GGUF of its own, without tensors, which llama.cpp loads with `vocab_only`.

Every key that is kept is copied byte for byte, so that what llama.cpp makes of the file cannot change: all keys of the
tokenizer, and those of `general.*` that do not describe tensors (the architecture and the name affect how tokens strip
white space). The model's dimensions are not needed to load only its vocabulary.

Nothing is corrected; analysis/doctor/fix.py does that.
"""

from __future__ import annotations

from ...gguf.reader import GGUFFile
from ...gguf.writer import Packer
from ...hub.model_location import ModelName, locate
from ..export_formats import Export

VOCAB_GGUF = "vocab.gguf"
_KEPT = ("general.", "tokenizer.")
_OF_TENSORS = ("general.alignment", "general.file_type", "general.quantization_version")


def to_vocab_gguf(path: ModelName) -> Export:
    """The file "vocab.gguf", with the metadata of the tokenizer in the GGUF at `path`.

    Raises a `GGUFError` if that is not a sound GGUF, or is of version 1.
    """
    with GGUFFile(locate(path).opened()) as file:
        file.require_first_shard()
        spans = file.spans()
        kept = [span for key, span in spans.items() if key.startswith(_KEPT) and key not in _OF_TENSORS]
        parts = [Packer(file.byteorder, file.version).header(len(kept))]
        for span in kept:
            parts += file.blocks(span)
    return Export({VOCAB_GGUF: b"".join(parts)}, ())
