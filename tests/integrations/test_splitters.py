"""Splitters of texts: the parts join to the document and stay within the size, which each library counts by us."""

from __future__ import annotations

from itertools import pairwise

import pytest
from integration_cases import DOCUMENT, TOK, library
from synthetic import ONE_OF_EACH_FAMILY, tokenizer_as

from ggufbpe.integrations._protocol import chunks, length_function

count = length_function(TOK)
SIZES = [1, 7, 64, 10_000]


@pytest.mark.parametrize("size", SIZES)
def test_chunks(size: int) -> None:
    parts = chunks(TOK, DOCUMENT, size)
    assert "".join(parts) == DOCUMENT
    for part in parts:
        assert count(part) <= size or (len(part) <= 2 and not part.isascii())  # characters that share tokens


@pytest.mark.parametrize(
    ("text", "parts"), [("", []), ("a", ["a"]), ("者", ["者"]), ("a b c", ["a b", " c"])]
)
def test_chunks_of_two_tokens(text: str, parts: list[str]) -> None:
    assert chunks(TOK, text, 2) == parts


@pytest.mark.parametrize("family", ONE_OF_EACH_FAMILY)
def test_chunks_of_each_family(family: str) -> None:
    tok = tokenizer_as(family)
    parts = chunks(tok, DOCUMENT, 20)
    assert "".join(parts) == DOCUMENT
    assert [part for part in parts if length_function(tok)(part) > 20] == []


def test_chunks_that_overlap() -> None:
    parts = chunks(TOK, DOCUMENT, 50, overlap=10)
    at = [0]
    for before, part in pairwise(parts):
        at.append(DOCUMENT.index(part, at[-1] + 1))
        assert at[-1] <= at[-2] + len(before)
        assert count(DOCUMENT[at[-1] : at[-2] + len(before)]) <= 11
    assert at[-1] + len(parts[-1]) == len(DOCUMENT)
    with pytest.raises(ValueError, match="overlap must be at least 0 and less than size"):
        chunks(TOK, DOCUMENT, 10, overlap=10)


@pytest.mark.parametrize("size", SIZES)
def test_langchain(size: int) -> None:
    library("langchain_text_splitters")
    from ggufbpe.integrations.langchain import text_splitter

    splitter = text_splitter(TOK, chunk_size=size, chunk_overlap=0)
    assert splitter.split_text(DOCUMENT) == chunks(TOK, DOCUMENT, size)
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
