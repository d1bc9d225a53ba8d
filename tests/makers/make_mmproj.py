"""Writes mmproj files that have the metadata of a projector and hardly any weights.

libmtmd counts the tokens of an image or a recording without running the model, and asks of weights only that they are
there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from gguf import GGUFWriter

VISION: dict[str, Any] = {
    "clip.has_vision_encoder": True,
    "clip.vision.embedding_length": 8,
    "clip.vision.attention.head_count": 1,
    "clip.vision.feed_forward_length": 8,
    "clip.vision.block_count": 0,
    "clip.vision.projection_dim": 8,
    "clip.vision.attention.layer_norm_epsilon": 1e-5,
    "clip.vision.image_size": 336,
    "clip.vision.patch_size": 14,
    "clip.vision.image_mean": [0.5, 0.5, 0.5],
    "clip.vision.image_std": [0.5, 0.5, 0.5],
}

AUDIO: dict[str, Any] = {
    "clip.has_audio_encoder": True,
    "clip.audio.embedding_length": 8,
    "clip.audio.attention.head_count": 1,
    "clip.audio.feed_forward_length": 8,
    "clip.audio.block_count": 0,
    "clip.audio.projection_dim": 8,
    "clip.audio.attention.layer_norm_epsilon": 1e-5,
    "clip.audio.num_mel_bins": 8,
}


def make_mmproj(
    out: str | os.PathLike[str],
    projector: str,
    changes: Mapping[str, Any],
    tensors: Iterable[str] | Mapping[str, tuple[int, ...] | None] = ("none",),
    width: int = 8,
    usual: Mapping[str, Any] = VISION,
) -> None:
    """Write a file with the projector, with keys to replace or add, and tensors of these names, all zero.

    Tensors are square unless they have a shape. `usual` are the keys of every file: `VISION` or `AUDIO`.
    """
    writer = GGUFWriter(out, "clip")
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    for key, value in {**usual, "clip.projector_type": projector, **changes}.items():
        put = writer.add_int32 if key == "clip.minicpmv_version" else add.get(type(value), writer.add_array)
        put(key, value)
    shapes = tensors if isinstance(tensors, Mapping) else dict.fromkeys(tensors)
    for name, shape in shapes.items():
        writer.add_tensor(name, np.zeros(shape or (width, width), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
