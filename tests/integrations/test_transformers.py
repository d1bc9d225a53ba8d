"""transformers: every form of a call gives what an `AutoTokenizer` of our own exported tokenizer.json gives."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GPT2, ROOT
from integration_cases import DOCUMENT, END, TOK, both, library, plain, real

from ggufbpe import Tokenizer

transformers = library("transformers")

from ggufbpe.integrations.transformers import GGUFTokenizer  # noqa: E402 - after its library

BERT = ROOT / ".cache" / "vocabs" / "ggml-vocab-bert-bge.gguf"
LLAMA = ROOT / ".cache" / "vocabs" / "ggml-vocab-llama-bpe.gguf"
TEXTS = ["Hello world", "", "naïve 者也 😀", "a <|endoftext|> b", DOCUMENT[:700]]


@pytest.fixture(scope="module", params=[GPT2, LLAMA, BERT], ids=["gpt2", "llama-bpe", "bert"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Both objects of a vocabulary, which can pad; no test changes them."""
    found = both(request.param, tmp_path_factory.mktemp("exported"))
    for each in found:
        each.pad_token = each.pad_token or each.eos_token or each.sep_token
    return found


# GPT-2 adds no BOS, so an empty text has no ids.
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "text": (("Hello world",), {}),
    "empty": (("",), {}),
    "document": ((DOCUMENT,), {}),
    "without special tokens": (("Hello world",), {"add_special_tokens": False}),
    "pair": (("Hello world", "How are you?"), {"return_token_type_ids": True}),
    "batch": ((["Hello world", "naïve 者也 😀"],), {}),
    "batch of pairs": ((["Hello world", "a"], ["b c", "d"]), {}),
    "padded": ((["Hello world", "a b c d e"],), {"padding": True}),
    "padded to a length": (("Hello world",), {"padding": "max_length", "max_length": 12}),
    "padded without ids": (
        ("",),
        {"padding": "max_length", "max_length": 5, "return_special_tokens_mask": True},
    ),
    "padded without ids, numpy": (
        ("",),
        {"padding": "max_length", "max_length": 5, "return_tensors": "np", "return_length": True},
    ),
    "padded to a multiple, left": (
        (["Hello", "a b c"],),
        {"padding": True, "pad_to_multiple_of": 8, "padding_side": "left"},
    ),
    "truncated": ((DOCUMENT,), {"truncation": True, "max_length": 20}),
    "truncated pair": (("a b c d e f g", "h i j k l m n"), {"truncation": "only_second", "max_length": 12}),
    "masks": (("Hello world", "again"), {"return_special_tokens_mask": True}),
    "numpy": ((["Hello world", "a b c d"],), {"padding": True, "return_tensors": "np"}),
    "one text as numpy": (("Hello world",), {"return_tensors": "np"}),
    "length": (("Hello world",), {"return_length": True}),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, pair: tuple[Any, Any]) -> None:
    arguments, options = CALLS[name]
    ours, theirs = (plain(each(*arguments, **options)) for each in pair)
    assert ours == theirs


@pytest.mark.parametrize("text", ["Hello big world", ""])
@pytest.mark.parametrize(
    "options", [{}, {"truncation": True, "max_length": 5}, {"padding": "max_length", "max_length": 40}]
)
def test_offsets(options: dict[str, Any], text: str, pair: tuple[Any, Any]) -> None:
    """A character of several tokens belongs to each of them whole, and a space to the token behind it."""
    ours, theirs = (plain(each(text, return_offsets_mapping=True, **options)) for each in pair)
    assert ours == theirs


def test_ids_are_llama_cpps(pair: tuple[Any, Any]) -> None:
    made = pair[0]
    assert [made(text)["input_ids"] for text in TEXTS] == [made.tok.encode(text) for text in TEXTS]
    assert made(TEXTS)["input_ids"] == made.tok.encode_batch(TEXTS)
    assert [made.decode(made.tok.encode(text)) for text in TEXTS] == [
        made.tok.decode(made.tok.encode(text), unparse_special=True) for text in TEXTS
    ]


def test_the_space_before_the_first_word(tmp_path: Path) -> None:
    """llama.cpp keeps that of Llama 2 behind BOS."""
    ours, theirs = both(ROOT / ".cache" / "vocabs" / "ggml-vocab-llama-spm.gguf", tmp_path)
    for ids, text in (([1, 15043, 3186], " Hello world"), ([15043, 3186], "Hello world")):
        assert ours.decode(ids, skip_special_tokens=True) == ours.tok.decode(ids) == text
        assert theirs.decode(ids, skip_special_tokens=True) == "Hello world"


@pytest.mark.parametrize("pair", [GPT2, LLAMA], indirect=True, ids=["gpt2", "llama-bpe"])
def test_vocabulary(pair: tuple[Any, Any]) -> None:
    """Not of BERT, whose tokens a GGUF spells with the space before a word, and not with ##."""
    ours, theirs = pair
    assert (len(ours), ours.vocab_size, ours.get_vocab()) == (len(theirs), len(theirs), theirs.get_vocab())
    assert set(ours.all_special_tokens) == {
        each.content for each in theirs.added_tokens_decoder.values() if each.special
    }
    assert ours.special_tokens_map == theirs.special_tokens_map
    assert ours.tokenize("Hello world") == theirs.tokenize("Hello world")
    ids = ours("Hello world")["input_ids"]
    assert ours.convert_ids_to_tokens(ids) == theirs.convert_ids_to_tokens(ids)
    assert ours.decode(ids, skip_special_tokens=True) == theirs.decode(ids, skip_special_tokens=True)
    assert ours.get_special_tokens_mask(
        ids, already_has_special_tokens=True
    ) == theirs.get_special_tokens_mask(ids, already_has_special_tokens=True)


