"""The pre-tokenizer of a file is tried with the library, which may panic."""

from __future__ import annotations

import pytest
from panicking import ENDLESS_PATTERN

from ggufbpe.convert.importers.recognize import recognize


def test_a_pattern_on_which_the_library_panics() -> None:
    words = "the package tokenizers crashes on this file: .*retry-limit-in-match over"
    with pytest.raises(ValueError, match=words):
        recognize(ENDLESS_PATTERN, [])
