"""Ids that another build of llama.cpp gives for the same model and text."""

from __future__ import annotations

import pytest
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe._util.llama_cpp_states import STATES
from ggufbpe.analysis.diagnose.builds import of_other_build

NEWER = small_tokenizer(add_bos=True)
OLDER = Tokenizer(NEWER.vocabulary._replace(strict_utf8=False, llama_cpp=STATES[1]))
OVERLONG = b"a\xc1\x81b"  # of which older builds make "aAb"


@pytest.mark.parametrize(("ours", "theirs"), [(NEWER, OLDER), (OLDER, NEWER)], ids=["older", "newer"])
@pytest.mark.parametrize("add_special", [True, False])
def test_the_build_is_found(ours: Tokenizer, theirs: Tokenizer, add_special: bool) -> None:
    ids = theirs.encode(OVERLONG, add_special=add_special)
    assert ids != ours.encode(OVERLONG, add_special=add_special)
    found = of_other_build(ours, OVERLONG, ids, add_special, True)
    assert found is not None
    [cause] = found.causes
    assert (cause.id, cause.detail["build"], found.explains) == ("build", theirs.llama_cpp, 1.0)
    assert "overlong" in str(cause.detail["what"])
    assert found.variant is not None
    assert found.variant.ids() == ids


def test_ids_of_no_build() -> None:
    assert of_other_build(NEWER, OVERLONG, [1, 2, 3], True, True) is None
    plain = OLDER.encode("ab")
    assert plain == NEWER.encode("ab")
    assert of_other_build(NEWER, b"ab", [*plain, 5], True, True) is None
