"""The measured vocabularies: a GGUF, and the pre-tokenizer to run it with.

    real vocabularies (scripts/reference.py) -> [this file] -> peers.py

If a model's own vocabulary is not at hand, another one is copied with the model's `tokenizer.ggml.pre`: GPT-4o's and
DeepSeek-V3's splitting run over Llama 3's. The path of a GGUF may be given in place of a name.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from reference import NotPreparedError, vocabulary, with_pre  # noqa: E402

from ggufbpe import GGUFWarning, Tokenizer  # noqa: E402

# By name: upstream's name of the vocabulary, and the pre-tokenizer, None for the vocabulary's own.
NAMES: dict[str, tuple[str, str | None]] = {
    "llama-3": ("llama-bpe", None),
    "gpt-2": ("gpt-2", None),
    "qwen-2": ("qwen2", None),
    "gpt-4o": ("llama-bpe", "gpt-4o"),
    "deepseek-v3": ("llama-bpe", "deepseek-v3"),
    "gemma-4": ("gemma-4", None),
    "llama-2": ("llama-spm", None),
    "bge": ("bert-bge", None),
    "nomic": ("nomic-bert-moe", None),
    "t5": ("t5", None),
    "rwkv-world": ("", None),
}
RWKV_WORDS = "rwkv_vocab_v20230424.txt"  # of the package pyrwkv-tokenizer
GPT2 = ROOT / "ggufbpe" / "models" / "gpt2.gguf"  # the same file as upstream's, and always there


class Case:
    """One vocabulary, and the files that peers need of it, made once."""

    def __init__(self, name: str, path: Path, folder: Path) -> None:
        self.name = name
        self.path = path
        self._folder = folder

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The reference engine's tokenizer: the tables from which the peers' files are made."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GGUFWarning)  # oddities of the file do not matter here
            return Tokenizer.from_gguf(self.path)

    @cached_property
    def has_scores(self) -> bool:
        """Whether tokens have scores, as sentencepiece's have."""
        return self.tokenizer.vocabulary.tokenizer_model.has_scores

    @cached_property
    def tokenizer_json(self) -> Path:
        """The same tokenizer as a tokenizer.json, for peers that read that."""
        from tokenizer_json import tokenizer_json

        path = self._folder / f"{self.name}.json"
        path.write_text(tokenizer_json(self.tokenizer.vocabulary), encoding="utf-8")
        return path

    @cached_property
    def sentencepiece_model(self) -> Path:
        """As a sentencepiece `.model`."""
        from sentencepiece_model import sentencepiece_model

        path = self._folder / f"{self.name}.model"
        path.write_bytes(sentencepiece_model(self.tokenizer.vocabulary))
        return path

    @cached_property
    def piece_lengths(self) -> list[int]:
        """The bytes that each token stands for."""
        return [len(self.tokenizer.token_to_piece(i)) for i in range(self.tokenizer.vocab_size)]

    @cached_property
    def ranks(self) -> dict[bytes, int]:
        """The bytes of each token and its rank, which is its id, for tiktoken."""
        tokenizer = self.tokenizer
        special = set(tokenizer.vocabulary.special_token_ids)
        return {tokenizer.token_to_piece(i): i for i in range(tokenizer.vocab_size) if i not in special}


def case(name: str, folder: Path) -> Case:
    """The case of a name or of a path; files made for it go to `folder`.

    Raises `NotPreparedError` if a real vocabulary is missing, `ValueError` for anything else.
    """
    if name == "rwkv-world":
        return Case(name, rwkv_world(folder / "rwkv-world.gguf"), folder)
    if name in NAMES:
        base, pre = NAMES[name]
        path = GPT2 if base == "gpt-2" else vocabulary(base)
        return Case(name, path if pre is None else with_pre(path, pre, folder / f"{name}.gguf"), folder)
    if Path(name).is_file():
        return Case(Path(name).stem, Path(name), folder)
    raise ValueError(f"{name} is neither a GGUF file nor one of {', '.join(NAMES)}")


def rwkv_world(path: Path) -> Path:
    """A GGUF of RWKV World's words, as convert_hf_to_gguf.py writes it; the words are from pyrwkv-tokenizer."""
    from gguf import GGUFWriter, TokenType

    package = find_spec("pyrwkv_tokenizer")
    if package is None or package.origin is None:
        raise NotPreparedError("the package pyrwkv-tokenizer, which has its words, is not installed")
    lines = (Path(package.origin).parent / RWKV_WORDS).read_text(encoding="utf-8").splitlines()
    words = [ast.literal_eval(line[line.index(" ") : line.rindex(" ")].strip()) for line in lines]
    tokens = [repr(word.encode() if isinstance(word, str) else word)[2:-1] for word in words]
    writer = GGUFWriter(path, "rwkv6")
    writer.add_tokenizer_model("rwkv")
    writer.add_token_list(["<s>", *tokens])
    writer.add_token_types([TokenType.CONTROL, *(TokenType.NORMAL for _ in tokens)])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def cases(names: list[str], folder: Path, left_out: dict[str, str]) -> Iterator[Case]:
    """The cases of the names; those that are not prepared are noted in `left_out`."""
    for name in names:
        try:
            yield case(name, folder)
        except NotPreparedError as error:
            left_out[name] = str(error)
