"""The endpoints behind the page: tokens with their details, the trace of a word, and where two models differ."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analysis.diagnose.id_diagnosis import search
from ..analysis.diagnose.variants import variants_of
from ..analysis.explain.explain_words import Quote, Sentence, symbol_reader
from ..analysis.explain.long_text_parts import Parts
from ..analysis.explain.survey import UntraceableError, Wanted, survey
from ..analysis.explain.why_not import why_not
from ..analysis.explain.why_not_words import answer_in_words
from ..analysis.verify.id_comparison import verify
from ..analysis.verify.result import Difference
from ..analysis.verify.shrink import Shrinking, shrink
from ..analysis.views.explain_json import token_in_word
from ..chat.token_origins import chat_tokens
from ..models.tracers.trace_types import Word
from ..tokenizer import Tokenizer
from ..tokenizer.trace import Trace, names_of
from .failures import RequestError, too_large
from .llama_server import template_in_force
from .request_body import (
    MOST_SEARCHED,
    MOST_SHOWN,
    MOST_TRACED,
    bounded_text,
    given_flags,
    given_texts,
    require_object,
    required_ids,
    required_text,
)
from .served_models import Models

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_FOUND = 200  # tokens of a search in the vocabulary
# the types of tokens that are matched before plain text is encoded
_CUT_OUT = {"CONTROL", "USER_DEFINED", "UNKNOWN"}


def tokens_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/tokens`: the ids of a text with their byte offsets, and the facts of each distinct token.

    With `ids` instead, the tokens of these ids, whose pieces follow each other in the `text` of the answer. With
    `messages` instead of `text`, the body is a chat as llama-server takes it; the answer then has the prompt and
    the origins of its parts, too, as in `ggufbpe chat --json`, and in `notes` what may be unexpected of the prompt.
    """
    given = require_object(body)
    tokenizer = models.of(body)
    if "ids" in given:
        return _of_ids(tokenizer, required_ids(given, "ids", MOST_SEARCHED))
    if "messages" not in given:
        text = bounded_text(required_text(given, "text"), MOST_SHOWN)
        flags = given_flags(given)
        ids, spans = tokenizer.encode_with_offsets_to_numpy(
            text, add_special=flags["add_special"], parse_special=flags["parse_special"]
        )
        return _of_tokens(tokenizer, text, ids, spans)
    template_in_force(tokenizer)
    rendered = tokenizer.chats.parts(given)
    prompt = bounded_text(rendered.prompt.decode("utf-8", "replace"), MOST_SHOWN)
    tokens = chat_tokens(tokenizer, rendered)
    ids, spans = np.array(tokens.ids, np.int32), np.array(tokens.spans, np.int64)
    found = _of_tokens(tokenizer, prompt, ids, spans)
    return {**found, "prompt": prompt, "notes": _notes(tokenizer, given), **tokens.to_origins()}


def _notes(tokenizer: Tokenizer, body: dict[str, Any]) -> list[str]:
    """What `ggufbpe chat` says of the model's template on standard error."""
    notes = []
    if not tokenizer.chat_templates:
        notes.append(
            "The model has no chat template. Like llama-server, this uses ChatML, whose markers may be plain "
            "text to the model."
        )
    if body.get("tools") and not tokenizer.chats.shows_tools():
        notes.append("The template does not show the tools.")
    return notes


def _of_ids(tokenizer: Tokenizer, ids: list[int]) -> dict[str, Any]:
    """The facts of ids, and their pieces as one text. `ValueError` for an id that does not exist."""
    pieces = list(map(tokenizer.token_to_piece, ids))
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    spans = (
        np.stack([ends - [len(piece) for piece in pieces], ends], axis=1)
        if ids
        else np.empty((0, 2), np.int64)
    )
    text = b"".join(pieces)
    found = _of_tokens(tokenizer, text.decode("utf-8", "replace"), np.array(ids, np.int32), spans)
    return {**found, "text": text.decode("utf-8", "replace"), "bytes": len(text)}


