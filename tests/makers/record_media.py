"""Records how many tokens llama.cpp gives to images and audio, for each projector that can be asked.

    python tests/makers/record_media.py [PROJECTOR …]      # writes fixtures/media.json, or only these of it
    python tests/makers/record_media.py audio              # only what is about audio

libmtmd of the state that chats follow is given made-up mmproj files, images without pixels and recordings without
sound. It names each tensor that it misses, and is asked again with a tensor of that name. The lengths of whole files,
made by audio_files.py, are those that it reads.
"""

from __future__ import annotations

import base64
import json
import random
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audio_files import FILES, mp3, random_files, wav
from gguf import GGUFWriter
from make_mmproj import AUDIO, VISION, make_mmproj
from make_tiny_model import GPT2, WIDTH, copy_tokenizer, make_tiny_model

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from chat_server import ChatServer
from reference import CHATS, CHATS_VERSION, ROOT

from ggufbpe.chat.media.audio_tokens import AUDIO_PROJECTORS

CHILD = Path(__file__).resolve().parent / "mtmd_child.py"
OUT = ROOT / "fixtures" / "media.json"
LIBRARY = ROOT / ".cache" / f"xllamacpp-{CHATS_VERSION}" / "xllamacpp"
SIZES = [
    (1, 1),
    (336, 336),
    (337, 336),
    (1000, 700),
    (50, 2000),
    (640, 480),
    (4000, 3000),
    (1, 4000),
    (9000, 20),
]
MOST_TENSORS = 300

