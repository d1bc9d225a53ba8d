"""Checks the metadata besides the template: strings that a program prints or shows, and the names of tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from ...._util.errors import GGUFError, InvalidUTF8Error, printable
from ...._util.utf8 import is_utf8
from ....gguf.constants import GGUFValueType, TokenizerKey, TokenType
from ....gguf.metadata import Metadata
from ....gguf.reader import GGUFFile
from ..finding import Finding, Where
from .characters import odd_characters, skeleton
from .rules import RULES
from .texts import WEB_CODE

_K = TokenizerKey
_TEMPLATES = "tokenizer.chat_template"
_LISTS_OF_TOKENS = frozenset((_K.LIST, _K.MERGES))
_MOST_STRINGS = 10_000  # of one array
_MOST_CHARACTERS = 1 << 20  # of one string
_MOST_FOUND = 5  # of one key, and tokens of one kind
_SCHEME = re.compile(r"^\s*(?:javascript|vbscript|data|file):", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[▁ĠĊ\s]*(?:[^\W\d_]{2,}[▁Ġ\s]*)+[.,!?]?")
_USUAL_NAMES = frozenset(
    ("unk", "pad", "bos", "eos", "sep", "cls", "mask", "eot", "eod", "eop", "sop", "bom", "eom")
)
_FIX = (
    "remove the key, or set it to another text, with `ggufbpe fix`; better take the file from its publisher"
)


def string_findings(file: GGUFFile) -> Iterator[Finding]:
    """Findings about the keys and their strings; of templates, tokens and merges, only whether they are UTF-8."""
    for key in file:
        for id, evidence in _odd(key, False):
            yield _found(id, key, file.offset(key), f"The name of a key has it: {evidence}")
        is_of_tokens = key in _LISTS_OF_TOKENS and file.element_type(key) is GGUFValueType.STRING
        if is_of_tokens and file.strings(key) is not None:  # the compiled engine knows that they are UTF-8
            continue
        raws = file.raw_strings(key, None if is_of_tokens else _MOST_STRINGS)
        broken = (index for index, raw in enumerate(raws) if not is_utf8(raw))
        for index in islice(broken, _MOST_FOUND):
            yield _not_utf8(file, key, index, raws[index])
        if key.startswith(_TEMPLATES) or is_of_tokens:
            continue
        if file.array_length(key) > len(raws) > 0:
            yield _found("list_large", key, file.offset(key), f"It has {file.array_length(key):,} strings.")
        seen: set[str] = set()
        for raw in raws:
            for id, evidence in _odd(decoded(raw)[:_MOST_CHARACTERS], True):
                if id not in seen and len(seen) < _MOST_FOUND:
                    seen.add(id)
                    yield _found(id, key, file.offset(key), evidence)


def decoded(raw: bytes) -> str:
    """A string of a file with U+FFFD in the place of what is not UTF-8."""
    return raw.decode("utf-8", "replace")


def _not_utf8(file: GGUFFile, key: str, index: int, raw: bytes) -> Finding:
    """The finding about one string; of tokens a warning, for old converters wrote tokens of single bytes so."""
    is_array = file.element_type(key) is not None
    offset = file.element_offset(key, index) if is_array else file.offset(key)
    evidence = f"It is {printable(raw.decode('utf-8', 'backslashreplace'), 60)}."
    if key not in _LISTS_OF_TOKENS:
        return _found("not_utf8", key, offset, evidence)
    return _found("not_utf8", key, offset, evidence, index)._replace(severity="warning")


def _odd(text: str, is_value: bool) -> Iterator[tuple[str, str]]:
    for odd in odd_characters(text, is_template=False):
        yield odd.id, f"It has {printable(odd.shown)}: {printable(text[max(odd.at - 20, 0) :], 60)}."
    if not is_value:
        return
    if match := WEB_CODE.search(text) or _SCHEME.search(text):
        yield (
            "web_code",
            f"It has {printable(match[0])}: {printable(text[max(match.start() - 10, 0) :], 60)}.",
        )
    if "{{" in text and re.search(r"__\w+__|popen", text):
        yield "sandbox_escape", f"It is {printable(text)}."


def _found(id: str, key: str, offset: int | None, evidence: str, token: int | None = None) -> Finding:
    rule = RULES[id]
    what = rule.what.replace("The chat template", "A value of the metadata").replace(
        "in it", "in the metadata"
    )
    return Finding(
        rule.severity,
        id,
        what,
        rule.why,
        _FIX if rule.severity != "note" else "nothing to do",
        Where(key, token, offset),
        None,
        evidence,
    )


def token_names(metadata: Metadata, file: GGUFFile) -> Iterator[Finding]:
    """Findings about the texts of special tokens, the first few of each kind. `file` is what `metadata` is made of."""
    counts: Counter[str] = Counter()
    for id, evidence, token in _odd_tokens(metadata, file):
        counts[id] += 1
        if counts[id] <= _MOST_FOUND:  # where a token lies takes a walk over all before it
            yield _of_token(metadata, id, evidence, token)


def _odd_tokens(metadata: Metadata, file: GGUFFile) -> Iterator[tuple[str, str, int]]:
    """What is odd about special tokens: the id of the rule, the evidence, and the token."""
    try:
        types = metadata[_K.TOKEN_TYPE]
    except (GGUFError, KeyError):
        return
    try:
        tokens = metadata[_K.LIST]
    except InvalidUTF8Error:
        tokens = list(map(decoded, file.raw_strings(_K.LIST)))
    except (GGUFError, KeyError):
        return
    if not isinstance(tokens, list) or not isinstance(types, list):
        return
    looks: dict[str, int] = {}
    special = (int(TokenType.CONTROL), int(TokenType.USER_DEFINED))
    for token, (text, kind) in enumerate(zip(tokens, types)):
        if kind not in special or not isinstance(text, str):
            continue
        if kind == int(TokenType.CONTROL):
            for id, evidence in _odd(text, False):
                yield id, f"A control token has it. {evidence}", token
            if _PLAIN_WORD.fullmatch(text) and text.strip("▁Ġ ").lower() not in _USUAL_NAMES:
                yield "control_word", f"It is {printable(text)}.", token
        look = skeleton(text)
        if look and looks.setdefault(look, token) != token and len(look) > 2:
            other = printable(str(tokens[looks[look]]))
            yield "token_lookalike", f"It is {printable(text)}, like token {looks[look]}, {other}.", token


def _of_token(metadata: Metadata, id: str, evidence: str, token: int) -> Finding:
    found = _found(id, _K.LIST, metadata.element_offset(_K.LIST, token), evidence, token)
    return found._replace(
        fix="compare the token with that of the publisher's file; if they differ, take that file"
    )
