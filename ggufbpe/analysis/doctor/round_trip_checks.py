"""Whether text survives encoding and decoding: bytes without a token, and sample texts that change."""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.errors import printable
from ..._util.spelling import BYTE_TOKENS
from ..._util.wording import counted, listed
from ...gguf.constants import TokenizerKey, TokenType
from ...models.bpe.merge import BYTE_CHARS
from .facts import Facts
from .finding import Finding
from .template_checks import makes_embeddings

_K = TokenizerKey

SAMPLES = (
    "The quick brown fox isn't lazy; it's 3.14159, (x+y)*2 == 42!",
    "def f(a_b, *c):\n\treturn {'k': [a_b[0] ** 2, \"x\\n\"]}  # 100%\r\n\r\n",
    "   leading,  double   and trailing spaces   \n \n\n",
    "Größe, naïve, façade, œuvre, Åse, İstanbul, e\u0301 ﬁ Ω",
    "Привет, мир. Γειά σου Κόσμε. Բարեւ",
    "مرحبا بالعالم، ١٢٣ שָׁלוֹם עוֹלָם",
    "नमस्ते दुनिया। ภาษาไทย বাংলা",
    "你好，世界。日本語のテキスト、한국어 문장",
    "👩\u200d👩\u200d👧 🙂🏽 🇩🇪 \ufe0f ✓ → ∑ € ½ ²",
    "\u00a0\u2003\u3000\ufeff\u200b\u2028 \U00010348 \U0001d7d8 \ufffd",
)
UTF8_BYTES = [*range(0x80), *range(0x80, 0xC0), *range(0xC2, 0xF5)]
_RARE_BYTES = {*range(0x20), 0x7F, *range(0xF1, 0xF5)} - {9, 10, 13}


def lost_bytes(model: Facts) -> Iterator[Finding]:
    """Bytes of UTF-8 without a token."""
    tokenizer = model.tokenizer
    if tokenizer is None or model.kind.drops_white_space or model.likely_models:
        return
    if tokenizer.vocabulary.pre_tokenizer.byte_encode:
        missing = [byte for byte in UTF8_BYTES if BYTE_CHARS[byte] not in model.ids]
    else:
        missing = [byte for byte in UTF8_BYTES if BYTE_TOKENS[byte] not in model.ids]
    if missing:
        rare = _RARE_BYTES.issuperset(missing)
        yield Finding(
            "note" if rare else "warning",
            "bytes_missing",
            f"Some {'rare ' * rare}characters cannot be encoded.",
            "llama.cpp drops bytes without a token."
            + (" These only occur in control characters and in planes without text." if rare else ""),
            "nothing to do" if rare else "convert the model again: a byte-level vocabulary has all 256",
            model.key(_K.LIST),
            {"bytes": missing},
            f"{counted(len(missing), 'byte has', 'bytes have')} no token: "
            + listed([f"0x{byte:02X}" for byte in missing], len(missing), shown=str)
            + ".",
        )


def byte_types(model: Facts) -> Iterator[Finding]:
    """Tokens of bytes that are not of type BYTE."""
    if not (wrong := _wrong_bytes(model)):
        return
    is_refused, writes_nothing = model.tokenizer is None, makes_embeddings(model)
    yield Finding(
        "error" if is_refused else "note" if writes_nothing else "warning",
        "byte_type",
        "Tokens of bytes are stored as another type.",
        "llama.cpp takes only tokens of type BYTE for bytes, and refuses the file."
        if is_refused
        else "When the model generates such a token, the text <0x0A>, or nothing, is shown instead of the byte.",
        "nothing to do: a model of embeddings generates no tokens"
        if writes_nothing and not is_refused
        else model.set_types(BYTE=wrong),
        model.key(_K.LIST) if is_refused else model.token(wrong[0]),
        {"count": len(wrong), "ids": wrong[:100]},
        f"{counted(len(wrong), 'token is written as a byte and is', 'tokens are written as bytes and are')} not of "
        f"type BYTE: {listed(wrong, len(wrong), shown=model.quoted)}.",
    )


def _wrong_bytes(model: Facts) -> list[int]:
    """Return the tokens that are written as bytes and decode to something else, ascending.

    In a model that cannot be opened, those of another type, if it has the tokens of all bytes.
    """
    tokens, tokenizer = model.byte_tokens, model.tokenizer
    if tokenizer is None:
        is_all = len(tokens) == len(BYTE_TOKENS) and not model.kind.has_pre_tokenizer
        return sorted(each for each in tokens.values() if is_all and model.type_of(each) != TokenType.BYTE)
    return sorted(each for byte, each in tokens.items() if tokenizer.token_to_piece(each) != bytes((byte,)))


def round_trips(model: Facts) -> Iterator[Finding]:
    """Sample texts that decoding does not restore."""
    tokenizer = model.tokenizer
    if tokenizer is None or model.kind.drops_white_space or model.kind.normalizes or model.kind.needs_bytes:
        return
    if model.likely_models or _wrong_bytes(model):
        return
    changed = []
    for sample in SAMPLES:
        ids = tokenizer.encode(sample, add_special=False, parse_special=False)
        if b"".join(map(tokenizer.token_to_piece, ids)) != sample.encode():
            back = b"".join(map(tokenizer.token_to_piece, ids)).decode("utf-8", "replace")
            at = next(
                (i for i, (a, b) in enumerate(zip(sample, back)) if a != b), min(len(sample), len(back))
            )
            changed.append((sample, at))
    if changed:
        sample, at = changed[0]
        yield Finding(
            "warning",
            "round_trip",
            "Some text changes when it is encoded and decoded again.",
            "The model never sees what is lost in encoding.",
            "convert the model again, if its original tokenizer keeps such text",
            model.key(_K.LIST),
            {"samples": [sample for sample, _ in changed]},
            f"{len(changed)} of {len(SAMPLES)} sample texts change: the first is {printable(sample, 40)}, from "
            f"character {at} on, {printable(sample[at : at + 1])}.",
        )


def dropped_spaces(model: Facts) -> Iterator[Finding]:
    """Spaces that decoding drops."""
    tokenizer = model.tokenizer
    if tokenizer is None or not tokenizer.vocabulary.pre_tokenizer.clean_spaces:
        return
    text = "It 's here , now !"
    ids = model.encode(text)
    if min(ids, default=0) < 0:  # an unknown token, which the file does not have
        return
    back, pieces = tokenizer.decode(ids), b"".join(map(tokenizer.token_to_piece, ids)).decode()
    if back.strip() != pieces.strip():
        yield Finding(
            "note",
            "clean_spaces",
            "Decoding drops spaces before punctuation.",
            f"llama.cpp does so for {tokenizer.pre or tokenizer.model}, and no key can change it. "
            "It does not affect the ids, only the text that several of them are decoded to.",
            "nothing to do; tokens that are decoded one by one (token_to_piece) keep all spaces",
            model.key(_K.PRE if tokenizer.pre else _K.MODEL),
            None,
            f"{printable(pieces.strip())} comes back as {printable(back.strip())}.",
        )


def line_break(model: Facts) -> Iterator[Finding]:
    """A vocabulary without a token for the newline character."""
    tokenizer = model.tokenizer
    if tokenizer is None or model.kind.drops_white_space or model.likely_models:
        return
    if tokenizer.nl_id is None and not model.kind.needs_bytes:  # whose bytes `unwritable_bytes` reports
        yield Finding(
            "warning",
            "no_line_break",
            "The vocabulary has no token for a line break.",
            "Line breaks in texts are lost.",
            "convert the model again",
            model.key(_K.LIST),
        )
