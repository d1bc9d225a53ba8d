"""Writes and reads tokenizer_config.json: special tokens, the chat template, and values that only a GGUF has.

Values for which a tokenizer.json has no field stand under "gguf", by the names of the keys; other readers ignore that
entry.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from ..._util.errors import printable
from ..._util.spelling import BYTE_OF, unescape_spaces
from ...gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey, TokenType
from ...models.special_ids import SPECIAL_IDS
from ...models.token_table import ATTRIBUTE_OF_TYPE
from ...models.vocabulary import CONTROL, LSTRIP, RSTRIP, UNKNOWN, UNUSED, Vocabulary
from ..imported import NotImportableError

_K = TokenizerKey
_UNDEFINED = 0  # what llama.cpp calls any type that it does not know
LARGEST_FLOAT = 3.4028234663852886e38
DEFAULT = "default"  # the name of the template that has none in a GGUF
ChatTemplates = (
    str | Mapping[str, str] | None
)  # the default one, or several by name, of which the default one is ""
GGUF_SECTION, OTHER_TYPES, SCORES = "gguf", "token_types", "scores"
CONFIG_TOKENS = (
    ("bos", _K.BOS_ID),
    ("eos", _K.EOS_ID),
    ("unk", _K.UNK_ID),
    ("sep", _K.SEP_ID),
    ("pad", _K.PAD_ID),
    ("mask", _K.MASK_ID),
)
_ADDITIONAL = ("additional_special_tokens", "extra_special_tokens")

SPECIAL_ID_KEYS = {name: keys[0] for name, keys, _ in SPECIAL_IDS}
TYPE_OF_ATTRIBUTE = {attribute: TokenType(kind) for kind, attribute in ATTRIBUTE_OF_TYPE.items()}


# ---- written --------------------------------------------------------------------------------------------


def tokenizer_config(
    vocabulary: Vocabulary,
    chat_template: ChatTemplates,
    told: Sequence[int],
    scores: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """What else `transformers` needs, and what only a GGUF has a place for.

    `told` has the type of each token as tokenizer.json gives it; `scores`, those that it does not give.
    """
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    added_behind = tuple(vocabulary.tokenizer_model.added_names(True, True)[1])
    for name, _ in CONFIG_TOKENS:
        token = vocabulary.special_ids[name]
        if token is not None and token in vocabulary.special_token_ids:  # the default 11 does not count
            named = "cls" if name == "bos" and added_behind == ("sep",) else name
            config[f"{named}_token"] = vocabulary.tokens[token]
    config["add_bos_token"], config["add_eos_token"] = vocabulary.add_bos, vocabulary.add_eos
    config["clean_up_tokenization_spaces"] = vocabulary.pre_tokenizer.clean_spaces
    if chat_template:
        config["chat_template"] = _as_transformers(chat_template)
    config[GGUF_SECTION] = _gguf_section(vocabulary, told)
    if scores:
        config[GGUF_SECTION][SCORES] = _by_score(scores)
    return config


def _as_transformers(templates: str | Mapping[str, str]) -> str | list[dict[str, str]]:
    """The default template alone as text, several as a list."""
    if isinstance(templates, str):
        return templates
    if templates.keys() == {""}:
        return templates[""]
    return [{"name": name or DEFAULT, "template": template} for name, template in templates.items()]


def _gguf_section(vocabulary: Vocabulary, told: Sequence[int]) -> dict[str, Any]:
    """Keys of a GGUF by their names."""
    texts = {
        KEY_ARCHITECTURE: vocabulary.architecture,
        KEY_NAME: vocabulary.name,
        TokenizerKey.MODEL: vocabulary.model,
        TokenizerKey.PRE: vocabulary.pre,
    }
    ids = {
        SPECIAL_ID_KEYS[name]: token
        for name, token in vocabulary.special_ids.items()
        if token is not None and not _found_by_text(vocabulary, token)
    }
    flags = {
        TokenizerKey.ADD_BOS: vocabulary.add_bos,
        TokenizerKey.ADD_EOS: vocabulary.add_eos,
        TokenizerKey.ADD_SEP: vocabulary.add_sep,
        TokenizerKey.ADD_PREFIX: vocabulary.add_space_prefix,
    }
    if vocabulary.tokenizer_model.normalizes:
        flags[TokenizerKey.REMOVE_EXTRA_WS] = vocabulary.remove_extra_whitespaces
        flags[TokenizerKey.NORMALIZER_LOWERCASE] = vocabulary.lowercase
        flags[TokenizerKey.NORMALIZER_STRIP_ACCENTS] = vocabulary.strip_accents
    if vocabulary.nfc:
        flags[TokenizerKey.NORMALIZER_NFC] = True
    return {**texts, **ids, **flags, OTHER_TYPES: _other_types(vocabulary, told)}


def _found_by_text(vocabulary: Vocabulary, token: int) -> bool:
    """Whether loading made the token special because of its text; it will do so again."""
    kind = vocabulary.attributes[token] & ~(LSTRIP | RSTRIP)
    return bool(kind & CONTROL and kind != CONTROL)


def types_told(vocabulary: Vocabulary, *, tells_bytes: bool) -> list[TokenType]:
    """The token types that a tokenizer.json gives: those of added tokens and of byte tokens."""
    special = set(vocabulary.special_token_ids)
    types = []
    for token, (text, kind) in enumerate(zip(vocabulary.tokens, vocabulary.attributes)):
        if token in special:
            types.append(TokenType.CONTROL if kind & (CONTROL | UNKNOWN) else TokenType.USER_DEFINED)
        else:
            types.append(TokenType.BYTE if tells_bytes and text in BYTE_OF else TokenType.NORMAL)
    return types


def _other_types(vocabulary: Vocabulary, told: Sequence[int]) -> dict[str, list[int]]:
    """The tokens whose type is not the one `told`, by the number of the type."""
    ids_by_type: dict[str, list[int]] = {}
    for token, (attribute, known) in enumerate(zip(vocabulary.attributes, told)):
        kind = attribute & ~(LSTRIP | RSTRIP)
        if kind == CONTROL | UNUSED and "unused" in vocabulary.tokens[token]:
            kind = CONTROL  # loading marks such tokens, and will again
        if kind != CONTROL and _found_by_text(vocabulary, token):
            kind &= ~CONTROL
        own = TYPE_OF_ATTRIBUTE.get(kind, _UNDEFINED)
        if own != known:
            ids_by_type.setdefault(str(int(own)), []).append(token)
    return ids_by_type


def _by_score(scores: Mapping[int, float]) -> dict[str, list[int]]:
    """The ids of the tokens of each score."""
    ids_by_score: dict[str, list[int]] = {}
    for token, score in scores.items():
        ids_by_score.setdefault(repr(score), []).append(token)  # JSON has no infinity
    return ids_by_score


# ---- read -----------------------------------------------------------------------------------------------


class HFConfig:
    """A tokenizer_config.json, which may lack anything, and two older files beside it.

    `named` is special_tokens_map.json, `added` is added_tokens.json: an id by the text of each token. `beside` is the
    name of the file that they are beside.
    """

    def __init__(
        self,
        config: dict[str, Any],
        named: dict[str, Any] | None = None,
        added: dict[str, Any] | None = None,
        beside: str = "tokenizer.json",
    ) -> None:
        self.config, self._named, self._added, self.beside = config, named or {}, added or {}, beside
        section = config.get(GGUF_SECTION)
        self.section: dict[str, Any] = section if isinstance(section, dict) else {}

    @property
    def is_empty(self) -> bool:
        """Whether there is none of the three files, or nothing in them."""
        return not (self.config or self._named or self._added)

    def with_config(self, changes: dict[str, Any]) -> HFConfig:
        """These settings with some keys of tokenizer_config.json replaced."""
        return HFConfig({**self.config, **changes}, self._named, self._added, self.beside)

    def with_templates(self, texts: Mapping[str, str]) -> HFConfig:
        """These settings with templates from files: each replaces the one of its name, and a default one replaces all.

        So it is in transformers, except that there the others also replace all.
        """
        replaced = list(texts)  # not a set: names in the settings may be anything
        kept = [] if DEFAULT in texts else self._template_entries
        kept = [entry for entry in kept if not (isinstance(entry, dict) and entry.get("name") in replaced)]
        new = [{"name": name, "template": text} for name, text in texts.items()]
        return self.with_config({"chat_template": [*kept, *new]}) if texts else self

    def with_defaults(self, named: Mapping[str, str]) -> HFConfig:
        """These settings with special tokens for the keys that neither file names, such as "eos_token"."""
        return HFConfig(self.config, {**named, **self._named}, self._added, self.beside)

    def text(self, key: str) -> str:
        """A string that an export recorded; "" if there is none."""
        value = self.section.get(key)
        return value if isinstance(value, str) else ""

    def flag(self, key: str) -> bool | None:
        """A flag that an export recorded; None if there is none."""
        value = self.section.get(key)
        return value if isinstance(value, bool) else None

    def token(self, name: str) -> str:
        """The text of a special token; where the file names no BOS or EOS, CLS and SEP stand for them."""
        token = self.written_token(name)
        return (
            token
            if token or self.section
            else self.written_token({"bos": "cls", "eos": "sep"}.get(name, name))
        )

    def written_token(self, name: str) -> str:
        """The text of the special token that the files name so; "" if they name none."""
        for place in (self.config, self._named):
            token = place.get(f"{name}_token")
            content = token.get("content") if isinstance(token, dict) else token  # a string or an object
            if isinstance(content, str) and content:
                return content
        return ""

    def named_tokens(self) -> Iterator[str]:
        """The texts of all special tokens that tokenizer_config.json and special_tokens_map.json name."""
        yield from filter(None, map(self.written_token, (*(name for name, _ in CONFIG_TOKENS), "cls")))
        yield from self.additional_tokens()

    def additional_tokens(self) -> Iterator[str]:
        """The texts of the special tokens that these files list without a name of the tokenizer's."""
        for place, key in product((self.config, self._named), _ADDITIONAL):
            listed = place.get(key) or ()
            for token in listed.values() if isinstance(listed, dict) else listed:
                text = token.get("content") if isinstance(token, dict) else token
                if isinstance(text, str) and text:
                    yield text

    def with_flags(self, added: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The added tokens of a tokenizer.json with the flags that transformers gives them: these files' come first.

        A token that they name, as EOS for example, is special; our own exports record types otherwise.
        """
        beside = {token["content"]: token for _, token in self._added_tokens_decoder()}
        named = set() if self.section else set(self.named_tokens()) - set(self.additional_tokens())
        flagged = []
        for token in added:
            if other := beside.get(token["content"]):
                token = {"normalized": not other.get("special"), **other, "id": token["id"]}
            flagged.append({**token, "special": True} if token["content"] in named else token)
        return flagged

    def added_tokens(self) -> Iterator[tuple[int, str, TokenType]]:
        """Tokens that are added to a vocabulary without them, as convert_hf_to_gguf.py reads them."""
        for text, index in self._added.items():
            yield _id_of(index), text, TokenType.USER_DEFINED
        for index, token in self._added_tokens_decoder():
            text = token["content"]
            if token.get("special") or looks_special(text):
                yield index, text, TokenType.CONTROL
            else:
                yield index, unescape_spaces(text), TokenType.USER_DEFINED

    def added_by_transformers(self, taken: Container[int]) -> list[dict[str, Any]]:
        """The tokens that transformers adds, in order: `taken` are the ids of those that a tokenizer.json adds.

        added_tokens.json counts only without an added_tokens_decoder, and for ids that are not taken.
        """
        entries = dict(self._added_tokens_decoder())
        if "added_tokens_decoder" not in self.config:
            older = ((_id_of(index), text) for text, index in self._added.items())
            entries = {index: {"content": text} for index, text in older if index not in taken}
        named = set(self.named_tokens())
        tokens = []
        for _, token in sorted(entries.items()):
            special = bool(token.get("special")) or token["content"] in named
            tokens.append({"normalized": not special, **token, "special": special})
        return tokens

    def _added_tokens_decoder(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for index, token in (self.config.get("added_tokens_decoder") or {}).items():
            if not isinstance(token["content"], str):
                raise NotImportableError(f"the added token {printable(str(index))} has no text")
            yield _id_of(index), token

    def written_ids(self, known: Container[str], size: int) -> Iterator[tuple[str, int]]:
        """The special ids that an export recorded, except those of `known` keys."""
        for key in SPECIAL_ID_KEYS.values():
            token = self.section.get(key)
            if token is None or key in known:
                continue
            if type(token) is not int or not 0 <= token < size:
                raise NotImportableError(
                    f"tokenizer_config.json has {printable(str(token))} for {key}, which is not a token id"
                )
            yield key, token

    def set_types(self, types: list[int]) -> None:
        """Set the types that an export recorded."""
        kinds = {str(kind): kind for kind in (_UNDEFINED, *map(int, TokenType))}
        for kind, ids in (self.section.get(OTHER_TYPES) or {}).items():
            if kind not in kinds:
                raise NotImportableError(
                    f"tokenizer_config.json has the token type {printable(kind)}, which does not exist"
                )
            for index in ids:
                if not 0 <= index < len(types):
                    raise NotImportableError(
                        f"tokenizer_config.json has a type for {index}, which is not a token id"
                    )
                types[index] = kinds[kind]

    def written_scores(self, size: int) -> dict[int, float]:
        """The scores of tokens that an export recorded."""
        scores: dict[int, float] = {}
        for score, ids in (self.section.get(SCORES) or {}).items():
            for index in ids:
                if type(index) is not int or not 0 <= index < size:
                    raise NotImportableError(
                        f"tokenizer_config.json has a score for {printable(str(index))}, which is not a token id"
                    )
                scores[index] = float(score)
                if math.isnan(scores[index]) or LARGEST_FLOAT < abs(scores[index]) < math.inf:
                    raise NotImportableError(
                        f"tokenizer_config.json has the score {printable(score)}, which is not a number"
                    )
        return scores

    @property
    def chat_templates(self) -> dict[str, str]:
        """The templates by name; the default one is ""."""
        named = [entry for entry in self._template_entries if isinstance(entry, dict)]
        found = [(entry.get("name"), entry.get("template")) for entry in named]
        return {
            "" if name == DEFAULT else name: template
            for name, template in found
            if isinstance(name, str) and name and isinstance(template, str)
        }

    @property
    def chat_template(self) -> str | None:
        """The default template."""
        return self.chat_templates.get("")

    @property
    def lost_templates(self) -> int:
        """How many templates are neither a text nor a text with a name."""
        return len(self._template_entries) - len(self.chat_templates)

    @property
    def _template_entries(self) -> list[Any]:
        """What stands for the chat templates, sound or not: each is to be an object with a name and a text."""
        given = self.config.get("chat_template")
        if isinstance(given, str):
            return [{"name": DEFAULT, "template": given}]
        return given if isinstance(given, list) else [] if given is None else [given]


def _id_of(index: Any) -> int:
    text = str(index)
    if type(index) is bool or not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise NotImportableError(f"an added token has the id {printable(text)}, which is not an id")
    return int(text)


def looks_special(text: str) -> bool:
    """Whether a token counts as control although it is not marked so (ModelBase.does_token_look_special)."""
    return (
        text in ("<pad>", "<mask>", "<2mass>", "[@BOS@]")
        or (text.startswith("<|") and text.endswith("|>"))
        or (text.startswith("<｜") and text.endswith("｜>"))
        or (text.startswith("<unused") and text.endswith(">"))
    )
