"""Says whether a projector's embeddings have the length of a model's, without which llama.cpp refuses the pair.

Source: mtmd_context::init_vision and init_audio in tools/mtmd/mtmd.cpp, which compare llama_model_n_embd_inp with
clip_n_mmproj_embd.
"""

from __future__ import annotations

import os

from ...gguf.constants import KEY_ARCHITECTURE
from ...gguf.reader import GGUFFile

# llama.cpp takes the length from a weight's shape. `projection_dim` has it in files of its present converter; the
# earlier ones, which wrote these projectors, had another number there.
_OTHER_MEANING = frozenset({"mlp", "ldp", "ldpv2", "adapter", "resampler", "qwen2vl_merger"})


def embedding_mismatch(mmproj: str | os.PathLike[str], model: GGUFFile) -> str:
    """Return a sentence about embeddings of different lengths; "" if they are equal or a file does not say."""
    length = _number(model, f"{_text(model, KEY_ARCHITECTURE)}.embedding_length")
    with GGUFFile(mmproj) as file:
        for kind in ("vision", "audio"):
            name = _text(file, "clip.projector_type") or _text(file, f"clip.{kind}.projector_type")
            found = _number(file, f"clip.{kind}.projection_dim")
            if length and found and found != length and name not in _OTHER_MEANING:
                return (
                    f"the projector is for another model: its embeddings have the length {found}, and those of the "
                    f"model {length}; llama.cpp refuses such a pair"
                )
    return ""


def _number(file: GGUFFile, key: str) -> int:
    found = file[key] if key in file else 0  # noqa: SIM401 - a GGUFFile has no get
    return found if type(found) is int else 0


def _text(file: GGUFFile, key: str) -> str:
    found = file[key] if key in file else ""  # noqa: SIM401 - a GGUFFile has no get
    return found if isinstance(found, str) else ""