V = "clip.vision."
_PIXELS = {V + "image_min_pixels": 3136, V + "image_max_pixels": 1254400}
_FEW = {V + "image_min_pixels": 147384, V + "image_max_pixels": 284800}
_SCALE, _MERGE = V + "projector.scale_factor", V + "spatial_merge_size"
_SAM = {f"{V}{key}": 1 for key in ("sam.head_count", "window_size", "attention.head_count_kv")}
_SAM |= {V + "sam.block_count": 0, V + "sam.embedding_length": 8}
_PINPOINTS = {V + "image_grid_pinpoints": [336, 672, 672, 336, 672, 672, 1008, 336, 336, 1008]}
_PATCH_16 = {V + "patch_size": 16, V + "image_size": 512}
# The keys of each case, besides those of every file; a projector's name may be followed by what is special.
CASES: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("mlp", "ldp", "ldpv2", "adapter", "cogvlm", "janus_pro", "gemma3", "gemma3nv")},
    **{f"{name}, pinpoints": _PINPOINTS for name in ("mlp", "janus_pro", "cogvlm", "ldp")},
    **{
        f"resampler, version {number}": {"clip.minicpmv_version": number}
        for number in (2, 3, 4, 5, 6, 100045)
    },
    "resampler": {},
    "resampler, queries": {"clip.minicpmv_query_num": 32, V + "image_size": 448},
    **{
        name: {}
        for name in ("qwen2vl_merger", "qwen3vl_merger", "ling3vl", "minimax_m3", "glm4v", "muse-glimmer")
    },
    **{f"{name}, 16": {**_PATCH_16, _MERGE: 2} for name in ("qwen2vl_merger", "qwen3vl_merger", "glm4v")},
    "qwen2vl_merger, merge 3": {_MERGE: 3},
    "qwen2.5vl_merger": {V + "n_wa_pattern": 8},
    "qwen2.5o": {V + "n_wa_pattern": 8},
    "mimovl": {
        **_PIXELS,
        V + "attention.head_count_kv": 1,
        V + "window_size": 1,
        V + "wa_pattern_mode": [0],
        V + "block_count": 1,
    },
    "glm5v": {**_PIXELS, V + "swiglu_clamp": 7.0},
    "glm5v, few": {**_FEW, V + "swiglu_clamp": 7.0},
    "exaone4_5": {**_PIXELS, V + "attention.head_count_kv": 1},
    "youtuvl": {V + "window_size": 112, V + "wa_layer_indexes": [0]},
    "youtuvl, 16": {**_PATCH_16, V + "window_size": 112, V + "wa_layer_indexes": [0]},
    "gemma3, 896": {V + "image_size": 896},
    "gemma3, scale": {_SCALE: 2},
    "gemma3nv, 768": {V + "image_size": 768, V + "patch_size": 3},
    **{
        f"{name}, 16": _PATCH_16
        for name in ("gemma4v", "gemma4uv", "pixtral", "kimivl", "lfm2", "step3vl", "llama4")
    },
    **{
        name: {}
        for name in ("gemma4v", "gemma4uv", "pixtral", "llama4", "internvl", "idefics3", "hunyuanvl", "yasa2")
    },
    "pixtral, merge": {_MERGE: 2},
    "nemotron_v2_vl": {_SCALE: 2},
    "phi4": _PIXELS,
    "phi4, few": _FEW,
    "lightonocr": {_MERGE: 2},
    "lightonocr, edge": {_MERGE: 2, V + "preproc_image_size": 1540},
    "kimivl": {_SCALE: 2},
    "kimik25": {_SCALE: 2},
    "kimik25, pixels": {_SCALE: 2, **_PIXELS},
    "dots_ocr": {_SCALE: 2, **_PIXELS},
    "dots3note_v": {_MERGE: 2, V + "expert_used_count": 1, **_PIXELS},
    "paddleocr": _FEW,
    "hunyuanvl, pixels": {**_PIXELS, _MERGE: 2},
    "idefics3, edge": {_SCALE: 4, V + "preproc_image_size": 2048, **_PATCH_16},
    "idefics3, odd edge": {_SCALE: 2, V + "preproc_image_size": 1999},
    "internvl, scale": {_SCALE: 2, V + "image_size": 448},
    "internvl, tiles": {_SCALE: 2, V + "preproc_min_tiles": 2, V + "preproc_max_tiles": 6},
    "llama4, scale": {_SCALE: 2},
    "minicpmv4_6": {V + "image_size": 448},
    "minicpmv4_6, scale": {_SCALE: 2, V + "image_size": 448},
    "lfm2": {_SCALE: 2, **_PATCH_16},
    "step3vl": {V + "image_size": 728},
    "step3vl, edge": {V + "image_size": 728, V + "preproc_image_size": 1000},
    "deepseekocr": _SAM,
    "deepseekocr, tiles": {**_SAM, V + "preproc_max_tiles": 32},
    "deepseekocr2": _SAM,
}
A = "clip.audio."
_STACK = A + "projector.stack_factor"
_GRANITE = {A + key: 1 for key in ("projector.head_count", "conv_kernel_size")}
_GRANITE |= {A + "chunk_size": 200, A + "max_pos_emb": 512, A + "num_mel_bins": 16}
_CODES: dict[str, Any] = {A + "rvq.num_quantizers": 1, A + "rvq.codebook_size": [8], A + "window_size": 1}
_CODES |= {A + "wa_pattern_mode": [0], A + "block_count": 1, A + "local_block_count": 0}
AUDIO_CASES: dict[str, dict[str, Any]] = {
    **{f"{name}, stack {n}": {_STACK: n} for name, n in (("ultravox", 8), ("ultravox", 7), ("voxtral", 4))},
    **{f"{name}, stack {n}": {_STACK: n} for name, n in (("voxtral", 3), ("glma", 4), ("meralion", 15))},
    **{
        name: {}
        for name in ("qwen2a", "qwen2.5o", "qwen3a", "musicflamingo", "gemma4a", "gemma4ua", "dots3note_a")
    },
    "lfm2a": {},
    "granite_speech": {**_GRANITE, A + "projector.window_size": 15, A + "projector.downsample_rate": 5},
    "granite_speech, odd": {**_GRANITE, A + "projector.window_size": 16, A + "projector.downsample_rate": 5},
    "parakeet": {A + "subsampling_factor": 8, A + "conv_kernel_size": 9},
    **{f"mimo_audio, group {n}": {**_CODES, A + "local_group_size": n} for n in (1, 4)},
}
# Tensors that libmtmd reads without saying that it misses them.
AUDIO_TENSORS: dict[str, dict[str, tuple[int, ...] | None]] = {
    "gemma4a": {"mm.a.input_projection.weight": None},
    "lfm2a": {"a.position_embd.weight": (3000, 8)},
    "parakeet": {"mm.a.mlp.2.weight": None, "a.mel_filters": (8 * 257,), "a.window": (400,)},
    "mimo_audio": {"a.rvq.codebook.weight": None, "mm.a.code_embd.weight": None},
}
SAMPLES = [1, 2, 100, 159, 160, 161, 319, 320, 321, 640, 641, 16000, 128000, 480000, 480001, 480160]
SAMPLES_OF_CHUNKS = [1, 479999, 480000]  # for projectors that fill up half minutes, which takes seconds
_ENDS_BELOW = {"lfm2a": 320}  # samples with fewer of which llama.cpp ends the process
OF_SERVER = (
    "gemma3",
    "qwen2vl_merger",
    "idefics3, edge",
    "resampler, version 6",
    "internvl, scale",
    "gemma4ua",
)


