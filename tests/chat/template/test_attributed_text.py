"""Strings that keep the origin of each character and the starts of their parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ggufbpe.chat.template.attributed_text import (
    Attributed,
    AttributedInt,
    appended_texts,
    attributed,
    joined_texts,
    origins_of,
    starts_of,
    with_one_origin,
    with_origin_of,
)

A, B = "a", "b"  # two origins
TEXT = Attributed("  one TWO ", A * 5 + B * 5)

# A change, its text, and the origin of each character; "." for none.
CHANGES: dict[str, tuple[Callable[[Attributed], str], str, str]] = {
    "added behind": (lambda text: text + "!", "  one TWO !", "aaaaabbbbb."),
    "added in front": (lambda text: "!" + text, "!  one TWO ", ".aaaaabbbbb"),
    "repeated": (lambda text: text[3:6] * 2, "ne ne ", "aabaab"),
    "a character": (lambda text: text[-2], "O", "b"),
    "backwards": (lambda text: text[7:3:-1], "WT e", "bbba"),
    "stripped": (lambda text: text.strip(), "one TWO", "aaabbbb"),
    "stripped of letters": (lambda text: text.strip(" oO"), "ne TW", "aabbb"),
    "without a prefix": (lambda text: text.removeprefix("  o"), "ne TWO ", "aabbbbb"),
    "without a suffix": (lambda text: text.removesuffix("O "), "  one TW", "aaaaabbb"),
    "replaced": (lambda text: text.replace("e T", "--"), "  on--WO ", "aaaa..bbb"),
    "replaced by a text with origin": (
        lambda text: text.replace("one", attributed("1", "c")),
        "  1 TWO ",
        "aacbbbbb",
    ),
    "nothing replaced": (lambda text: text[2:4].replace("", "-"), "-o-n-", ".a.a."),
    "translated": (lambda text: text.translate({ord("o"): "0"}), "  0ne TWO ", "aaaaabbbbb"),
    "translated to other lengths": (lambda text: text[2:6].translate({ord("e"): "ee"}), "onee ", "aaaab"),
    "changed by origin": (
        lambda text: text.changed(lambda part: f"<{part}>"),
        "<  one>< TWO >",
        "a" * 7 + "b" * 7,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str) -> None:
    change, text, origins = CHANGES[name]
    changed = change(TEXT)
    assert (str(changed), origins_of(changed).replace("\0", ".")) == (text, origins)


def test_cut_into_parts() -> None:
    assert [(part, origins_of(part)) for part in TEXT.split(" T")] == [("  one", "aaaaa"), ("WO ", "bbb")]
    assert [origins_of(part) for part in TEXT.partition("e ")] == ["aaaa", "ab", "bbbb"]
    assert [(str(part), origin) for part, origin in TEXT.runs()] == [("  one", A), (" TWO ", B)]


def test_parts_of_what_was_appended_but_not_of_what_was_joined() -> None:
    def capitalized(text: str) -> str:
        return text.capitalize()

    appended, joined = appended_texts(["ab", attributed("cd", A)]), joined_texts("-", ["ab", "cd"])
    assert appended.by_parts(capitalized) == "AbCd"
    assert appended.strip("a").by_parts(capitalized) == "BCd"
    assert joined.by_parts(capitalized) == "Ab-cd"
    assert appended[0:].by_parts(capitalized) == "Abcd"  # a slice is one part
    assert starts_of("abc") == "\1\0\0"


def test_json_values_with_one_origin() -> None:
    value = with_one_origin({"k": ["t", 1, 1.5, None, True, 1 << 63]}, A)
    [key] = value
    text, number, *rest = value["k"]
    assert (key, text, number, rest) == ("k", "t", 1, [1.5, None, True, 1 << 63])
    assert [origins_of(each) for each in (key, text, str(number))] == [A, A, A]
    assert isinstance(number, AttributedInt)
    assert not isinstance(number + 1, AttributedInt)
    assert origins_of(with_origin_of(TEXT, "parsed")) == A * 6
    assert type(with_origin_of("plain", "parsed")) is str
