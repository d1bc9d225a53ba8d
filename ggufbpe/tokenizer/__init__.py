"""The public face: `Tokenizer`, which opens a GGUF and turns text into ids and back.

    text -> encode_methods.py -> an Engine (engine.py) -> ids
    ids -> detokenization.py -> text

The methods stand in seven files: opening and copying here, encoding in encode_methods.py, texts that grow in
incremental_methods.py, texts that must fit in budget_methods.py, decoding in decode_methods.py, the attributes of the
vocabulary in vocabulary_facts.py, and chats in chat/chat_methods.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from .._util.arguments import checked_flag, integer
from .._util.lazy import IMPORT_LOCK, cached_property
from .._util.llama_cpp_states import FOLLOWED, checked_state
from ..chat.chat_methods import ChatMethods
from ..gguf.metadata import Metadata, Overrides
from ..hub.model_location import ModelName, locate
from ..models.loading import load, load_from, packed
from ..models.vocabulary import Vocabulary, emit_warnings
from ..native import REMEDY, native, warn_if_slow, why_not_native
from .budget_methods import BudgetMethods
from .decode_methods import DecodeMethods
from .encode_methods import EncodeMethods
from .engine import Engine, Text
from .incremental_methods import IncrementalMethods
from .vocabulary_facts import Self, VocabularyFacts, content_bytes

if TYPE_CHECKING:
    from .reference_engine import ReferenceEngine
    from .trace import Trace

CACHE_BYTES = 32 << 20  # as of src/bpe/bpe_model.h
_LEAST_CACHE_BYTES = 1 << 20
_OWN = {"_given_engine", "_cache_bytes", "_vocabulary", "_metadata", "_name"}

EngineName = Literal["auto", "native", "reference"]


class Tokenizer(
    EncodeMethods, IncrementalMethods, BudgetMethods, DecodeMethods, VocabularyFacts, ChatMethods
):
    """The tokenizer of one GGUF model, with the ids that llama.cpp gives.

    >>> tok = Tokenizer.from_gguf("model.gguf")
    >>> tok.encode("Hello world")
    [15496, 995]
    >>> tok.decode([15496, 995])
    'Hello world'

    Immutable but for its caches, so one object serves many threads. It can be copied and pickled. A pickle holds
    the tokenizer and not where it came from: equal tokenizers with the same engine and `cache_bytes` have equal
    pickles, whatever else their files contain, and in an unpickled one `vocabulary.path` and `name` are empty.
    Attributes can be added only in a subclass, whose copies and pickles keep them.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        engine: EngineName | Engine = "auto",
        *,
        cache_bytes: int = CACHE_BYTES,
        metadata: Metadata | None = None,
        name: str = "",
    ) -> None:
        """Make a tokenizer of a vocabulary. `from_gguf`, which opens a file, describes `engine` and `cache_bytes`.

        `engine` may also be an object with the methods of `ggufbpe.tokenizer.engine.Engine`. `metadata` is what the
        vocabulary was made of, which `with_overrides` needs, and `name` what the tokenizer was opened by. `TypeError`
        for anything but a vocabulary.
        """
        if not isinstance(vocabulary, Vocabulary):
            kind = type(vocabulary).__name__
            raise TypeError(f"not a Vocabulary but {kind}; Tokenizer.from_gguf(path) opens a file")
        if not hasattr(engine, "encode_batch"):  # a name, or a mistake
            _check_engine(engine)
        self._given_engine = engine
        self._cache_bytes = integer("cache_bytes", cache_bytes, least=_LEAST_CACHE_BYTES)
        self._vocabulary = vocabulary
        self._metadata = metadata
        self._name = name

    @classmethod
    def from_gguf(
        cls: type[Self],
        path: ModelName,
        engine: EngineName = "auto",
        *,
        overrides: Overrides | None = None,
        llama_cpp: str = FOLLOWED,
        cache_bytes: int = CACHE_BYTES,
    ) -> Self:
        """Open the tokenizer of a GGUF file. Reads only the metadata, and closes the file again.

        `path` is a file's path or a model's name: "ollama:gemma3", "hf:OWNER/REPO:Q4_K_M" and the other forms in
        docs/names.md. An existing path always wins. `ggufbpe.locate` tells which file a name stands for.

        `engine` chooses what computes the ids: "native" is the compiled engine, "reference" the one in plain Python,
        and "auto" the compiled one if it is installed, else the reference engine with a `RuntimeWarning` that says
        why. Both give the same ids; `tok.engine` tells which one runs.

        `overrides` replace or add metadata keys; None removes one. Values are plain Python values of a type that the
        key may have: `{"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.bos_token_id": None}`.

        `llama_cpp` is the build of llama.cpp whose ids to give: "b11739", the newest whose answers are known,
        "b11549", or the commit "0c1e57098". What differs between them stands in docs/llama_cpp.md.

        `cache_bytes` limits the cache of encoded words, at least 1 MiB; the least recently used are evicted first.
        The reference engine counts words instead, 256 bytes each.

        Raises a `GGUFError`, which is a `ValueError`, for a file that cannot be used; it says what is wrong, where, and
        what to do (`UnsupportedTokenizerError` for a kind of tokenizer that ggufbpe does not read). `FileNotFoundError`
        for a path or name of nothing that is there, and another `OSError` if the file cannot be opened;
        `ModelNameError`, a `ValueError` but no `GGUFError`, for a name that fits no form or several models.
        `ValueError` for another `llama_cpp`, `RuntimeError` for engine="native" where it is not installed. Warns
        (`GGUFWarning`) where llama.cpp does, and about a pre-tokenizer that is "default" or that cuts the model's own
        tokens apart.
        """
        cache_bytes = integer("cache_bytes", cache_bytes, least=_LEAST_CACHE_BYTES)
        llama_cpp = checked_state(llama_cpp)
        model = locate(path)
        vocabulary, metadata = load(model.opened(), overrides, llama_cpp=llama_cpp)
        emit_warnings(vocabulary)
        return cls(vocabulary, engine, cache_bytes=cache_bytes, metadata=metadata, name=model.name)

    @classmethod
    def from_huggingface(
        cls: type[Self],
        path: str | os.PathLike[str],
        engine: EngineName = "auto",
        *,
        pre: str | None = None,
        llama_cpp: str = FOLLOWED,
        cache_bytes: int = CACHE_BYTES,
    ) -> Self:
        """Open a tokenizer.json, or a folder with one, as the GGUF that `ggufbpe import` would write; writes nothing.

        A folder may have a tokenizer.model, vocab.txt or merges.txt instead, as for `ggufbpe.import_vocabulary`.
        `pre` is the name of the pre-tokenizer; without it, the name is found from the patterns. The other arguments
        are those of `from_gguf`.

        Warns (`GGUFWarning`) of everything in the files that llama.cpp has no place for, since ids can differ there
        from the library's. `NotImportableError` if llama.cpp has no place for the tokenizer at all or the files are
        not sound, `OSError` if they cannot be read, `NotInstalledError` for a tokenizer.model without the package
        sentencepiece.

        >>> tok = Tokenizer.from_huggingface("Qwen2-7B")                    # doctest: +SKIP
        """
        with IMPORT_LOCK:
            from ..convert.in_memory import imported_model
        model = imported_model(os.fsdecode(path), pre)
        return cls.from_gguf(model, engine, llama_cpp=llama_cpp, cache_bytes=cache_bytes)

    def with_overrides(self: Self, overrides: Overrides) -> Self:
        """A tokenizer of the same file with some keys overridden, as in `from_gguf`; everything else is shared.

        >>> tok.with_overrides({"tokenizer.ggml.add_bos_token": True}).encode("Hello world")
        [50256, 15496, 995]

        `ValueError` if the tokenizer was made from a `Vocabulary`. A subclass keeps only what its `__init__` sets.
        """
        return self._loaded_again(Metadata(self._of_file(), overrides), self.llama_cpp)

    def with_llama_cpp(self: Self, llama_cpp: str) -> Self:
        """A tokenizer of the same file with the ids of another build of llama.cpp, as in `from_gguf`.

        >>> tok.with_llama_cpp("b11549").encode(b"\\xc0\\xba")
        [25]

        `ValueError` if the tokenizer was made from a `Vocabulary`. A subclass keeps only what its `__init__` sets.
        """
        return self._loaded_again(Metadata(self._of_file()), checked_state(llama_cpp))

    def vocabulary_in(self, llama_cpp: str) -> Vocabulary:
        """The vocabulary as another build of llama.cpp reads it; raises as `with_llama_cpp`, and does not warn."""
        return load_from(Metadata(self._of_file()), checked_state(llama_cpp))[0]

    def _of_file(self) -> Metadata:
        if self._metadata is None:
            raise ValueError("this tokenizer has no file but a Vocabulary; its _replace gives a changed one")
        return self._metadata

    def _loaded_again(self: Self, metadata: Metadata, llama_cpp: str) -> Self:
        vocabulary, metadata = load_from(metadata, llama_cpp)
        emit_warnings(vocabulary)
        return self._like(vocabulary, metadata)

    @contextmanager
    def gguf_file(self) -> Iterator[str]:
        """A context manager that gives the path of a GGUF with this tokenizer, for other programs to open.

        That is its own file. If keys are overridden or the file is remote, it is a temporary file of the metadata
        alone, deleted at the end of the block. "" if the tokenizer was made from a `Vocabulary` that has no file.

        >>> with tok.gguf_file() as path:                                    # doctest: +SKIP
        ...     subprocess.run(["llama-tokenize", "-m", path, "-p", "Hello"])
        """
        path, metadata = self.vocabulary.path, self._metadata
        if metadata is None or (os.path.isfile(path) and not metadata.overridden):
            yield path
            return
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, os.path.basename(path) if os.path.isfile(path) else "model.gguf")
            with open(copy, "wb") as file:
                file.write(metadata.to_bytes())
            yield copy

    def to_gguf(self) -> bytes:
        """Return a GGUF of only the metadata of this tokenizer and its chat templates, which llama.cpp loads.

        Overridden keys have their new values. `ValueError` if the tokenizer was made from a `Vocabulary`.
        """
        return self._of_file().to_bytes()

    def release_memory(self) -> None:
        """Empty the cache of encoded words and return its memory to the system.

        Ids stay the same; the next text is encoded as slowly as the first one was. Memory that the process keeps
        for future tokenizers is returned, too.
        """
        for made in ("_engine", "pipeline"):
            if made in vars(self):
                getattr(self, made).release_memory()
        if native is not None:
            native.release_memory()

    @property
    def name(self) -> str:
        """What the tokenizer was opened by: a path, or a full name such as "ollama:gemma3:latest"; "" if unpickled."""
        return self._name or self.vocabulary.path

    @property
    def engine(self) -> Literal["native", "reference"]:
        """The engine that computes the ids: "native" or "reference"."""
        given = self._given_engine
        if not isinstance(given, str):
            return given.name
        return "reference" if given == "reference" or native is None else "native"

    def trace(self, text: Text, *, add_special: bool = True, parse_special: bool = True) -> Trace:
        """Return every step from `text` to its ids, a `Trace`: fragments, words, merges and tokens.

        `tok.trace(text).ids` equals `tok.encode(text)`.
        """
        with IMPORT_LOCK:
            from .trace import trace
        return trace(
            self,
            text,
            add_special=checked_flag("add_special", add_special),
            parse_special=checked_flag("parse_special", parse_special),
        )

    # ---- the vocabulary -------------------------------------------------------------------------

    @cached_property
    def nl_id(self) -> int | None:
        """The id that llama.cpp takes for a line break; None if the vocabulary has none."""
        # llama.cpp asks before it knows special tokens. A generator, so that only models that ask encode the text.
        ids = (token for text in ("\n",) for token in self._engine.encode_plain(text))
        return self.vocabulary.tokenizer_model.line_break(self.vocabulary, ids)

    def __setattr__(self, name: str, value: NoReturn) -> None:  # for type checkers, no value may be assigned
        if not name.startswith("_") and not hasattr(getattr(type(self), name, None), "__set__"):
            if hasattr(Tokenizer, name):
                raise AttributeError(f"{name} cannot be changed")
            if type(self) is Tokenizer:
                raise AttributeError(f"a Tokenizer has no attribute {name!r}, and none can be added")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<Tokenizer {self.model} {self.pre} of {self.vocab_size} tokens>"

    def __reduce__(self) -> tuple[Any, ...]:  # caches are made anew
        made_of = self._vocabulary if self._metadata is None else packed(self._metadata)
        arguments = type(self), made_of, self._engine_name, self._cache_bytes, self.llama_cpp
        return _unpickled, arguments, self._added or None

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the tokenizer in hex: the same for all files with the same tokenizer and chat templates."""
        import hashlib

        made_of = content_bytes(self._vocabulary) if self._metadata is None else packed(self._metadata)
        if self._metadata is not None and self.llama_cpp != FOLLOWED:
            made_of += self.llama_cpp.encode()
        return hashlib.sha256(made_of).hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether `other` is a tokenizer with the same fingerprint, whatever its engine and wherever its file lies."""
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __copy__(self: Self) -> Self:
        made = self._like(self._vocabulary, self._metadata)
        for name, value in self._added.items():
            setattr(made, name, value)
        return made

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        from copy import deepcopy

        made = memo[id(self)] = self._like(deepcopy(self._vocabulary, memo), self._metadata)
        for name, value in deepcopy(self._added, memo).items():
            setattr(made, name, value)
        return made

    def _like(self: Self, vocabulary: Vocabulary, metadata: Metadata | None) -> Self:
        """A tokenizer of another vocabulary that was opened in the way of this one."""
        return type(self)(
            vocabulary, self._engine_name, cache_bytes=self._cache_bytes, metadata=metadata, name=self._name
        )

    @property
    def _added(self) -> dict[str, Any]:
        """The attributes that a subclass has added, without those that a copy computes again."""
        own = vars(self).copy()  # other threads compute attributes meanwhile
        computed = {name for name in own if hasattr(getattr(type(self), name, None), "__get__")}
        return {name: value for name, value in own.items() if name not in computed | _OWN}

    @property
    def _engine_name(self) -> EngineName:
        """How to choose the engine of a copy. An engine that was given as an object has one vocabulary only."""
        return self._given_engine if isinstance(self._given_engine, str) else self._given_engine.name

    # ---- the steps ------------------------------------------------------------------------------

    @cached_property
    def _engine(self) -> Engine:
        """What computes ids, made on first use."""
        if not isinstance(self._given_engine, str):
            return self._given_engine
        if self.engine == "reference":
            return self.pipeline
        from .native_engine import NativeEngine

        return NativeEngine(self.vocabulary, self._cache_bytes)

    @cached_property
    def pipeline(self) -> ReferenceEngine:
        """The reference engine: the steps from text to ids in plain Python."""
        from .reference_engine import ReferenceEngine

        given = self._given_engine
        if isinstance(given, ReferenceEngine):
            return given
        return ReferenceEngine(self.vocabulary, self._cache_bytes)


