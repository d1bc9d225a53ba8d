"""What `ggufbpe chat` says of Ollama's template: nothing where Ollama has nothing to do with the model."""

from __future__ import annotations

import os

from conftest import GPT2

from ggufbpe import Tokenizer, locate
from ggufbpe.cli._ollama_chat import says_which_template


def test_a_file_of_no_store_has_no_template_of_ollamas() -> None:
    tokenizer = Tokenizer.from_gguf(GPT2)
    assert says_which_template(tokenizer, os.fspath(GPT2)) == ""
    assert says_which_template(tokenizer, locate(GPT2)) == ""
