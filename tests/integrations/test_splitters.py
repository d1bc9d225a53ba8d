"""Splitters of texts: the parts join to the document and stay within the size, which each library counts by us."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from conftest import ROOT
from integration_cases import DOCUMENT, TOK, library, real, real_tiktoken

from ggufbpe import Tokenizer
from ggufbpe.integrations._protocol import length_function

count = length_function(TOK)
SIZES = [1, 7, 64, 10_000]


def slices(spans: Sequence[tuple[int, int]]) -> list[str]:
    return [DOCUMENT[start:end] for start, end in spans]


@pytest.mark.parametrize("size", SIZES)
def test_langchain(size: int) -> None:
    library("langchain_text_splitters")
    from ggufbpe.integrations.langchain import text_splitter

    splitter = text_splitter(TOK, chunk_size=size, chunk_overlap=0)
    assert splitter.split_text(DOCUMENT) == slices(TOK.split(DOCUMENT, size, parse_special=False))
    assert "".join(each.page_content for each in splitter.create_documents([DOCUMENT])) == DOCUMENT


def test_langchain_leaves_room_for_what_an_embedder_adds() -> None:
    library("langchain_text_splitters")
    from ggufbpe.integrations.langchain import text_splitter

    tok = Tokenizer.from_gguf(ROOT / "fixtures/vocabs/wpm.gguf")
    chunks = text_splitter(tok, 7, 0, add_special=True).split_text(DOCUMENT)
    assert chunks == slices(tok.split(DOCUMENT, 7, add_special=True, parse_special=False))
    assert max(len(tok.encode(chunk, parse_special=False)) for chunk in chunks) == 7


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"boundaries": "token"}, ("token", "end")),
        ({"boundaries": "markdown", "keep_separator": True}, ("markdown", "start")),
        ({"keep_separator": "start"}, ("paragraph", "start")),
        ({"keep_separator": False}, ("paragraph", False)),
        ({"strip_whitespace": True}, ("paragraph", False)),
    ],
)
def test_options_of_langchain(options: dict[str, Any], asked: tuple[Any, Any]) -> None:
    library("langchain_text_splitters")
    from ggufbpe.integrations.langchain import text_splitter

    found = text_splitter(TOK, 32, 8, **options).split_text(DOCUMENT)
    assert found == slices(TOK.split(DOCUMENT, 32, 8, *asked, parse_special=False))


def test_documents_of_langchain_say_where_they_begin() -> None:
    library("langchain_text_splitters")
    from ggufbpe.integrations.langchain import text_splitter

    text = "One two. " * 40  # in which LangChain would find other places
    metadata = {"source": ["a.md"]}
    documents = text_splitter(TOK, 16, 6, add_start_index=True).create_documents(
        [text, ""], [metadata, {}, {}]
    )
    starts = [each.metadata["start_index"] for each in documents]
    assert starts == [start for start, _ in TOK.split(text, 16, 6, parse_special=False)]
    assert all(text.startswith(each.page_content, at) for each, at in zip(documents, starts))
    assert documents[0].metadata["source"] == ["a.md"]
    assert documents[0].metadata["source"] is not metadata["source"]
    with pytest.raises(ValueError, match="there are 2 texts, but only 1 metadatas"):
        text_splitter(TOK, 16, 6).create_documents([text, ""], [metadata])


def test_langchain_takes_a_tokenizer_and_sound_arguments() -> None:
    library("langchain_text_splitters")
    from ggufbpe.integrations.langchain import text_splitter

    with pytest.raises(TypeError, match=r"must be a Tokenizer, not str; Tokenizer\.from_gguf\(path\) opens"):
        text_splitter("model.gguf", 256, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="boundaries is one of"):
        text_splitter(TOK, 256, 0, boundaries="page")  # type: ignore[arg-type]


def test_messages_of_langchain_become_openais() -> None:
    library("langchain_text_splitters")
    messages = library("langchain_core.messages")
    chat = [
        messages.SystemMessage("Be terse."),
        messages.HumanMessage("Hi " * 50),
        messages.HumanMessage("Hi"),
    ]

    def count(chat: list[Any]) -> int:
        return len(
            TOK.apply_chat_template(messages.convert_to_openai_messages(chat), chat_template="known:chatml")
        )

    trimmed = messages.trim_messages(chat, max_tokens=70, token_counter=count, include_system=True)
    assert trimmed == [chat[0], chat[2]]


def test_langchain_counts_by_us() -> None:
    splitters = library("langchain_text_splitters")
    splitter = splitters.RecursiveCharacterTextSplitter(
        chunk_size=64, chunk_overlap=0, length_function=count, strip_whitespace=False
    )
    parts = splitter.split_text(DOCUMENT)
    assert "".join(parts) == DOCUMENT
    assert max(map(count, parts)) <= 64


def test_llama_index() -> None:
    core = library("llama_index.core")
    from ggufbpe.integrations.llama_index import tokenizer

    parsers = library("llama_index.core.node_parser")
    parts, theirs = (
        parsers.TokenTextSplitter(chunk_size=64, chunk_overlap=0, tokenizer=each).split_text(DOCUMENT)
        for each in (tokenizer(TOK), real_tiktoken().encode_ordinary)
    )
    assert parts == theirs
    assert (
        max(map(count, parts)) <= 64 + 2
    )  # it adds up the tokens of words, of which joined text can have more
    assert "".join("".join(parts).split()) == "".join(DOCUMENT.split())  # it strips white space
    core.set_global_tokenizer(tokenizer(TOK))
    assert library("llama_index.core.utils").get_tokenizer()(DOCUMENT) == TOK.encode_ordinary(DOCUMENT)


def test_a_splitter_of_llama_index_in_another_process_counts_by_the_global_tokenizer() -> None:
    core = library("llama_index.core")
    from ggufbpe.integrations.llama_index import tokenizer

    made = library("llama_index.core.node_parser").SentenceSplitter(
        chunk_size=64, chunk_overlap=0, tokenizer=tokenizer(TOK)
    )
    core.set_global_tokenizer(lambda text: [0])
    assert len(pickle.loads(pickle.dumps(made)).split_text(DOCUMENT)) == 1
    core.set_global_tokenizer(tokenizer(TOK))
    assert pickle.loads(pickle.dumps(made)).split_text(DOCUMENT) == made.split_text(DOCUMENT)


def test_chonkie() -> None:
    chonkie = library("chonkie")
    from ggufbpe.integrations.chonkie import tokenizer

    parts = chonkie.RecursiveChunker(tokenizer=tokenizer(TOK), chunk_size=64).chunk(DOCUMENT)
    assert "".join(part.text for part in parts) == DOCUMENT
    assert max(count(part.text) for part in parts) <= 64


@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
def test_chonkie_by_tokens(name: str) -> None:
    chonkie = library("chonkie")
    from ggufbpe.integrations.chonkie import tokenizer

    text = "".join(character for character in DOCUMENT if character.isascii())
    made = tokenizer(TOK if name == "gpt-2" else real(name))
    parts = chonkie.TokenChunker(tokenizer=made, chunk_size=64, chunk_overlap=0).chunk(text)
    assert "".join(part.text for part in parts) == text
    assert all(text[part.start_index : part.end_index] == part.text for part in parts)
    assert max(part.token_count for part in parts) <= 64
    word = "supercalifragilistic" * 10  # without a place to divide it
    parts = chonkie.RecursiveChunker(tokenizer=made, chunk_size=7, min_characters_per_chunk=1).chunk(word)
    assert "".join(part.text for part in parts) == word
    assert max(part.token_count for part in parts) <= 7


def test_semantic_text_splitter() -> None:
    library("semantic_text_splitter")
    from ggufbpe.integrations.semantic_text_splitter import markdown_splitter, text_splitter

    for splitter in (text_splitter(TOK, 64, trim=False), markdown_splitter(TOK, 64, trim=False)):
        parts = splitter.chunks(DOCUMENT)
        assert "".join(parts) == DOCUMENT
        assert max(map(count, parts)) <= 64
