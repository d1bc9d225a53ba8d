"""Holds what the checks look at: the readable metadata of a file, and the commands that fix it.

A value that cannot be read counts as missing; there is a separate check for such values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

from ..._util.errors import GGUFError, printable
from ..._util.extras import NotInstalledError
from ..._util.spelling import BYTE_TOKENS
from ...chat.known_templates import PREFIX, KnownTemplate
from ...gguf.change import PLACEHOLDER, template_argument
from ...gguf.constants import KEY_ARCHITECTURE, KEY_NAME, TokenizerKey, TokenType
from ...gguf.edit import CONVERT_VERSION_1
from ...gguf.edit_arguments import id_ranges
from ...gguf.metadata import Metadata, Overrides
from ...gguf.reader import GGUFFile
from ...gguf.schema import has_right_type
from ...hub.model_location import fix_command
from ...models import tokenizer_model
from ...models.bpe.merge import texts_made_by
from ...models.chat_templates import chat_templates
from ...models.format_detection import Looks, detect_looks, likely_models
from ...models.known_families import KnownFamily, family_of_names, family_of_tokens
from ...models.loading import load_from
from ...models.pieces import quoted_text
from ...models.pretokenizers.families import Evidence, evidence
from ...models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer
from ...models.special_ids import END_OF_GENERATION
from ...models.token_table import ATTRIBUTE_OF_TYPE
from ...models.vocabulary import NORMAL, UNUSED
from ...native.lazy_strings import LazyStrings, first_indexes, made_once
from ...tokenizer import Tokenizer
from .finding import Where
from .sample_prompts import SamplePrompts

_K = TokenizerKey

# Texts that models commonly have for these tokens, the most distinctive first. Of two files, verify/weighing.py
# suspects the one in which a token of this table has another text. PAD is left out: no text contains it.
TEXTS_OF_IDS: dict[str, tuple[str, ...]] = {
    _K.BOS_ID: (
        *("<|begin_of_text|>", "<bos>", "<s>", "<|startoftext|>", "<｜begin▁of▁sentence｜>", "<BOS_TOKEN>"),
        *("[BOS]", "<|plamo:bos|>", "<|endoftext|>", "[CLS]"),
    ),
    _K.EOS_ID: (
        *("<|end_of_text|>", "<eos>", "</s>", "<|endoftext|>", "<｜end▁of▁sentence｜>", "<EOS_TOKEN>"),
        *("[EOS]", "<|plamo:eos|>", "<|im_end|>", "<|eot_id|>", "<|end|>"),
    ),
    _K.SEP_ID: ("[SEP]", "</s>"),
    _K.UNK_ID: ("<unk>", "[UNK]", "<|unk|>", "<|plamo:unk|>"),
}

DRAFTERS = {"eagle3": "EAGLE-3", "dflash": "DFlash"}  # architectures that only draft for other models

_T = TypeVar("_T")


class Facts:
    """The metadata of a file as far as it can be read; a value of the wrong type counts as missing."""

    def __init__(
        self,
        file: GGUFFile,
        overrides: Overrides | None,
        like: Facts | None = None,
        evidence: Callable[[], Evidence] | None = None,
    ) -> None:
        """`like` are the facts of the same file with other overrides, with which tokens and merges are shared.

        `evidence` gives what the tokens reveal about the pre-tokenizer, where that is already known.
        """
        self._known_evidence = evidence
        self._results: dict[Any, Any] = {}
        self.source = file
        self.file: Metadata = Metadata(like.file if like else file, overrides)
        self.overrides = overrides or {}
        self.version = file.version
        self.model = self.string(_K.MODEL) or ""
        self.kind = tokenizer_model(self.model)
        self.pre = self.string(_K.PRE)
        self._like = like if like and not {_K.LIST, _K.MERGES}.intersection(overrides or ()) else None
        self.tokens: list[str] = self._like.tokens if self._like else self._strings(_K.LIST)
        self.merges: list[str] = self._like.merges if self._like else self._strings(_K.MERGES)
        self.types: list[int] = self.array(_K.TOKEN_TYPE)
        self.template = self.string(_K.CHAT_TEMPLATE) or ""
        self.refusal: GGUFError | None = None
        self.tokenizer: Tokenizer | None = None
        try:
            # its warnings are among the findings
            vocabulary, used = load_from(Metadata(self.file))
            self.tokenizer = Tokenizer(vocabulary, metadata=used)
        except GGUFError as error:
            self.refusal = error

    def changed(self, overrides: Overrides) -> Facts:
        """Return the facts of the same file with `overrides` on top of its own."""
        return Facts(self.source, {**self.overrides, **overrides}, self)

    def shared_result(self, make: Callable[[Facts], _T]) -> _T:
        """Return what `make` gives, which must follow from tokens and merges alone, for all facts that share these."""
        if self._like:
            return self._like.shared_result(make)
        if make not in self._results:
            self._results[make] = make(self)
        found: _T = self._results[make]
        return found

    def share(self, other: Facts) -> None:
        """Take what follows from tokens and merges alone from another file, if both have the same ones."""
        if other is not self and self.tokens == other.tokens and self.merges == other.merges:
            self._like = other

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each token; of duplicates the first."""
        if self._like:
            return self._like.ids
        return made_once(self.compiled(_K.LIST) or self.tokens, first_indexes)

    @cached_property
    def templates(self) -> dict[str, str]:
        """The chat templates that llama.cpp uses, by name; the default one is ""."""
        found = chat_templates(self.file)
        return {name: source for name, source in found.items() if source and name in ("", "tool_use")}

    @cached_property
    def rendered(self) -> SamplePrompts | None:
        """The prompts of a few chats; None without a template, a tokenizer or jinja2."""
        if self.tokenizer is None or not self.templates:
            return None
        try:
            return SamplePrompts(self.tokenizer, self.templates)
        except NotInstalledError:
            return None

    @cached_property
    def entry(self) -> PreTokenizer:
        """The pre-tokenizer in use; the default one if llama.cpp knows none of that name."""
        name = self.kind.own_pre if self.kind.ignores_pre else self.pre
        return PRE_TOKENIZERS.get(name or "default", PRE_TOKENIZERS["default"])

    def quoted(self, token: int) -> str:
        """A token, quoted, as the text that it decodes to."""
        kind = NORMAL if self.is_normal(token) else ATTRIBUTE_OF_TYPE.get(self.type_of(token), UNUSED)
        return quoted_text(self.kind, self.entry, self.tokens[token], kind)

    def quoted_text(self, text: str) -> str:
        """The text of a normal token, or of a part of a merge, in the same way."""
        return quoted_text(self.kind, self.entry, text)

    @cached_property
    def looks(self) -> Looks:
        """What kind of vocabulary the tokens look like, whatever tokenizer.ggml.model says."""
        has_own = {_K.SCORES, _K.PRECOMPILED_CHARSMAP}.intersection(self.overrides)
        if self._like and self._like.source is self.source and not has_own:
            return self._like.looks
        return detect_looks(self.file)

    @cached_property
    def likely_models(self) -> list[str]:
        """The models that the file was likely made for, if its tokens speak against the one that it names."""
        return likely_models(self.tokens, self.looks, self.model, self.pre)

    @cached_property
    def family(self) -> KnownFamily | None:
        """The known family of models that the tokens are from; None if it is not known.

        Without its last tokens, a vocabulary may look like that of another family: then the name of the model decides.
        """
        found, named = family_of_tokens(self.tokens), family_of_names(self.names)
        own = found if found is not None and found.model == self.model else None
        if named is None or named[0].model != self.model or not named[0].lacks_few(self.tokens):
            return own
        return own if own and own.is_whole(self.tokens, self.scalar(_K.EOS_ID)) else named[0]

    @cached_property
    def byte_tokens(self) -> dict[int, int]:
        """The tokens that are written as bytes, such as "<0x0A>", by byte; none in models without byte fallback."""
        if self.kind.has_pre_tokenizer:
            has_bytes = not self.entry.byte_encode
        else:  # RWKV, which has no scores, writes them as escapes
            has_bytes = self.kind.has_scores and not self.kind.needs_unknown
        if not has_bytes:
            return {}
        return {byte: self.ids[text] for byte, text in enumerate(BYTE_TOKENS) if text in self.ids}

    @property
    def unknown_token(self) -> int | None:
        """The token that stands for unknown text, by its key or its usual text, in models that have one."""
        if self.kind.has_pre_tokenizer:
            return None
        if isinstance(token := self.scalar(_K.UNK_ID), int) and 0 <= token < len(self.tokens):
            return token
        return next(iter(self.usual_ids(_K.UNK_ID)), None)

    def usual_ids(self, key: str) -> list[int]:
        """The tokens that have a usual text for a special id, the likeliest first: for UNK, the model's default."""
        found = [self.ids[text] for text in TEXTS_OF_IDS.get(key, ()) if text in self.ids]
        default = self.kind.default_ids.get("unk") if key == _K.UNK_ID else None
        return sorted(found, key=lambda token: token != default)

    @cached_property
    def names(self) -> list[str]:
        """What the metadata calls the models that this one was made from, and the model itself."""
        keys = ("general.base_model.0.name", "general.base_model.1.name", "general.basename", KEY_NAME)
        return [name for key in keys if (name := self.text(key))]

    def encode(self, text: bytes | str, *, add_special: bool = False) -> list[int]:
        """Return the ids of a text; none if it cannot be encoded, as without a byte, which another check reports."""
        assert self.tokenizer is not None
        try:
            return self.tokenizer.encode(text, add_special=add_special)
        except ValueError:
            return []

    def adds(self, name: str) -> bool:
        """Check that the special token "bos", "eos" or "sep" is added to every text."""
        if self.tokenizer is None:
            return False
        own = self.tokenizer.vocabulary
        return any(name in names for names in self.kind.added_names(own.add_bos, own.add_eos))

    @property
    def obeys_flags(self) -> bool:
        """Check that the model adds BOS and EOS as the file's flags say, not by a rule of its own."""
        return self.kind.added_names(True, True) != self.kind.added_names(False, False)

    @property
    def expects_bos(self) -> bool:
        """Check that the model's family, or else its pre-tokenizer, adds BOS to every text."""
        if self.tokenizer is None:
            return False
        entry = self.tokenizer.vocabulary.pre_tokenizer
        return entry.always_add_bos or (self.family.add_bos if self.family else entry.add_bos)

    @cached_property
    def merged(self) -> frozenset[str]:
        """The results of all merges."""
        if self._like:
            return self._like.merged
        return texts_made_by(self.compiled(_K.MERGES) or self.merges)

    @cached_property
    def evidence(self) -> Evidence:
        """What the tokens reveal about the pre-tokenizer."""
        if self._like or self._known_evidence:
            known = self._like.evidence if self._like else self._known_evidence()  # type: ignore[misc]
            return known._replace(pre=self.pre or "")
        names = (self.string(key) or "" for key in (KEY_ARCHITECTURE, KEY_NAME))
        merges = self.compiled(_K.MERGES) or self.merges
        return evidence(self.tokens, merges, self.pre or "", *names)

    def scalar(self, key: str) -> Any:
        return self.file[key] if key in self.file and has_right_type(self.file, key) else None

    def text(self, key: str) -> str:
        """The string of any key; "" if there is none."""
        try:
            value = self.file[key] if key in self.file else ""  # noqa: SIM401 - no dict, has no get
        except GGUFError:  # not UTF-8
            return ""
        return value if isinstance(value, str) else ""

    def string(self, key: str) -> str | None:
        value = self._readable(key)
        return value.partition("\0")[0] if isinstance(value, str) else None

    def array(self, key: str) -> list[Any]:
        value = self._readable(key)
        if not isinstance(value, list):
            return []
        has_nul = bool(value) and isinstance(value[0], str) and "\0" in "".join(value)
        return [item.partition("\0")[0] for item in value] if has_nul else value

    def _strings(self, key: str) -> list[str]:
        """The tokens or merges; the list is shared with all files in use that have the same ones."""
        kept = self.compiled(key)
        return self.array(key) if kept is None else kept.to_list()

    def compiled(self, key: str) -> LazyStrings | None:
        """Return the strings of a key without an object for each; None for other values, or without the engine."""
        try:
            return self.file.strings(key) if key in self.file and has_right_type(self.file, key) else None
        except GGUFError:  # not UTF-8; opening the tokenizer says where
            return None

    def _readable(self, key: str) -> Any:
        try:
            return self.scalar(key)
        except GGUFError:  # not UTF-8; opening the tokenizer says where
            return None

    def type_of(self, token: int) -> int:
        """Return the type that the file gives a token, for checks of the file itself; normal if it has no types."""
        return self.types[token] if token < len(self.types) else int(TokenType.NORMAL)

    def is_normal(self, token: int) -> bool:
        """Return whether llama.cpp treats a token as normal, for checks of what it does with texts."""
        if self.tokenizer is not None:
            return not self.tokenizer.vocabulary.attributes[token] & ~NORMAL
        return self.type_of(token) == int(TokenType.NORMAL)

    def is_made_normal(self, token: int) -> bool:
        """Whether llama.cpp makes it a normal token whatever its type is, as it does "</s>" in some model families."""
        return (
            self.tokenizer is not None and self.is_normal(token) and self.tokens[token] in END_OF_GENERATION
        )

    def key(self, key: str, token: int | None = None) -> Where:
        return Where(key, token, self.file.offset(key) if key in self.file else None)

    def token(self, index: int) -> Where:
        return Where(_K.LIST, index, self.file.element_offset(_K.LIST, index))

    def command(self, *changes: str) -> str:
        """The command that makes these changes; for GGUF version 1, which cannot be changed, a sentence."""
        if self.version == 1:
            return CONVERT_VERSION_1
        return fix_command(self.file.path, changes)

    def set_template_file(self, name: str = "") -> str:
        """The command that sets the template called `name` to the contents of FILE, which is for the user to supply."""
        return self.command("--chat-template", template_argument(PLACEHOLDER, name))

    def set_own_template(self) -> str:
        """The command that sets the file's own chat template, taken out of JSON or without its byte order mark."""
        return self.command("--chat-template", template_argument(self.file.path))

    def set_template(self, known: KnownTemplate) -> str:
        """The command that sets the chat template to one of llama.cpp's."""
        return self.command("--chat-template", template_argument(f"{PREFIX}{known.name}", known.variant))

    def set(self, key: str, value: object) -> str:
        return self.command("--set", f"{key}={value}")

    def remove(self, key: str) -> str:
        return self.command("--remove", key)

    def set_types(self, **tokens: Iterable[int]) -> str:
        """The command that sets types of tokens, given by the name of the type; a sentence if types cannot be read."""
        if _K.TOKEN_TYPE in self.file and not has_right_type(self.file, _K.TOKEN_TYPE):
            return f"convert the model again, with a {_K.TOKEN_TYPE} of the right type"
        changes = [f"{ids}={name}" for name, indexes in tokens.items() for ids in id_ranges(indexes)]
        return self.command(*(part for change in changes for part in ("--set-token-type", change)))

    def rename(self, token: int, text: str) -> str:
        """The command that gives a token another text; its own must not have "=" in it."""
        return self.command("--rename-token", f"{self.tokens[token]}={text}")

    def set_id(self, key: str) -> str:
        """How to set a special id: the command if the family or TEXTS_OF_IDS tells which, otherwise a sentence."""
        if (theirs := self.id_of_family(key)) is not None:
            return self.set(key, theirs)
        if lost := self.lost_token_of_family(key):
            return f"convert the model again: {lost} is missing"
        for token in self.usual_ids(key):
            if not self.is_normal(token) and self.tokens[token] not in self.merged:
                return self.set(key, token)
        return f"set {key} to the id of the right token (`ggufbpe fix` with --set)"

    def id_of_family(self, key: str) -> int | None:
        """The id that the files of the model's family have under BOS or EOS; None if it is not known."""
        if self.family is None:
            return None
        expected = {_K.BOS_ID: self.family.bos, _K.EOS_ID: self.family.eos}.get(key)
        if expected is None or self.tokens[expected[0] : expected[0] + 1] != [expected[1]]:
            return None
        return expected[0]

    def lost_token_of_family(self, key: str) -> str:
        """The text of the family's BOS or EOS, quoted, where the file ends before its id; "" where it does not."""
        expected = {_K.BOS_ID: self.family.bos, _K.EOS_ID: self.family.eos}.get(key) if self.family else None
        return "" if expected is None or expected[0] < len(self.tokens) else printable(expected[1])

    @cached_property
    def likely_pre(self) -> str:
        """The name of the pre-tokenizer that the tokens point to; "" if nothing points to one.

        That is the one of the known family if it keeps as many tokens whole as the likeliest one does: where merges are
        missing, so are the tokens that would tell the two apart.
        """
        found = self.evidence
        names = self.family.pres if self.family and found.name else ()
        if names and not any(name in each.names for name in names for each in found.best):
            theirs = next((each for each in found.found if names[0] in each.names), None)
            if theirs is not None and theirs.kept >= found.best[0].kept:
                return names[0]
        return found.name

    def set_pre(self) -> str:
        """How to set the pre-tokenizer that the tokens point to."""
        if self.likely_pre:
            return self.set(_K.PRE, self.likely_pre)
        return f"set {_K.PRE} to the name of the model's pre-tokenizer (`ggufbpe list-pre` shows all names)"
