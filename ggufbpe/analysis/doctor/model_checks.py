"""What models without a pre-tokenizer need: the right kind of tokens, scores, bytes, an unknown token, a charsmap."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import compress, pairwise, repeat
from operator import contains

from ..._util.errors import printable
from ..._util.spelling import BYTE_TOKENS, SPACE
from ..._util.wording import counted, listed
from ...gguf.constants import TokenizerKey, TokenType
from ...models import tokenizer_model
from ...models.token_table import tokens_with
from ...models.vocabulary import NORMAL, Vocabulary
from .facts import Facts
from .finding import Finding
from .round_trip_checks import UTF8_BYTES

_K = TokenizerKey
_SHARE_RISING = 0.25  # of the scores
_SHARE_TIED = 0.1  # likewise
_SHARE_SPACED = 0.1  # of the tokens; a few spaces may be added text
_SHARE_MARKED = 0.1  # of the tokens with spaces: as many may be left as U+2581, such as runs of it
_LEAST_SCORES = 1000  # fewer do not show that an order is meant
_CAPITAL = re.compile("[A-Z]")
_MOST_SHOWN = 64  # bytes of a text, which a charsmap may make as long as itself


def wrong_model(model: Facts) -> Iterator[Finding]:
    """Tokens that were made for another tokenizer model than the one that is named."""
    if not model.kind.has_vocabulary or not model.model:
        return
    likely = model.likely_models
    if not likely:
        return
    said = " or ".join(f"{name} ({tokenizer_model(name).description})" for name in likely)
    yield Finding(
        "error" if model.refusal else "warning",
        "model_doubtful",
        "The tokens were made for another tokenizer than the one that the file names.",
        "Each tokenizer model splits text in its own way, so the ids are not those that the model was trained with.",
        ", or ".join(model.set(_K.MODEL, name) for name in likely),
        model.key(_K.MODEL),
        {"likely": likely, "looks": model.looks._asdict()},
        f"{_K.MODEL} is {printable(model.model)}, but the tokens look like those of {said}.",
    )


def unconverted_pieces(model: Facts) -> Iterator[Finding]:
    """WordPiece as BERT's own files have it, with ## before what continues a word."""
    looks = model.looks
    if "lowercase" not in model.kind.flags or not looks.continues_words or looks.begins_words:
        return
    raw = [index for index, token in enumerate(model.tokens) if token.startswith("##")]
    yield Finding(
        "error",
        "pieces_unconverted",
        "The tokens are written as in BERT's vocab.txt, not as llama.cpp expects.",
        f"llama.cpp expects {SPACE} (U+2581) at the beginning of tokens that begin a word, and no ## on others. So "
        "nearly every word becomes the unknown token.",
        "convert the model again with llama.cpp's own converter, which rewrites them",
        model.token(raw[0]),
        {"count": len(raw), "ids": raw[:100]},
        f"{counted(len(raw), 'token begins', 'tokens begin')} with ##, and hardly any with U+2581.",
    )


def tokens_with_spaces(tokens: Sequence[str]) -> list[int]:
    """Return the tokens with spaces in them, of a vocabulary in which hardly any has U+2581 instead; else none."""
    spaced = list(compress(range(len(tokens)), map(contains, tokens, repeat(" "))))
    if len(spaced) <= _SHARE_SPACED * len(tokens):
        return []
    marked = sum(map(contains, tokens, repeat(SPACE)))
    return spaced if marked <= _SHARE_MARKED * len(spaced) else []


def has_capitals(vocabulary: Vocabulary) -> bool:
    """Check that plain tokens have capital letters, which never come out of texts in lower case.

    A few may have been added to a vocabulary in lower case.
    """
    plain = tokens_with(vocabulary.attributes, NORMAL)
    return sum(_CAPITAL.search(vocabulary.tokens[token]) is not None for token in plain) > 0.01 * len(plain)