def _unpickled(
    cls: type[Tokenizer],
    made_of: bytes | Vocabulary,
    engine: EngineName,
    cache_bytes: int,
    llama_cpp: str = FOLLOWED,
) -> Tokenizer:
    """A tokenizer out of its pickle. What there was to warn of was said when its file was opened."""
    if not isinstance(made_of, bytes):
        return cls(made_of, engine, cache_bytes=cache_bytes)
    vocabulary, metadata = load("", data=made_of, llama_cpp=llama_cpp)
    return cls(vocabulary, engine, cache_bytes=cache_bytes, metadata=metadata)


def _check_engine(engine: object) -> None:
    if engine not in ("auto", "native", "reference"):
        raise ValueError(f"engine must be 'auto', 'native' or 'reference', not {engine!r}")
    if engine == "native" and native is None:
        raise RuntimeError(
            f"the compiled engine is not available: {why_not_native}. engine='reference' needs none. {REMEDY}"
        )
    if engine == "auto":
        warn_if_slow()


def _name_methods_after_tokenizer() -> None:
    """Let errors about arguments say `Tokenizer.encode()`, not the name of the base class that has the method.

    `typing.get_overloads` finds overloads by the original name, so their method keeps it.
    """
    for base in Tokenizer.__mro__[1:-1]:
        for name, method in vars(base).items():
            if isinstance(method, FunctionType) and name != "apply_chat_template":
                method.__qualname__ = f"{Tokenizer.__name__}.{name}"
                method.__module__ = Tokenizer.__module__  # pickle looks both up


_name_methods_after_tokenizer()
