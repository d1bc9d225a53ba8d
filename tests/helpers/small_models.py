"""Byte-level models of a few hundred tokens, and the facts about them that the doctor's checks are given."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from reference import write_metadata
from synthetic import make_vocabulary

from ggufbpe import Tokenizer
from ggufbpe._util.spelling import BYTE_TOKENS
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.finding import Finding
from ggufbpe.gguf.constants import TokenizerKey, TokenType
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models import vocabulary
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.known_families import KNOWN_FAMILIES, KnownFamily

K = TokenizerKey
NORMAL, CONTROL, UNUSED = (int(kind) for kind in (TokenType.NORMAL, TokenType.CONTROL, TokenType.UNUSED))
MERGES = ("h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld")
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

Keys = dict[str, Any]


def small_keys(
    *added: str, kind: int = CONTROL, tokens: Iterable[str] = (), merges: Iterable[str] = MERGES, **keys: Any
) -> Keys:
    """The keys of a sound GPT-2 model: a token per byte, the results of `merges`, three special tokens.

    `added` are more tokens of one `kind`, after all others; `tokens` replaces all others. `keys` are values of
    `tokenizer.ggml.` keys, None to leave one out.
    """
    merges = list(merges)
    own = list(tokens) or [*BYTE_CHARS, *(merge.replace(" ", "") for merge in merges), *SPECIAL]
    made = {
        "general.architecture": "gpt2",
        K.MODEL: "gpt2",
        K.PRE: "gpt-2",
        K.LIST: [*own, *added],
        K.TOKEN_TYPE: [CONTROL if token in SPECIAL else NORMAL for token in own] + [kind] * len(added),
        K.MERGES: merges,
        K.BOS_ID: own.index(SPECIAL[0]) if SPECIAL[0] in own else None,
        K.EOS_ID: own.index(SPECIAL[2]) if SPECIAL[2] in own else None,
        **{f"tokenizer.ggml.{name}": value for name, value in keys.items()},
    }
    return {key: value for key, value in made.items() if value is not None}


def scored_keys(words: Iterable[str], added: Iterable[str] = ()) -> Keys:
    """The keys of a sound model with scores: special tokens, bytes, `words`, and the control tokens `added`."""
    words, added = list(words), list(added)
    tokens = ["<unk>", "<s>", "</s>", *BYTE_TOKENS, *words, *added]
    of_bytes = [int(TokenType.BYTE)] * len(BYTE_TOKENS)
    types = [int(TokenType.UNKNOWN), CONTROL, CONTROL, *of_bytes, *[NORMAL] * len(words)]
    return {
        "general.architecture": "llama",
        K.MODEL: "llama",
        K.LIST: tokens,
        K.TOKEN_TYPE: [*types, *[CONTROL] * len(added)],
        K.SCORES: [-float(index) for index in range(len(tokens))],
    }


def with_template(template: str, *added: str, **keys: Any) -> Keys:
    """The keys of a small model with a chat template."""
    return {**small_keys(*added, **keys), K.CHAT_TEMPLATE: template}


def family_keys(name: str, **keys: Any) -> Keys:
    """The keys of a small model whose tokens are taken for those of the known family `name`, with other texts."""
    family = known_family(name)
    size = max(index for index, _ in filter(None, (family.last, family.bos, family.eos))) + 1
    tokens = [f"<filler{number}>" for number in range(size)]
    tokens[: len(family.first)] = family.first
    for index, text in filter(None, (family.last, family.bos, family.eos)):
        tokens[index] = text
    special = {pair[0] for pair in (family.bos, family.eos) if pair}
    ids = {"bos_token_id": family.bos, "eos_token_id": family.eos}
    made = small_keys(tokens=tokens, merges=['! "'], pre=family.pres[0] if family.pres else None)
    made[K.MODEL] = family.model
    made[K.TOKEN_TYPE] = [CONTROL if index in special else NORMAL for index in range(size)]
    made |= {f"tokenizer.ggml.{key}": pair[0] for key, pair in ids.items() if pair}
    made |= {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    return {key: value for key, value in made.items() if value is not None}


def small_tokenizer(*added: str, merges: Iterable[str] = MERGES, **changes: Any) -> Tokenizer:
    """The tokenizer of a small model that has no file; `changes` are those of `make_vocabulary`.

    `added` are more control tokens. Ids of bytes are the bytes.
    """
    tokens = [*BYTE_CHARS, *(merge.replace(" ", "") for merge in merges), *SPECIAL, *added]
    special = {"bos": tokens.index(SPECIAL[0]), "eos": tokens.index(SPECIAL[2])}
    attributes = dict.fromkeys([*SPECIAL, *added], vocabulary.CONTROL)
    made = {"special_ids": special, "attributes": attributes, "merges": merges, **changes}
    return Tokenizer(make_vocabulary(tokens, **made))


def known_family(name: str) -> KnownFamily:
    """A family of models that the doctor knows."""
    return next(family for family in KNOWN_FAMILIES if family.name == name)


FactsOf = Callable[..., Facts]


@pytest.fixture
def facts_of() -> Iterator[FactsOf]:
    """Writes a model file with the given keys, and returns the facts of the file.

    mending.py does not see these files, and so does not run all checks on each of them.
    """
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))

        def facts_of(keys: Keys, name: str = "model.gguf") -> Facts:
            path = inspect.unwrap(write_metadata)(folder / name, keys)
            return Facts(opened.enter_context(GGUFFile(path)), None)

        yield facts_of


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the small model, with ChatML as its chat template."""
    path = tmp_path_factory.mktemp("small") / "small.gguf"
    return inspect.unwrap(write_metadata)(path, with_template(CHATML))


def found(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """The id and the severity of each finding."""
    return [(finding.id, finding.severity) for finding in findings]