def unconverted_spaces(model: Facts) -> Iterator[Finding]:
    """SentencePiece tokens with spaces, where llama.cpp looks for U+2581."""
    if model.tokenizer is None or model.kind.has_pre_tokenizer or not model.looks.is_telling:
        return
    escapes = model.tokenizer.vocabulary.pre_tokenizer.escape_whitespaces
    if not escapes or model.likely_models:
        return
    spaced = tokens_with_spaces(model.tokens)
    if not spaced:
        return
    yield Finding(
        "error",
        "spaces_unconverted",
        "The tokens have spaces where llama.cpp expects U+2581.",
        f"llama.cpp replaces spaces in a text by {SPACE} (U+2581) before it looks up tokens. So these never come out "
        "of a text, and words become shorter pieces.",
        "convert the model again with llama.cpp's own converter, which keeps U+2581",
        model.token(spaced[0]),
        {"count": len(spaced), "ids": spaced[:100]},
        f"{counted(len(spaced), 'token has a space in it', 'tokens have a space in them')}, and hardly any U+2581.",
    )


def scores(model: Facts) -> Iterator[Finding]:
    """Scores that are missing, the same for many tokens, in no order, or NaN, in models that need them."""
    if not model.kind.has_scores or not model.tokens:
        return
    if any(not tokenizer_model(name).has_scores for name in model.likely_models):
        return
    found = model.array(_K.SCORES)
    if _K.SCORES in model.file and not found:  # of a wrong type, which another check reports
        return
    wrong = [index for index, score in enumerate(found) if math.isnan(score)]
    if wrong:
        problem, what = "scores_not_numbers", "Some tokens have a score that is not a number."
        told = f"{counted(len(wrong), 'token has', 'tokens have')} NaN: {listed(wrong, len(wrong))}."
    elif not found:
        problem, what = "scores_missing", "The tokens have no scores."
        told = f"{_K.SCORES} is missing."
    elif min(found) == max(found) and len(found) > 1:
        problem, what = "scores_flat", "All tokens have the same score."
        told = f"The scores of all tokens are {found[0]:g}."
    elif model.kind.scores_fall and (tied := _tied(model, found)):
        problem, what = "scores_tied", "Many tokens share the highest score, as if their own were lost."
        told = f"{tied:.0%} of the tokens of text have the highest score; in other models, less than 1% do."
    elif model.kind.scores_fall and (rising := _rising(model, found)):
        problem = "scores_in_no_order"
        what = "The scores are not those of the tokens, as if they had been shuffled."
        told = f"The scores of other models fall with the ids; here {rising:.0%} of them rise."
    else:
        return
    yield Finding(
        "error" if wrong else "warning",
        problem,
        what,
        "llama.cpp chooses between the ways to split a word by scores, and these do not tell the right one.",
        "convert the model again, with the scores of its own tokenizer (tokenizer.model)",
        model.key(_K.SCORES),
        {"count": len(wrong)},
        told,
    )


def _tied(model: Facts, scores: Sequence[float]) -> float:
    """Return the share of normal tokens with the highest score, such as 0; 0.0 if that is usual.

    In llama.cpp's vocabularies with scores, that is at most 0.6 %. Many tokens may share a low score. Tokens that were
    added, as in Chinese-LLaMA, may all have 0: they are those beyond the family's, or the last ones with one score.
    """
    own = _of_text(model, scores[: model.family.size] if model.family else scores)
    while not model.family and len(own) > 1 and own[-1] == own[-2]:
        own.pop()
    share = own.count(max(own, default=0.0)) / max(len(own), 1)
    return share if len(own) >= _LEAST_SCORES and share > _SHARE_TIED else 0.0


def _rising(model: Facts, scores: Sequence[float]) -> float:
    """Return the share of normal tokens with a higher score than the one before; 0.0 if that is usual.

    In llama.cpp's vocabularies with scores, at most 0.05 % of them rise, and in a random order 50 %.
    """
    own = _of_text(model, scores)
    steps = [after - before for before, after in pairwise(own) if after != before]
    share = sum(step > 0 for step in steps) / max(len(steps), 1)
    return share if len(steps) >= _LEAST_SCORES and share > _SHARE_RISING else 0.0


def _of_text(model: Facts, scores: Sequence[float]) -> list[float]:
    """Return the scores of normal tokens; without types, of all tokens but bytes."""
    if model.types:
        return [score for score, kind in zip(scores, model.types) if kind == TokenType.NORMAL]
    of_bytes = {*model.byte_tokens.values()}
    return [score for token, score in enumerate(scores) if token not in of_bytes]


