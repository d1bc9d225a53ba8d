"""The child process that asks libmtmd for the tokens of images and recordings, so that its crash is not ours.

Run by its path, with the library, a vocabulary and an mmproj file. Standard input has a JSON list: width and height of
an image, number of samples of a recording, or a file in base64. Standard output gets a JSON list: for each image or
recording the numbers of its chunks' tokens, those of texts below zero, for each file its number of samples or its width
and height, or null for a refusal. Standard error gets llama.cpp's log. Images have no pixels and recordings no sound:
"placeholder bitmaps", as llama-server counts them.
"""

from __future__ import annotations

import base64
import ctypes
import json
import sys
from ctypes import c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_void_p
from typing import Any


class Parameters(ctypes.Structure):
    """llama_model_params or mtmd_context_params, which are passed by value: at least as large as in any version."""

    _fields_ = [("bytes", c_uint8 * 512)]


class InputText(ctypes.Structure):
    """mtmd_input_text."""

    _fields_ = [("text", c_char_p), ("length", c_size_t), ("add_special", c_bool), ("parse_special", c_bool)]


class FileOptions(ctypes.Structure):
    """mtmd_helper_init_opt."""

    _fields_ = [("frames_a_second", c_float), ("ffmpeg", c_char_p), ("milliseconds", c_int64)]


class FileBitmap(ctypes.Structure):
    """mtmd_helper_bitmap_wrapper."""

    _fields_ = [("bitmap", c_void_p), ("video", c_void_p)]


_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "llama_backend_init": (None,),
    "llama_model_default_params": (Parameters,),
    "llama_model_load_from_file": (c_void_p, c_char_p, Parameters),
    "mtmd_context_params_default": (Parameters,),
    "mtmd_init_from_file": (c_void_p, c_char_p, c_void_p, Parameters),
    "mtmd_bitmap_init": (c_void_p, c_uint32, c_uint32, c_void_p),
    "mtmd_bitmap_init_from_audio": (c_void_p, c_size_t, c_void_p),
    "mtmd_bitmap_free": (None, c_void_p),
    "mtmd_bitmap_get_nx": (c_uint32, c_void_p),
    "mtmd_bitmap_get_ny": (c_uint32, c_void_p),
    "mtmd_bitmap_is_audio": (c_bool, c_void_p),
    "mtmd_helper_init_opt_default": (FileOptions,),
    "mtmd_helper_bitmap_init_from_buf": (FileBitmap, c_void_p, c_char_p, c_size_t, c_bool, FileOptions),
    "mtmd_input_chunks_init": (c_void_p,),
    "mtmd_input_chunks_free": (None, c_void_p),
    "mtmd_input_chunks_size": (c_size_t, c_void_p),
    "mtmd_input_chunks_get": (c_void_p, c_void_p, c_size_t),
    "mtmd_input_chunk_get_type": (c_int, c_void_p),
    "mtmd_input_chunk_get_n_tokens": (c_size_t, c_void_p),
    "mtmd_tokenize": (c_int32, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t),
}


def main() -> None:
    library, vocabulary, mmproj = sys.argv[1:4]
    f: Any = ctypes.CDLL(library)
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(f, name)
        function.restype, function.argtypes = result, arguments
    f.llama_backend_init()
    of_model = f.llama_model_default_params()
    of_model.bytes[64 if bytes(of_model.bytes[64:67]) == b"\0\0\1" else 72] = 1  # vocab_only
    model = f.llama_model_load_from_file(vocabulary.encode(), of_model)
    of_mmproj = f.mtmd_context_params_default()
    # warmup, which would run the model, is before the two numbers of tokens, -1 both
    of_mmproj.bytes[bytes(of_mmproj.bytes).index(b"\xff" * 8) - 4] = 0
    of_mmproj.bytes[0] = 0  # use_gpu
    context = f.mtmd_init_from_file(mmproj.encode(), model, of_mmproj)
    if not (model and context):
        sys.exit(3)
    print(json.dumps([_answer(f, context, each) for each in json.load(sys.stdin)]))


def _answer(f: Any, context: int, asked: str | list[int]) -> list[int] | None:
    if isinstance(asked, str):
        return _size_of_file(f, context, base64.b64decode(asked))
    if len(asked) == 1:
        return _chunks(f, context, f.mtmd_bitmap_init_from_audio(*asked, None))
    return _chunks(f, context, f.mtmd_bitmap_init(*asked, None))


def _size_of_file(f: Any, context: int, data: bytes) -> list[int] | None:
    options = f.mtmd_helper_init_opt_default()
    bitmap = f.mtmd_helper_bitmap_init_from_buf(context, data, len(data), True, options).bitmap
    if not bitmap:
        return None
    size = [f.mtmd_bitmap_get_nx(bitmap)] + [f.mtmd_bitmap_get_ny(bitmap)] * (
        not f.mtmd_bitmap_is_audio(bitmap)
    )
    f.mtmd_bitmap_free(bitmap)
    return size


def _chunks(f: Any, context: int, bitmap: int) -> list[int] | None:
    chunks = f.mtmd_input_chunks_init()
    text = InputText(b"<__media__>", 11, False, True)
    counts: list[int] | None = None
    if not f.mtmd_tokenize(context, chunks, ctypes.addressof(text), (c_void_p * 1)(bitmap), 1):
        each = [f.mtmd_input_chunks_get(chunks, at) for at in range(f.mtmd_input_chunks_size(chunks))]
        signs = [1 if f.mtmd_input_chunk_get_type(chunk) else -1 for chunk in each]
        counts = [sign * f.mtmd_input_chunk_get_n_tokens(chunk) for sign, chunk in zip(signs, each)]
    f.mtmd_input_chunks_free(chunks)
    f.mtmd_bitmap_free(bitmap)
    return counts


if __name__ == "__main__":
    main()