@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
def test_text_that_streams_is_whole_where_spaces_are_kept(name: str) -> None:
    made, shown = GGUFTokenizer(real(name)), []

    class Streamer(transformers.TextStreamer):  # type: ignore[misc]
        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            shown.append(text)

    text = "Is ' this ' it ? I don't know.\n\n  naïve 者也 😀 <|endoftext|> , so"
    streamer = Streamer(made, clean_up_tokenization_spaces=False)
    for token in made(text, add_special_tokens=False)["input_ids"]:
        streamer.put(np.array([token]))
    streamer.end()
    assert "".join(shown) == text


def test_words_and_control_tokens_as_text() -> None:
    made = GGUFTokenizer(TOK)
    assert made(["Hello", " world"], is_split_into_words=True)["input_ids"] == [15496, 995]
    assert made("<|endoftext|>")["input_ids"] == [END]
    assert made("<|endoftext|>", split_special_tokens=True)["input_ids"] == TOK.encode_ordinary(
        "<|endoftext|>"
    )
    assert made([15496, 995])["input_ids"] == [15496, 995]
    with pytest.raises(ValueError, match="needs texts"):
        made([15496, 995], return_offsets_mapping=True)


def test_the_vocabulary_does_not_grow() -> None:
    made = GGUFTokenizer(TOK)
    assert made.add_special_tokens({"pad_token": "<|endoftext|>"}) == 0
    assert made.pad_token_id == END
    with pytest.raises(ValueError, match="has no token '<new>'"):
        made.add_tokens(["<new>"])


def test_saved_and_opened_again(tmp_path: Path) -> None:
    path = ROOT / "fixtures" / "chats" / "vocabulary.gguf"
    made = GGUFTokenizer(Tokenizer.from_gguf(path), padding_side="left")
    made.save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.gguf").stat().st_size == len(made.tok.to_gguf())
    for found in (
        GGUFTokenizer.from_pretrained(tmp_path),
        transformers.AutoTokenizer.from_pretrained(tmp_path),
    ):
        assert type(found) is GGUFTokenizer
        assert (found.tok, found.padding_side, found.chat_template) == (made.tok, "left", made.chat_template)
        assert found.all_special_ids == made.all_special_ids


def test_pickled() -> None:
    made = pickle.loads(pickle.dumps(GGUFTokenizer(TOK)))
    assert made(DOCUMENT)["input_ids"] == TOK.encode(DOCUMENT)


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"no tokenizer\.gguf"):
        GGUFTokenizer.from_pretrained(tmp_path)


def test_datasets_map_and_collator() -> None:
    datasets = library("datasets")
    made = GGUFTokenizer(TOK)
    made.pad_token = made.eos_token
    rows = datasets.Dataset.from_dict({"text": ["Hello world", "Hello"]})
    mapped = rows.map(lambda batch: made(batch["text"]), batched=True, remove_columns=["text"])
    collator = transformers.DataCollatorWithPadding(made, return_tensors="np")
    assert plain(collator(list(mapped))) == {
        "input_ids": [[15496, 995], [15496, END]],
        "attention_mask": [[1, 1], [1, 0]],
    }


def test_tensors_of_torch() -> None:
    torch = library("torch")
    found = GGUFTokenizer(TOK)(["Hello world", "Hello there"], return_tensors="pt")
    assert isinstance(found["input_ids"], torch.Tensor)
    assert found["input_ids"].tolist() == TOK.encode_batch(["Hello world", "Hello there"])


NO_TEXTS = [
    5,
    1.5,
    b"ab",
    bytearray(b"ab"),
    memoryview(b"ab"),
    {"ab"},
    {"text": "ab"},
    np.array(["Hello", "b"]),
]


@pytest.mark.parametrize("value", NO_TEXTS, ids=lambda value: type(value).__name__)
def test_what_is_no_text_is_refused(value: object) -> None:
    """The bytes of a text would be taken for ids, and the texts of an array for tokens."""
    kind = type(value).__name__
    with pytest.raises(TypeError, match=f"a text is a str, or a list of tokens or ids, not {kind}"):
        GGUFTokenizer(TOK)(value)


def test_a_column_of_a_dataset_is_refused_as_by_fast_tokenizers() -> None:
    rows = library("datasets").Dataset.from_dict({"text": ["Hello", "b"]})
    with pytest.raises(TypeError, match="not Column; a batch is a list of texts"):
        GGUFTokenizer(TOK)(rows["text"])
    assert GGUFTokenizer(TOK)(list(rows["text"]))["input_ids"] == [[15496], [65]]


def test_tokens_that_the_vocabulary_lacks_are_refused() -> None:
    made = GGUFTokenizer(TOK)
    assert made("Hello", ["\u0120world"])["input_ids"] == [15496, 995]
    with pytest.raises(ValueError, match="the vocabulary has no token 'Hello world'"):
        made("Hello", ["\u0120world", "Hello world"])


@pytest.mark.parametrize("clean", [1, 0])
def test_spaces_are_cleaned_up_for_any_true_value(clean: Any) -> None:
    tok = GGUFTokenizer.from_pretrained(str(GPT2))
    ids, kept = tok("a .")["input_ids"], ["a .", "a."][clean]
    assert tok.decode(ids, clean_up_tokenization_spaces=clean) == kept
    assert tok.decode(ids, skip_special_tokens=clean, clean_up_tokenization_spaces=bool(clean)) == kept
    tok.clean_up_tokenization_spaces = clean or None
    assert tok.decode(ids) == kept