def _png(width: int, height: int) -> bytes:
    """A black image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width + 1) * height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def _at(url: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _image(width: int, height: int) -> dict[str, Any]:
    return _at("data:image/png;base64," + base64.b64encode(_png(width, height)).decode())


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


CONTENTS: list[list[dict[str, Any]]] = [
    [],
    [_text("plain")],
    [_image(50, 60)],
    [_text("Look"), _image(640, 480), _text("and here")],
    [_text("a"), _text("b"), _image(336, 336), _image(337, 20), _text("c"), _text("d")],
    [_at(base64.b64encode(_png(90, 70)).decode())],
    [_at(base64.b64encode(_png(90, 70)).decode() + "=!!")],
    [_at("data:audio/x;base64," + base64.b64encode(_png(90, 70)).decode())],
    [{"type": "image_url"}],
    [{"type": "image_url", "image_url": "x"}],
    [_at(None)],
    [_at("!!")],
    [_at("data:image/png,AA")],
    [_at("data:text/png;base64,AA")],
    [_at("data:a,b,c")],
    [{"type": "media_marker", "text": "x"}],
    [{"type": "input_audio", "input_audio": {"data": "AA"}}],
]


def _audio(data: bytes, prefix: str = "", key: str = "data") -> dict[str, Any]:
    return {
        "type": "input_audio",
        "input_audio": {key: prefix + base64.b64encode(data).decode(), "format": "x"},
    }


AUDIO_CONTENTS: list[list[dict[str, Any]]] = [
    [_text("plain")],
    [_audio(wav(12345))],
    [_text("Hear"), _audio(wav(4410, 44100, channels=2)), _text("and"), _audio(wav(100)), _text("here")],
    [_audio(wav(2000), "data:audio/wav;base64,")],
    [_audio(wav(2000), "data:image/png;base64,")],
    [_audio(wav(2000), "data:text/plain;base64,")],
    [_audio(wav(2000), key="url")],
    [{"type": "input_audio", "input_audio": {"data": 5, "url": base64.b64encode(wav(3000)).decode()}}],
    [_audio(mp3())],
    [_audio(wav(0))],
    [_audio(b"hello world, no sound")],
    [_audio(_png(5, 5))],
    [_image(5, 5)],
    [{"type": "input_audio"}],
    [{"type": "input_audio", "input_audio": "x"}],
]


def main() -> None:
    only = sys.argv[1:]
    known = json.loads(OUT.read_text()) if only else {}
    cases, chats = known.get("cases", {}), known.get("chats", {})
    with tempfile.TemporaryDirectory() as folder:
        # Some projectors require positions of M-RoPE, which Qwen2-VL has.
        vocabularies = {"gpt2": GPT2, "qwen2vl": Path(folder) / "qwen2vl.gguf"}
        writer = GGUFWriter(vocabularies["qwen2vl"], "qwen2vl")
        copy_tokenizer(writer, GPT2, {})
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        for name, keys in CASES.items():
            if only and name.partition(",")[0] not in only:
                continue
            dice = random.Random(name)
            sizes = [*SIZES, *(_random_size(dice) for _ in range(60))]
            for architecture, vocabulary in vocabularies.items():
                answers = ask(Path(folder) / "mmproj.gguf", vocabulary, name.partition(",")[0], keys, sizes)
                print(name, architecture, "refused" if answers is None else "recorded", flush=True)
                if answers is not None:
                    cases[name] = {"keys": keys, "images": _shown(sizes, answers)}
                    break
        audio = {
            name: _asked_audio(Path(folder) / "mmproj.gguf", name, keys) for name, keys in AUDIO_CASES.items()
        }
        files = _asked_files(Path(folder) / "mmproj.gguf")
        for name in OF_SERVER if only != ["audio"] else OF_SERVER[-1:]:
            chats[name] = _asked_server(Path(folder), name)
    recorded = {"llama_cpp": CHATS, "cases": cases, "audio": audio, "files": files, "chats": chats}
    OUT.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")


def _asked_audio(path: Path, name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """The keys, and numbers of samples with the tokens of the recording and of the texts around it."""
    projector, dice = name.partition(",")[0], random.Random(name)
    in_chunks = AUDIO_PROJECTORS[projector].frames is AUDIO_PROJECTORS["qwen2a"].frames
    samples = (
        SAMPLES_OF_CHUNKS if in_chunks else [*SAMPLES, *(round(2 ** dice.uniform(8, 17)) for _ in range(12))]
    )
    asked = [[each] for each in samples if each >= _ENDS_BELOW.get(projector, 0)]
    answers = ask(path, GPT2, projector, keys, asked, AUDIO)
    print(name, "refused" if answers is None else "recorded", flush=True)
    assert answers is not None, name
    return {"keys": keys, "recordings": _shown(asked, answers)}


def _asked_files(path: Path) -> dict[str, list[list[int] | None]]:
    """The samples of each file of audio_files.py, resampled for projectors of 16,000 and of 24,000 samples a second."""
    files = {**FILES, **random_files(200, 36)}
    asked = [base64.b64encode(data).decode() for data in files.values()]
    answers = [
        ask(path, GPT2, name.partition(",")[0], AUDIO_CASES[name], asked, AUDIO)
        for name in ("gemma4ua", "mimo_audio, group 1")
    ]
    assert all(answers)
    return {name: [*each] for name, *each in zip(files, *(each or [] for each in answers))}


def _asked_server(folder: Path, name: str) -> list[Any]:
    """The contents of users' messages, and for each the tokens of the chat, or why the real llama-server refuses it."""
    projector, usual = name.partition(",")[0], AUDIO if name in AUDIO_CASES else VISION
    keys = AUDIO_CASES[name] if name in AUDIO_CASES else CASES[name]
    ask(folder / "mmproj.gguf", GPT2, projector, keys, [], usual)  # finds the tensors
    mmproj, model = folder / "served.gguf", make_tiny_model(folder / "model.gguf")
    mmproj.unlink(missing_ok=True)
    make_mmproj(mmproj, projector, keys, _tensors[projector], WIDTH, usual)
    with ChatServer(model, mmproj) as server:
        assert server.open(None) is None, name
        found = [
            (content, server.count(chat_of(content)))
            for content in (AUDIO_CONTENTS if usual is AUDIO else CONTENTS)
        ]
    return [[content, count if isinstance(count, int) else list(count)] for content, count in found]


