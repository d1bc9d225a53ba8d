"""The projectors of images in llama.cpp's `mtmd`: how each resizes, what it makes of a part, and what is around it.

Every entry is held to libmtmd's own answers (fixtures/media.json, recorded by tests/makers/record_media.py). Projectors
that are not listed are refused.

Source: clip_model_loader::load_hparams and clip_n_output_tokens in tools/mtmd/clip.cpp, mtmd_context::init_vision in
tools/mtmd/mtmd.cpp.
"""

from __future__ import annotations

from typing import NamedTuple

_SCALE = "projector.scale_factor"
_MERGE = "spatial_merge_size"


class Marks(NamedTuple):
    """The texts around an image and its slices.

    `begin`, `end` and `before_slice` are tokenized as text. The others must be the pieces of tokens, if they are used.
    """

    begin: str = ""
    end: str = ""
    overview: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # tokens before and after it
    slices: tuple[str, ...] = ()  # before the first slice and after the last
    each: tuple[str, ...] = ()  # before and after each slice
    row_end: str = ""  # after each row of slices but the last
    before_slice: str = ""  # before each slice, with its row and column from 1


class Projector(NamedTuple):
    """One projector. Keys are those below `clip.vision.`; sides are in pixels.

    `resize` names a function of image_parts.py, `output` one of image_tokens.py.
    """

    resize: str
    output: str
    marks: Marks = Marks()
    merge: int = 1  # patches per side that become one token, unless the file has `merge_key`
    merge_key: str = ""
    limits: tuple[int, int] | None = None  # fewest and most tokens of an image
    has_pixel_keys: bool | None = False  # whether the file says the limits in pixels; None: it may


_VISION = Marks("<|vision_start|>", "<|vision_end|>")
_IMAGE = Marks("<|image_start|>", "<|image_end|>")
_GEMMA3 = Marks("<start_of_image>", "<end_of_image>")
_GEMMA4 = Marks("<|image>", "<image|>")
_GLM = Marks("<|begin_of_image|>", "<|end_of_image|>")
_DOTS = Marks("<|img|>", "<|endofimg|>")
_MINICPM = Marks(overview=(("<image>",), ("</image>",)), each=("<slice>", "</slice>"), row_end="\n")
_STEP3 = Marks(
    overview=(("<im_start>",), ("<im_end>",)),
    each=("<patch_start>", "<patch_end>"),
    row_end="<patch_newline>",
)
_NEWLINE = Marks(end="\n")
MARKS_OF_OLDER_MINICPM = _MINICPM._replace(
    slices=("<slice>", "</slice>"), each=("<image>", "</image>")
)  # of version 2
MARKS_OF_GLM = _GLM  # with `kimik25` where the vocabulary has them

_QWEN = Projector("dynamic", "halved", _VISION, 2, _MERGE, (8, 4096))
_LLAVA = Projector("fixed_or_slices", "patches")

PROJECTORS: dict[str, Projector] = {
    "mlp": _LLAVA,
    "janus_pro": _LLAVA,
    "ldp": _LLAVA._replace(output="quarter"),
    "ldpv2": _LLAVA._replace(output="quarter"),
    "adapter": _LLAVA._replace(output="quarter_and_two"),
    "cogvlm": _LLAVA._replace(output="patches_and_two"),
    "resampler": Projector("slices", "queries", _MINICPM),
    "qwen2vl_merger": _QWEN,
    "qwen2.5vl_merger": _QWEN,
    "qwen3vl_merger": _QWEN,
    "ling3vl": _QWEN,
    "mimovl": Projector("dynamic", "halved", _VISION, 2, _MERGE, None, True),
    "minimax_m3": _QWEN._replace(marks=Marks("]<]start of image[>[", "]<]end of image[>["), limits=(8, 576)),
    "glm4v": _QWEN._replace(marks=_GLM),
    "glm5v": Projector("canvas", "halved", _GLM, 2, _MERGE, None, True),
    "exaone4_5": Projector("dynamic", "halved", Marks("<vision>", "</vision>"), 2, _MERGE, None, True),
    "youtuvl": Projector("scaled", "halved", _VISION, 2, _MERGE, (1, 62500)),
    "muse-glimmer": Projector("grid", "halved", _IMAGE, 2, _MERGE, (1, 4096)),
    "gemma3": Projector("fixed", "merged", _GEMMA3, 4, _SCALE),
    "gemma3nv": Projector("fixed", "side", _GEMMA3, 1, _SCALE),
    "gemma4v": Projector("dynamic", "merged", _GEMMA4, 3, _SCALE, (70, 1120)),
    "gemma4uv": Projector("dynamic", "merged", _GEMMA4, 3, _SCALE, (70, 1120)),
    "nemotron_v2_vl": Projector("fixed", "merged", Marks(), 1, _SCALE),
    "phi4": Projector("dynamic", "patches", has_pixel_keys=True),
    "pixtral": Projector("dynamic", "rows", Marks(end="[IMG_END]"), 1, _MERGE, (8, 1024)),
    "lightonocr": Projector("longest_edge", "merged", Marks("<|im_start|>", "<|im_end|>"), 1, _MERGE),
    "kimivl": Projector(
        "dynamic", "covered", Marks("<|media_start|>", "<|media_end|>"), 1, _SCALE, (8, 1024)
    ),
    "kimik25": Projector(
        "dynamic", "covered", Marks("<|media_begin|>", "<|media_end|>"), 1, _SCALE, (2, 4096)
    ),
    "dots_ocr": Projector("dynamic", "merged", _DOTS, 1, _SCALE, None, True),
    "dots3note_v": Projector("dynamic", "merged", _DOTS, 1, _MERGE, None, True),
    "paddleocr": Projector("dynamic", "merged", Marks("<|IMAGE_START|>", "<|IMAGE_END|>"), 2, "", None, True),
    "hunyuanvl": Projector(
        "dynamic",
        "lines_and_two",
        Marks("<｜hy_place▁holder▁no▁100｜>", "<｜hy_place▁holder▁no▁101｜>"),
        2,
        _MERGE,
        (256, 16384),
        None,
    ),
    "idefics3": Projector(
        "tiles",
        "merged",
        Marks(
            overview=(("\n\n", "<fake_token_around_image>", "<global-img>"), ("<fake_token_around_image>",)),
            row_end="\n",
            before_slice="<fake_token_around_image><row_{}_col_{}>",
        ),
        1,
        _SCALE,
    ),
    "internvl": Projector("slices", "merged", Marks("<img>", "</img>"), 1, _SCALE),
    "llama4": Projector("slices", "merged", _IMAGE, 1, _SCALE),
    "minicpmv4_6": Projector("slices_of_merged", "merged", _MINICPM, 4, _SCALE),
    "lfm2": Projector(
        "tiles_or_one",
        "covered",
        Marks(
            "<|image_start|>",
            "<|image_end|>",
            (("<|img_thumbnail|>",), ()),
            before_slice="<|img_row_{}_col_{}|>",
        ),
        1,
        _SCALE,
        (64, 256),
    ),
    "step3vl": Projector("windows", "units", _STEP3, 4, _SCALE),
    "deepseekocr": Projector("views_in_rows", "view_rows", _NEWLINE),
    "deepseekocr2": Projector("views", "view_queries", _NEWLINE),
    "yasa2": Projector("fixed", "pooled", Marks("<image>", "</image>")),
}