def unwritable_bytes(model: Facts) -> Iterator[Finding]:
    """Bytes without a token, in models with byte fallback; SPM finds those tokens by their texts, of any type."""
    tokenizer = model.tokenizer
    if tokenizer is None or not model.kind.needs_bytes or model.likely_models:
        return
    if model.kind.has_scores:
        missing = [
            byte
            for byte in UTF8_BYTES
            if BYTE_TOKENS[byte] not in model.ids
            and (byte >= 0x80 or chr(byte).replace(" ", SPACE) not in model.ids)
        ]
    else:
        short = (index for index, token in enumerate(model.tokens) if len(token) <= len("\\x00"))
        written = set(map(tokenizer.token_to_piece, short))
        missing = [byte for byte in UTF8_BYTES if bytes([byte]) not in written]
    if missing:
        yield Finding(
            "warning",
            "bytes_missing",
            "Some characters cannot be encoded.",
            "A character without a token is encoded as its bytes. If one of them has no token, llama.cpp throws an "
            "exception or never returns.",
            "convert the model again, with the byte tokens of its own tokenizer",
            model.key(_K.LIST),
            {"bytes": missing},
            f"{counted(len(missing), 'byte has', 'bytes have')} no token: "
            f"{listed([f'0x{byte:02X}' for byte in missing], len(missing), shown=str)}.",
        )


def missing_unknown(model: Facts) -> Iterator[Finding]:
    """No unknown token, in models without another fallback."""
    tokenizer = model.tokenizer
    if (
        tokenizer is None
        or not model.kind.needs_unknown
        or tokenizer.vocabulary.special_ids["unk"] is not None
    ):
        return
    yield Finding(
        "warning",
        "unknown_missing",
        "The file does not say which token stands for unknown text.",
        "For text without a token, llama.cpp gives the id -1, which no model accepts.",
        model.set_id(_K.UNK_ID),
        model.key(_K.UNK_ID),
        None,
        f"{_K.UNK_ID} is missing.",
    )


def _missing_charsmap(model: Facts) -> Finding:
    """A warning if all files of the model's family have a charsmap, else a note: some models were trained without."""
    key, family = _K.PRECOMPILED_CHARSMAP, model.family
    is_lost = family is not None and family.has_charsmap
    return Finding(
        "warning" if is_lost else "note",
        "charsmap_missing",
        "The file has no table by which text is normalized.",
        "Characters such as full-width letters then get other ids than those that the model was trained with."
        if is_lost
        else "SentencePiece models use it to normalize text, unless they were trained without normalization.",
        "convert the model again, with the table of its own tokenizer"
        if is_lost
        else "nothing to do if the model's own tokenizer normalizes nothing; otherwise convert the model again",
        model.key(key),
        None,
        f"{key} is missing." + (f" {family.name} files have it." if family and is_lost else ""),
    )


def charsmap(model: Facts) -> Iterator[Finding]:
    """A charsmap that is missing, or has an offset beyond its end."""
    if not model.kind.has_charsmap or not model.tokens:
        return
    key = _K.PRECOMPILED_CHARSMAP
    if key not in model.file:
        yield _missing_charsmap(model)
        return
    from ...models.charsmap import Charsmap

    data = bytes(byte & 0xFF for byte in model.array(key))
    if len(data) <= 4 + int.from_bytes(data[:4], "little"):  # opening the tokenizer says so
        return
    count, texts = Charsmap(data).damage()
    if count:
        shown = [text.decode("utf-8", "backslashreplace") for text in texts]
        yield Finding(
            "error",
            "charsmap_damaged",
            "The table by which text is normalized is damaged.",
            "llama.cpp throws an exception on text with these characters.",
            "convert the model again",
            model.key(key),
            {"count": count, "behind": [text[:_MOST_SHOWN].hex() for text in texts]},
            f"{counted(count, 'offset points', 'offsets point')} beyond the end of the charsmap, after "
            f"{listed(shown, count)}.",
        )