def chat_of(content: list[dict[str, Any]]) -> dict[str, Any]:
    """The request with a message of this content."""
    messages = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": content}]
    return {"messages": messages}


def _random_size(dice: random.Random) -> tuple[int, int]:
    width = round(2 ** dice.uniform(2, 12.5))
    return width, max(1, round(width * 2 ** dice.gauss(0, 1)))


def _shown(sizes: Sequence[Sequence[int]], answers: list[list[int] | None]) -> list[Any]:
    """Width and height, or samples, with the tokens of each and of the texts around it; without them if refused."""
    return [
        [*size, *(() if each is None else (sum(n for n in each if n > 0), -sum(n for n in each if n < 0)))]
        for size, each in zip(sizes, answers)
    ]


def ask(
    path: Path,
    vocabulary: Path,
    projector: str,
    keys: dict[str, Any],
    asked: Sequence[Any],
    usual: dict[str, Any] = VISION,
) -> list[list[int] | None] | None:
    """What mtmd_child.py answers to each of `asked`; None if llama.cpp cannot be asked."""
    tensors = _tensors.setdefault(projector, dict.fromkeys(_MLP) | AUDIO_TENSORS.get(projector, {}))
    for _ in range(MOST_TENSORS):
        path.unlink(missing_ok=True)
        make_mmproj(path, projector, keys, tensors, usual=usual)
        command = [
            sys.executable,
            str(CHILD),
            str(next(LIBRARY.glob("*.abi3.so"))),
        ]
        command += [str(vocabulary), str(path)]
        done = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, errors="replace"
        )
        if done.returncode == 0:
            answers: list[list[int] | None] = json.loads(done.stdout.splitlines()[-1])
            return answers
        missing = re.findall(r"unable to find tensor (\S+)|requires (\S+)", done.stderr)
        names = [(first or second).strip('")') for first, second in missing]
        if not names or names[-1] in tensors:
            return None
        tensors[names[-1]] = None
    return None


_MLP = [f"mm.{number}.{part}" for number in (0, 2) for part in ("weight", "bias")]
_tensors: dict[
    str, dict[str, tuple[int, ...] | None]
] = {}  # by projector: the names that it was found to need


if __name__ == "__main__":
    main()