def vocabulary_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/vocabulary`: the tokens whose bytes contain those of `query`, the shortest first, and how many there are.

    A query of digits also finds the token with that id, which comes first. At most 200 are listed.
    """
    given = require_object(body)
    query, tokenizer = bounded_text(required_text(given, "query"), MOST_TRACED), models.of(body)
    part, pieces = query.encode(), tokenizer.token_bytes
    found = sorted(
        (token for token, piece in enumerate(pieces) if part in piece), key=lambda token: len(pieces[token])
    )
    if query.isascii() and query.isdigit() and len(query) < 10 and int(query) < len(pieces):
        found = [int(query), *(token for token in found if token != int(query))]
    shown = [{"id": token, **_token(tokenizer, token)} for token in found[:_MOST_FOUND]]
    return {"found": shown, "count": len(found)}


def _of_tokens(
    tokenizer: Tokenizer, text: str, ids: NDArray[np.int32], spans: NDArray[np.int64]
) -> dict[str, Any]:
    """The ids of a text, their byte offsets, and the facts of each distinct token."""
    return {
        "ids": ids,
        "spans": spans.ravel(),
        "tokens": {str(token): _token(tokenizer, token) for token in np.unique(ids).tolist() if token >= 0},
        "characters": len(text),
        "bytes": len(text.encode()),
    }


def _token(tokenizer: Tokenizer, token: int) -> dict[str, Any]:
    types = names_of(tokenizer.token_attributes(token))
    return {
        **_shown(tokenizer.token_to_piece(token)),
        "text": tokenizer.vocabulary.tokens[token],
        "types": types,
        "special": not _CUT_OUT.isdisjoint(types),
    }


def _shown(piece: bytes) -> dict[str, Any]:
    """Bytes as text (null if they are not UTF-8) and in hexadecimal."""
    try:
        return {"piece": piece.decode(), "bytes": piece.hex()}
    except UnicodeDecodeError:
        return {"piece": None, "bytes": piece.hex()}


def word_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/word`: the token at index `token`, and its word with every step, as in `ggufbpe explain --token`.

    `shown` has each symbol of the word in readable form.
    """
    given = require_object(body)
    data = bounded_text(required_text(given, "text"), MOST_SHOWN).encode()
    number = given.get("token")
    if type(number) is not int or number < 0:
        raise RequestError(400, "'token' must be the index of a token, counted from 0")
    wanted, flags, tokenizer = Wanted(token=number), given_flags(given), models.of(body)
    try:
        seen = survey(tokenizer, BytesIO(data), wanted, **flags, fragments=0, most=MOST_SEARCHED)
    except UntraceableError as error:
        raise too_large(str(error)) from None
    if number >= seen.totals.tokens:
        raise RequestError(400, f"the text has {seen.totals.tokens} tokens")
    own = number - seen.before.tokens
    answer = token_in_word(seen.trace, own, seen.before)
    word = seen.trace.tokens[own].word
    if word is not None:
        answer["in_word"]["shown"] = _symbols(seen.trace, seen.trace.words[word])
    return answer


def _symbols(trace: Trace, word: Word) -> dict[str, dict[str, Any]]:
    read = symbol_reader(trace, word)
    symbols = {*word.written, *(symbol.text for symbol in word.symbols)}
    for merge in word.merges:
        symbols |= {merge.left, merge.right, merge.left + merge.right}
    return {symbol: _shown(read(symbol)) for symbol in symbols}


def why_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/why`: why `piece` is not a token of the text, in sentences; a quote in one is an object with its `text`."""
    given = require_object(body)
    text = bounded_text(required_text(given, "text"), MOST_TRACED)
    piece = bounded_text(required_text(given, "piece"), MOST_TRACED)
    flags, tokenizer = given_flags(given), models.of(body)
    model = Parts(tokenizer, BytesIO(), **flags).model
    answer = why_not(tokenizer, text, piece, **flags)
    return {"sentences": [_sentence(each) for each in answer_in_words(model, answer, from_one=True)]}


def _sentence(said: Sentence) -> list[str | dict[str, str]]:
    return [{"text": _text(part.text)} if isinstance(part, Quote) else part for part in said]


def _text(quoted: str | bytes) -> str:
    return quoted.decode("utf-8", "replace") if isinstance(quoted, bytes) else quoted


def parting_answer(models: Models, body: Any) -> dict[str, Any]:
    """`/v1/parting`: the steps in which two models differ on `text`, the causes, and the smallest text that differs.

    With `ids` instead of a second model: where they differ from the model's own. If one change of the model explains
    all of them, `smallest` is the smallest text for which it makes a difference, with the ids of both sides.
    """
    given = require_object(body)
    text = bounded_text(required_text(given, "text"), MOST_SEARCHED)
    adds, parses = given_flags(given).values()
    if "ids" in given:
        ours, ids = models.of(body), required_ids(given, "ids", MOST_SEARCHED)
        found = verify(ours, [ids], [text], add_special=adds, parse_special=parses)
        # else the search would try once more, in vain, what the comparison has tried
        is_explained = any(map(_is_explained, found.differences))
        smallest = _smallest(ours, text.encode(), ids, adds, parses) if is_explained else None
        return {**found.to_dict(), "smallest": smallest}
    names = given_texts(given, "models", 2)
    if len(names) != 2:
        raise RequestError(400, "'models' must be an array of two names")
    ours, theirs = (models.named(models.known(name)) for name in names)
    return verify(ours, theirs, [text], add_special=adds, parse_special=parses).to_dict()


def _is_explained(difference: Difference) -> bool:
    """Whether a change explains a difference, and not only that the ids are those of another text."""
    return difference.explains == 1 and all(cause.id != "text_differs" for cause in difference.causes)


def _smallest(
    tokenizer: Tokenizer, text: bytes, ids: list[int], add_special: bool, parse_special: bool
) -> dict[str, Any] | None:
    """The smallest text that shows the cause of all ids; None for another text, a limit on ids, or no known cause."""

    def ours(part: bytes) -> list[int]:
        return tokenizer.encode(part, add_special=add_special, parse_special=parse_special)

    if ids == ours(text):
        return None
    answers = search(tokenizer, text, ids, add_special=add_special, parse_special=parse_special)
    for variant in (answer.variant for answer in answers):
        if variant is not None and variant.text == text and variant.kept == (None, None):
            break
    else:
        return None
    shared = variants_of(tokenizer)

    def theirs(part: bytes) -> list[int]:
        return variant._replace(text=part).ids(shared)

    smallest = shrink(text, Shrinking(lambda parts: [ours(part) != theirs(part) for part in parts]))
    return {"text": smallest.decode("utf-8", "replace"), "ours": ours(smallest), "theirs": theirs(smallest)}
