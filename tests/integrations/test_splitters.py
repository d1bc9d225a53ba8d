"""Splitters of texts: the parts join to the document and stay within the size, which each library counts by us."""

from __future__ import annotations

import pytest
from integration_cases import DOCUMENT, TOK, library

from ggufbpe.integrations._protocol import length_function

count = length_function(TOK)
SIZES = [1, 7, 64, 10_000]


@pytest.mark.parametrize("size", SIZES)
def test_langchain(size: int) -> None:
    library("langchain_text_splitters")
    from ggufbpe.integrations.langchain import text_splitter

    splitter = text_splitter(TOK, chunk_size=size, chunk_overlap=0)
    spans = TOK.split(DOCUMENT, size, boundaries="token", parse_special=False)
    assert splitter.split_text(DOCUMENT) == [DOCUMENT[start:end] for start, end in spans]
    assert "".join(each.page_content for each in splitter.create_documents([DOCUMENT])) == DOCUMENT


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
    splitter = parsers.TokenTextSplitter(chunk_size=64, chunk_overlap=0, tokenizer=tokenizer(TOK))
    parts = splitter.split_text(DOCUMENT)
    assert max(map(count, parts)) <= 64
    assert "".join("".join(parts).split()) == "".join(DOCUMENT.split())  # it strips white space
    core.set_global_tokenizer(tokenizer(TOK))
    assert library("llama_index.core.utils").get_tokenizer()(DOCUMENT) == TOK.encode_ordinary(DOCUMENT)


def test_chonkie() -> None:
    chonkie = library("chonkie")
    from ggufbpe.integrations.chonkie import tokenizer

    parts = chonkie.RecursiveChunker(tokenizer=tokenizer(TOK), chunk_size=64).chunk(DOCUMENT)
    assert "".join(part.text for part in parts) == DOCUMENT
    assert max(count(part.text) for part in parts) <= 64


def test_chonkie_by_tokens() -> None:
    chonkie = library("chonkie")
    from ggufbpe.integrations.chonkie import tokenizer

    text = "".join(character for character in DOCUMENT if character.isascii())
    parts = chonkie.TokenChunker(tokenizer=tokenizer(TOK), chunk_size=64, chunk_overlap=0).chunk(text)
    assert "".join(part.text for part in parts) == text
    assert max(part.token_count for part in parts) <= 64


def test_semantic_text_splitter() -> None:
    library("semantic_text_splitter")
    from ggufbpe.integrations.semantic_text_splitter import markdown_splitter, text_splitter

    for splitter in (text_splitter(TOK, 64, trim=False), markdown_splitter(TOK, 64, trim=False)):
        parts = splitter.chunks(DOCUMENT)
        assert "".join(parts) == DOCUMENT
        assert max(map(count, parts)) <= 64
