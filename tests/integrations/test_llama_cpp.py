"""llama-cpp-python with our tokenizer gives the ids and bytes that it gives with its own, on a real vocabulary."""

from __future__ import annotations

import pytest
from conftest import GPT2, missing
from integration_cases import DOCUMENT
from reference import NotPreparedError, vocabulary

from ggufbpe import Tokenizer

llama_cpp = pytest.importorskip("llama_cpp")

from ggufbpe.integrations.llama_cpp import Tokenizer as LlamaTokenizer  # noqa: E402 - after its library


@pytest.mark.parametrize("name", ["gpt-2 of the package", "llama-spm"])
def test_llama_cpp_python(name: str) -> None:
    try:
        path = GPT2 if name.endswith("package") else vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    ours = LlamaTokenizer(Tokenizer.from_gguf(path))
    theirs = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    for text in (b"Hello world", DOCUMENT.encode(), b"<|endoftext|></s>", b""):
        for add_bos in (True, False, 1, None):
            for special in (True, False, 1, None):  # both need not be bools there
                ids = theirs.tokenize(text, add_bos, special)
                assert ours.tokenize(text, add_bos, special) == ids
                assert ours.detokenize(ids, special=special) == theirs.detokenize(ids, special=special)
    chosen = llama_cpp.Llama(str(path), vocab_only=True, verbose=False, tokenizer=ours)
    assert chosen.tokenize(b"Hello world") == theirs.tokenize(b"Hello world")
    assert isinstance(ours, llama_cpp.BaseLlamaTokenizer)
