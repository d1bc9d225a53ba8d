"""A panic in Rust becomes an error that `except Exception` catches."""

from __future__ import annotations

import pytest
from panicking import panic

from ggufbpe._util.panics import PanicError, panics_as_errors


def test_a_panic() -> None:
    with (
        pytest.raises(PanicError, match=r"the package tokenizers crashes on this file: '?Precompiled"),
        panics_as_errors("tokenizers"),
    ):
        panic()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, KeyError])
def test_everything_else_is_left_alone(error: type[BaseException]) -> None:
    with pytest.raises(error), panics_as_errors("tokenizers"):
        raise error
