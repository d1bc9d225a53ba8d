"""Two tokenizers side by side: each way in which they can differ is found, and nothing else."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, UNIGRAM, missing
from hypothesis import given
from hypothesis import strategies as st
from real_vocabularies import cached
from reference import NotPreparedError, vocabulary, with_pre, write_metadata
from small_models import CHATML, small_tokenizer, with_template
from synthetic import bounded, gpt2_vocabulary

from ggufbpe import GGUFWarning, Tokenizer, diff, fix, verify
from ggufbpe.analysis.diagnose.cause import Cause, of_two_models
from ggufbpe.analysis.doctor.merge_checks import longest_ascending
from ggufbpe.analysis.verify import stretches
from ggufbpe.analysis.verify.align import Placed
from ggufbpe.analysis.verify.side_by_side import compare
from ggufbpe.analysis.verify.template_diff import template_differences
from ggufbpe.analysis.verify.vocabulary_diff import vocabulary_differences
from ggufbpe.analysis.verify.weighing import _is_extended
from ggufbpe.analysis.views.compare_lines import shown_lines
from ggufbpe.cli import main
from ggufbpe.gguf.constants import TokenizerKey
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.loading import load, load_vocabulary
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.vocabulary import CONTROL, NORMAL, USER_DEFINED, Vocabulary

pytestmark = pytest.mark.tries_fixes

K = TokenizerKey
Change = Callable[[Vocabulary], Vocabulary]


def with_tokens(tokens: list[str]) -> Change:
    """Other tokens; what has the text of an old one is what that was."""

    def change(old: Vocabulary) -> Vocabulary:
        ids = {token: index for index, token in enumerate(tokens)}
        moved = {index: ids[token] for token, index in old.token_to_id.items() if token in ids}
        return old._replace(
            tokens=tokens,
            token_to_id=ids,
            attributes=[
                old.attributes[old.token_to_id[t]] if t in old.token_to_id else NORMAL for t in tokens
            ],
            special_ids={name: i if i is None else moved[i] for name, i in old.special_ids.items()},
            eog_ids=frozenset(moved[index] for index in old.eog_ids),
            special_token_ids=tuple(moved[index] for index in old.special_token_ids),
        )

    return change


def with_attribute(index: int, attribute: int) -> Change:
    return lambda old: old._replace(
        attributes=[*old.attributes[:index], attribute, *old.attributes[index + 1 :]]
    )


def with_pre_of(name: str) -> Change:
    return lambda old: old._replace(pre=name, pre_tokenizer=PRE_TOKENIZERS[name])


ALL_MOVED = {"bos": 1, "eos": 1, "eot": 1}
TOKENS, MERGES = gpt2_vocabulary().tokens, gpt2_vocabulary().merges

# What is changed: how, and the sections and differences that must be found, with their number.
CASES: dict[str, tuple[Change, dict[str, dict[str, int]]]] = {
    "nothing": (lambda old: old, {}),
    "a token more": (with_tokens([*TOKENS, "qzxqzx"]), {"tokens": {"size": 1, "only_b": 1}}),
    "a token less": (
        with_tokens([*TOKENS[:-2], TOKENS[-1]]),
        {"tokens": {"size": 1, "only_a": 1, "other_id": 1}, "special": ALL_MOVED},
    ),
    "another token": (
        with_tokens([*TOKENS[:100], "qzxqzx", *TOKENS[101:]]),
        {"tokens": {"only_a": 1, "only_b": 1}},
    ),
    "two tokens changed places": (
        with_tokens([TOKENS[1], TOKENS[0], *TOKENS[2:]]),
        {"tokens": {"other_id": 2}},
    ),
    "all ids shifted": (
        with_tokens(["<pad>", *TOKENS]),
        {"tokens": {"size": 1, "only_b": 1, "other_id": len(TOKENS)}, "special": ALL_MOVED},
    ),
    "another type": (with_attribute(5, USER_DEFINED), {"types": {"types": 1}}),
    "a merge less": (
        lambda old: old._replace(merges=MERGES[:-1]),
        {"merges": {"merge_count": 1, "merges_only_a": 1}},
    ),
    "another merge": (
        lambda old: old._replace(merges=[*MERGES[:-1], "q qq"]),
        {"merges": {"merges_only_a": 1, "merges_only_b": 1}},
    ),
    "a merge elsewhere": (
        lambda old: old._replace(merges=[MERGES[-1], *MERGES[:-1]]),
        {"merges": {"merge_order": 1}},
    ),
    "BOS added": (lambda old: old._replace(add_bos=True), {"flags": {"add_bos": 1}}),
    "another EOS": (
        lambda old: old._replace(special_ids={**old.special_ids, "eos": 5}, eog_ids=frozenset([5])),
        {"special": {"eos": 1, "end_of_generation": 1}},
    ),
    "a special token more": (
        lambda old: old._replace(special_token_ids=(5, *old.special_token_ids)),
        {"special": {"special_only_b": 1}},
    ),
    "a name that splits alike": (with_pre_of("olmo"), {"pre": {"pre": 1}}),
    "a name that splits otherwise": (with_pre_of("qwen2"), {"pre": {"pre": 1}, "flags": {"clean_spaces": 1}}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_differs_is_found_and_nothing_else(case: str) -> None:
    change, expected = CASES[case]
    found = vocabulary_differences(gpt2_vocabulary(), change(gpt2_vocabulary()))
    assert list(found) == ["tokens", "types", "merges", "flags", "special", "pre"]
    numbers = {
        name: {d.id: d.number for d in differences} for name, differences in found.items() if differences
    }
    assert numbers == expected
    assert all(difference.what for differences in found.values() for difference in differences)


def test_examples_have_both_sides() -> None:
    first, second = with_tokens([TOKENS[1], TOKENS[0], *TOKENS[2:]])(gpt2_vocabulary()), gpt2_vocabulary()
    [difference] = vocabulary_differences(first, second)["tokens"]
    assert difference.examples[0] == {"token": TOKENS[1], "a": 0, "b": 1}
    [types] = vocabulary_differences(with_attribute(5, CONTROL)(second), second)["types"]
    assert types.examples == ({"token": TOKENS[5], "id": 5, "a": "control", "b": "normal"},)


def test_a_token_is_shown_alike_in_either_order() -> None:
    """A control token is shown as it is written, and a normal one as the text that it decodes to."""
    good = gpt2_vocabulary()
    pair = with_attribute(262, CONTROL)(good), good
    lines = [vocabulary_differences(*some)["types"][0].lines[0] for some in (pair, pair[::-1])]
    assert lines == ["262 ' the': control in a, normal in b", "262 ' the': normal in a, control in b"]


def test_pre_tokenizers_are_shown_on_texts_that_they_split_otherwise() -> None:
    [difference] = vocabulary_differences(gpt2_vocabulary(), with_pre_of("qwen2")(gpt2_vocabulary()))["pre"]
    assert len(difference.examples) >= 3
    for example in difference.examples:
        assert "".join(example["a"]) == "".join(example["b"]) == example["text"]
        assert example["a"] != example["b"]
    [alike] = vocabulary_differences(gpt2_vocabulary(), with_pre_of("olmo")(gpt2_vocabulary()))["pre"]
    assert alike.examples == ()
    assert "split the same way" in alike.what


@bounded(200)
@given(st.permutations(range(9)))
def test_the_fewest_merges_are_out_of_order(numbers: list[int]) -> None:
    rest = [numbers[position] for position in longest_ascending(numbers)]
    assert rest == sorted(rest)
    longest = 1  # of all rising subsequences, by trying every one
    for chosen in range(1 << 9):
        kept = [number for position, number in enumerate(numbers) if chosen >> position & 1]
        longest = max(longest, len(kept) if kept == sorted(kept) else 0)
    assert len(rest) == longest


# ---- chat templates -------------------------------------------------------------------------------------

OWN = "{% for m in messages %}\n[{{ m.role }}] {{ m.content }}\n{% endfor %}"
TEMPLATES: dict[str, tuple[dict[str, str], dict[str, str], list[tuple[str, int]]]] = {
    # the templates of both by name, and the differences with their numbers
    "none": ({}, {}, []),
    "the same": ({"": OWN}, {"": OWN}, []),
    "only in one": ({"": OWN}, {}, [("template_only_a", 1), ("prompts", 7)]),
    "only in the other": ({"": OWN}, {"": OWN, ".tool_use": "x"}, [("template_only_b", 1), ("prompts", 2)]),
    "another line": (
        {"": OWN},
        {"": OWN.replace("[{{ m.role }}]", "[{{ m.role|upper }}]")},
        [("template", 2), ("prompts", 7)],
    ),
    "a refusal": (
        {"": OWN},
        {"": OWN + "{% if messages|length > 2 %}{{ raise_exception('three') }}{% endif %}"},
        [("template", 2), ("prompts", 3)],
    ),
    "only another spelling": ({"": OWN}, {"": OWN.replace("m.", "m .")}, [("template", 2), ("prompts", 0)]),
    "one long line": (
        {"": "{{ messages[0].content }}" * 20},
        {"": "{{ messages[0].content }}" * 19 + "!"},
        [("template", 2), ("prompts", 7)],
    ),
}


def with_templates(named: dict[str, str]) -> Tokenizer:
    return Tokenizer.from_gguf(GPT2).with_overrides(
        {f"tokenizer.chat_template{name}": source for name, source in named.items()}
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", TEMPLATES)
def test_differences_of_templates(name: str) -> None:
    one, other, expected = TEMPLATES[name]
    found = diff(with_templates(one), with_templates(other)).sections["templates"]
    assert [(difference.id, difference.number) for difference in found] == expected


def test_what_a_template_does_to_prompts() -> None:
    one, other, _ = TEMPLATES["another line"]
    a, b = with_templates(one), with_templates(other)
    template, prompts = template_differences(a, b, ("a", "b"))
    assert template.lines[1:] == (
        " {% for m in messages %}",
        "-[{{ m.role }}] {{ m.content }}",
        "+[{{ m.role|upper }}] {{ m.content }}",
        " {% endfor %}",
    )
    assert prompts.lines[:2] == (
        "user: 8 tokens in a, 8 tokens in b",
        "  at byte 1: 'user] Is it warm?\\n' and 'USER] Is it warm?\\n'",
    )


def test_whole_templates_are_in_json() -> None:
    one, other, _ = TEMPLATES["another line"]
    found = diff(with_templates(one), with_templates(other)).to_dict()["templates"]
    [example] = found[0]["examples"]
    assert (example["a"], example["b"], "lines" in found[0]) == (one[""], other[""], False)


def test_templates_without_jinja2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    found = diff(with_templates({"": "never prepared"}), with_templates({"": "nor this"})).sections[
        "templates"
    ]
    assert "pip install 'ggufbpe[chat]'" in found[-1].what


@pytest.mark.parametrize(
    ("change", "section", "expected"),
    [
        (lambda old: old._replace(charsmap=b""), "flags", ("charsmap", "4 bytes", None)),
        (
            lambda old: old._replace(charsmap=b"abcd"),
            "flags",
            ("charsmap", "4 bytes, CRC 2144df1c", "4 bytes, CRC ed82cd11"),
        ),
        (lambda old: old._replace(nfc=True), "flags", ("nfc", False, True)),
        (
            lambda old: old._replace(remove_extra_whitespaces=False),
            "flags",
            ("remove_extra_whitespaces", True, False),
        ),
        (lambda old: old._replace(scores=()), "tokens", ("score_count", 1200, None)),
    ],
)
def test_what_differs_in_unigram_models(change: Change, section: str, expected: tuple[Any, ...]) -> None:
    one = load_vocabulary(UNIGRAM)._replace(charsmap=b"\0\0\0\0")
    for a, b, values in ((one, change(one), expected[1:]), (change(one), one, expected[:0:-1])):
        [found] = vocabulary_differences(a, b)[section]
        assert (found.id, found.a, found.b) == (expected[0], *values)


def test_accents_are_stripped_in_one_file_only(tmp_path: Path) -> None:
    keys = {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": [*"abcdef"],
        "tokenizer.ggml.token_type": [1] * 6,
    }
    paths = [tmp_path / "one.gguf", tmp_path / "other.gguf"]
    for path, strips in zip(paths, (True, False)):
        write_metadata(path, {**keys, "tokenizer.ggml.normalizer.strip_accents": strips})
    assert [each.id for each in vocabulary_differences(*map(load_vocabulary, paths))["flags"]] == [
        "strip_accents"
    ]


# ---- the command ----------------------------------------------------------------------------------------


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main(["diff", *arguments, "--json"])
    return code, json.loads(capfd.readouterr().out)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """GPT-2's vocabulary under another pre-tokenizer."""
    return with_pre(GPT2, "qwen2", tmp_path / "other.gguf")


def test_exit_codes(other: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(GPT2), str(GPT2)]) == 0
    assert capfd.readouterr().out == "the vocabularies and chat templates are the same\n"
    assert main(["diff", str(GPT2), str(other)]) == 1
    assert "pre-tokenizer: gpt-2 in gpt2, qwen2 in other" in capfd.readouterr().out
    for arguments in (
        [str(GPT2)],
        [str(GPT2), str(tmp_path / "none")],
        [str(GPT2), __file__],
        [str(GPT2)] * 3,
    ):
        assert main(["diff", *arguments]) == 2
        assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.slow
def test_names_of_models_are_whole(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [tmp_path / f"{name}-of-twenty-letter.gguf" for name in ("one", "two")]
    for name, pre in zip(names, ("gpt-2", "llama-bpe")):
        with_pre(GPT2, pre, name)
    main(["diff", *map(str, names), "-p", "in 12345"])
    assert "\n     two-of-twenty-letter  " in capfd.readouterr().out


def test_texts_that_are_encoded_alike(other: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, found = run(capfd, str(GPT2), str(other), "-p", "Hello world")
    assert code == 1  # the models differ all the same
    assert found["texts"]["differences"] == []
    assert [difference["b"] for difference in found["pre"]] == ["qwen2"]


def test_texts_that_are_not_and_why(other: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "in 2024, 12345 of them"
    (tmp_path / "text.txt").write_text(text)
    code, found = run(capfd, str(GPT2), str(other), "-f", str(tmp_path / "text.txt"), "-p", "Hello world")
    assert code == 1
    assert found["texts"]["texts"] == 2
    [difference] = found["texts"]["differences"]
    assert difference["step"] == "words"
    assert {cause["id"] for cause in difference["causes"]} == {"pre_type"}
    ids = [Tokenizer(load_vocabulary(path)).encode(text) for path in (GPT2, other)]
    assert ids[0] != ids[1]


@pytest.mark.parametrize(
    ("overrides", "what", "fix"),
    [
        (
            {K.ADD_BOS: True},
            "the ids of theirs have BOS, but the model gpt2 adds none",
            "stop the model theirs from adding BOS",
        ),
        ({K.PRE: "qwen2"}, "in theirs, the text was split like qwen2, but the file gpt2 says gpt-2", ""),
    ],
)
def test_causes_name_both_models(overrides: dict[str, Any], what: str, fix: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.gguf"
    theirs.symlink_to(GPT2)
    found = diff(GPT2, Tokenizer(load(theirs, overrides)[0]), "in 2024")
    assert found.texts is not None
    [cause] = found.texts.differences[0].causes
    assert [str(cause.detail["what"])[: len(what)], cause.fix[: len(fix)]] == [what, fix]


def test_tokens_that_the_other_model_lacks_cannot_be_parsed_there(tmp_path: Path) -> None:
    whole = write_metadata(tmp_path / "whole.gguf", with_template(CHATML, "<|tool|>"))
    other = write_metadata(tmp_path / "other.gguf", with_template(CHATML))
    found = diff(whole, other, "hi<|tool|>")
    assert found.texts is not None
    [cause] = found.texts.differences[0].causes
    assert str(cause.detail["what"]).endswith("has no such tokens")
    assert (cause.fix, bool(cause.change)) == ("", False)


@pytest.mark.slow
@pytest.mark.parametrize("pre", ["qwen2", "grok-2", "viking", "starcoder"])
def test_the_pre_tokenizer_that_the_file_says_is_not_guessed(pre: str, tmp_path: Path) -> None:
    theirs = Tokenizer(load(GPT2, {K.PRE: pre})[0])
    texts = ["in 2024, 12345 of them", "I'LL go", "a  b\n\n c"]
    found = diff(GPT2, theirs, texts)
    assert found.texts is not None
    causes = [cause for difference in found.texts.differences for cause in difference.causes]
    assert [cause for cause in causes if cause.id == "pre_type"]
    for cause in causes:
        assert cause.detail["pre"] == pre
        assert str(cause.detail["what"]).endswith(
            f"was split like {pre}, but the file {found.names[0]} says gpt-2"
        )
        assert cause.change.keys == {K.PRE: pre}


@pytest.mark.parametrize(
    ("sentence", "renamed"),
    [
        ("the ids decode to 'the model\\'s ids'", "the ids of B decode to 'the model\\'s ids'"),
        ('the given ids are of "the ids"', 'the ids of B are of "the ids"'),
        (
            "not normalized by the charsmap of the model",
            "in B, not normalized by the charsmap of the model A",
        ),
        (
            "the model adds BOS, but the given ids have none",
            "the model A adds BOS, but the ids of B have none",
        ),
        ("words are taken whole", "in B, words are taken whole"),
    ],
)
def test_quoted_texts_in_causes_stay(sentence: str, renamed: str) -> None:
    cause = of_two_models(Cause("text_differs", {"what": sentence}, ""), "A", "B")
    assert cause.detail["what"] == renamed


def test_with_texts_they_come_first(other: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(GPT2), str(other), "-p", "in 2024, 12345 of them"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("1 of 1 text differs")
    assert lines.index("pre-tokenizer") > next(i for i, line in enumerate(lines) if "cause: pre_type" in line)
    assert "--all shows which ones" in lines
    assert lines[-1] == f"  ggufbpe fix {other} --set tokenizer.ggml.pre=gpt-2 -o fixed.gguf"


def test_names_of_files_cannot_steer_the_terminal(
    other: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("a\x1b[31m.gguf", "b\x1b[2J.gguf"):
        (tmp_path / name).symlink_to(GPT2 if name[0] == "a" else other)
    models = [str(tmp_path / "a\x1b[31m.gguf"), str(tmp_path / "b\x1b[2J.gguf")]
    code = main(["diff", *models, "-p", "in 2024"])
    out = capfd.readouterr().out
    assert (code, "\x1b" in out, out.count("a\\x1b[31m") > 2) == (1, False, True)


def test_tokens_are_shown_as_the_text_that_they_stand_for(tmp_path: Path) -> None:
    tokens = [*TOKENS, "è®°èĢħ"]  # 记者, as it is written in a byte-level vocabulary
    changed = with_tokens(tokens)(gpt2_vocabulary())
    [only] = [
        found
        for found in vocabulary_differences(changed, gpt2_vocabulary(), ("new", "old"))["tokens"]
        if found.id == "only_a"
    ]
    assert (only.what, only.lines) == ("token only in new", (f"{len(tokens) - 1} '记者'",))
    assert only.examples == ({"id": len(tokens) - 1, "token": "è®°èĢħ"},)


def test_escapes_are_read_only_when_asked(other: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = [run(capfd, str(GPT2), str(other), "-p", "a\\n\\n1", *flags)[1] for flags in ([], ["--escape"])]
    assert [found["texts"]["bytes"] for found in shown] == [6, 4]


@pytest.mark.slow
def test_real_vocabularies(capfd: pytest.CaptureFixture[str]) -> None:
    """Qwen 2's and Qwen 3.5's have the same tokens and merges; what differs is the splitting."""
    try:
        paths = [str(vocabulary(name)) for name in ("qwen2", "qwen35")]
    except NotPreparedError as error:
        missing(str(error))
    code, found = run(capfd, *paths)
    assert code == 1
    assert {name for name in ("tokens", "types", "merges", "flags", "special") if found[name]} == set()
    [difference] = found["pre"]
    assert (difference["a"], difference["b"]) == ("qwen2", "qwen35")
    assert {"text": "नमस्ते", "a": ["नमस", "्त", "े"], "b": ["नमस्ते"]} in difference["examples"]


# ---- one text, several models ---------------------------------------------------------------------------


def models() -> list[Tokenizer]:
    found = [Tokenizer(gpt2_vocabulary()), Tokenizer(with_pre_of("llama-bpe")(gpt2_vocabulary()))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return [*found, Tokenizer.from_gguf(UNIGRAM)]


@pytest.mark.slow
@bounded(200)
@given(st.text(st.sampled_from("ab 12é\n者\u0301")), st.integers(1, 3))
def test_stretches_are_the_text_and_the_tokens_of_all(text: str, count: int) -> None:
    tokenizers = models()[:count]
    found = compare(tokenizers, text).stretches
    size = len(text.encode())
    assert [stretch.start for stretch in found] == [0, *(stretch.end for stretch in found)][: len(found)]
    assert (found[-1].end if found else 0) == size
    for number, tokenizer in enumerate(tokenizers):
        ids = [token.id for stretch in found for token in stretch.tokens[number]]
        if text:
            assert ids == tokenizer.encode(text, add_special=False)
    for stretch in found:
        cuts = [{(t.start, t.end) for t in row if t.start < t.end} for row in stretch.tokens]
        assert stretch.is_same is all(each == cuts[0] for each in cuts)


def test_stretches_are_as_short_as_they_can_be() -> None:
    found = compare(models()[:2], "ab 1234567 cd").stretches
    assert [(stretch.start, stretch.end) for stretch in found if not stretch.is_same] == [(2, 6), (6, 10)]


def test_compare_prints_who_cuts_how(other: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(GPT2), str(other), "-p", "in 2024, 12345"]) == 1
    assert capfd.readouterr().out.splitlines() == [
        "14 bytes, cut differently in 3 places",
        "tokens  chars/token  model",
        "     5         2.80  gpt2",
        "    13         1.08  other",
        "",
        'byte 2: " 2024"',
        "  gpt2   1 token: ␣2024",
        "  other  5 tokens: ␣ │ 2 │ 0 │ 2 │ 4",
        "",
        'byte 8: " 123"',
        "  gpt2   1 token: ␣123",
        "  other  4 tokens: ␣ │ 1 │ 2 │ 3",
        "",
        'byte 12: "45"',
        "  gpt2   1 token: 45",
        "  other  2 tokens: 4 │ 5",
    ]
    assert main(["compare", str(GPT2), str(other), "-p", "Hello world"]) == 0
    assert capfd.readouterr().out.startswith("11 bytes, cut alike by all\n")


@pytest.mark.parametrize("width", [20, 39, 40])
def test_compare_names_the_models_on_narrow_terminals(width: int) -> None:
    named = dict(zip(("first-model", "second-model"), models()))
    lines = list(
        shown_lines(compare(named, "in 2024"), ids=False, everything=False, color=False, width=width)
    )
    head = " ".join(" ".join(lines[: lines.index("")]).split())
    assert [name in head for name in named] == [True, True]
    assert ("first-model: 2 tokens, 3.50 chars/token" in head) is (width < 40)


def test_compare_as_json(other: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(GPT2), "-m", str(other), "-p", "a 12", "--json"]) == 1
    out = capfd.readouterr().out
    found = json.loads(out)
    assert out == json.dumps(found, indent=2) + "\n"  # though it is written piece by piece
    assert [model["name"] for model in found["models"]] == ["other", "gpt2"]
    tokens = [
        [token["piece"] for row in stretch["tokens"] for token in row] for stretch in found["stretches"]
    ]
    assert tokens == [["a", "a"], [" ", "1", "2", " 12"]]


def test_compare_of_no_text_is_json_too(other: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(GPT2), str(other), "-p", "", "--json"]) == 0
    out = capfd.readouterr().out
    assert out == json.dumps({**json.loads(out), "stretches": []}, indent=2) + "\n"


def test_a_large_text_makes_no_object_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token is one only in a stretch that somebody asks for."""
    made = 0

    def counting(*arguments: Any) -> Placed:
        nonlocal made
        made += 1
        return Placed(*arguments)

    monkeypatch.setattr(stretches, "Placed", counting)
    found = compare(models()[:2], "ab 1234567 cd\n" * 1000).stretches
    assert found.differing == len(list(found.only_differing())) > 1000
    assert 0 < made < sum(found.counts)


def test_compare_wants_two_models_and_one_text(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        [str(GPT2), "-p", "a"],
        [str(GPT2), str(GPT2)],
        [str(GPT2), str(GPT2), "-p", "a", "-f", "x"],
    ):
        assert main(["compare", *arguments]) == 2
        assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("written", "is_proposed"),
    [
        ("<|im_start|>", False),  # the same tokens in other words: nothing is broken
        ("<|start_header_id|>", True),
    ],
)
def test_the_template_of_the_other_file(written: str, is_proposed: bool, tmp_path: Path) -> None:
    """It is proposed where doctor warns that the file's own is for another model, and gives the same prompts."""
    template = CHATML.replace("<|im_start|>", written) + "{# changed #}"
    own = write_metadata(tmp_path / "own.gguf", with_template(template))
    good = write_metadata(tmp_path / "good.gguf", with_template(CHATML))
    found = diff(own, good)
    assert (f"--chat-template {good} " in found.fix) is is_proposed
    if is_proposed:
        assert found.suspect == 0
        fix(own, tmp_path / "fixed.gguf", chat_template=Path(good))
        assert diff(tmp_path / "fixed.gguf", good).same
    assert diff(named(own), named(good)).fix == found.fix.replace(str(own), "own").replace(str(good), "good")


def named(path: Path) -> Tokenizer:
    """A model that is called as its file is without suffix, as by the server, where no file has that name."""
    vocabulary, metadata = load(path)
    return Tokenizer(vocabulary, metadata=metadata, name=path.stem)


def gpt2_with(path: Path, changed: Callable[[list[str], list[str]], tuple[list[str], list[str]]]) -> Path:
    """GPT-2's vocabulary with other tokens and merges."""
    with GGUFFile(GPT2) as file:
        keys = {
            key: file[key] for key in ("general.architecture", K.MODEL, K.PRE, K.LIST, K.TOKEN_TYPE, K.MERGES)
        }
    tokens, merges = changed(list(keys[K.LIST]), list(keys[K.MERGES]))
    return write_metadata(path, {**keys, K.LIST: tokens, K.MERGES: merges})


def test_nothing_is_to_be_done_to_the_file_that_is_right(tmp_path: Path) -> None:
    good = gpt2_with(tmp_path / "good.gguf", lambda tokens, merges: (tokens, merges))
    bad = gpt2_with(tmp_path / "bad.gguf", lambda tokens, merges: (tokens, merges[:20_000]))
    text = "Antidisestablishmentarianism notwithstanding, the committee met on Wednesday."
    for pair, suspect in (((bad, good), 0), ((good, bad), 1)):
        found = diff(*pair, [text])
        assert found.suspect == suspect
        assert found.texts is not None
        causes = [cause for difference in found.texts.differences for cause in difference.causes]
        assert [cause.id for cause in causes] == ["merges"]
        assert bool(causes[0].fix) is (suspect == 0)


def test_exchanged_tokens_are_a_cause(tmp_path: Path) -> None:
    def exchanged(tokens: list[str], merges: list[str]) -> tuple[list[str], list[str]]:
        tokens[262], tokens[290] = tokens[290], tokens[262]
        return tokens, merges

    found = diff(gpt2_with(tmp_path / "bad.gguf", exchanged), GPT2, ["and the cat and the dog"])
    assert found.texts is not None
    causes = [cause for difference in found.texts.differences for cause in difference.causes]
    assert [cause.detail["problem"] for cause in causes] == ["exchanged"]


def test_other_scores_are_a_cause() -> None:
    tok = Tokenizer.from_gguf(UNIGRAM)
    with GGUFFile(UNIGRAM) as file:
        scores = list(file[K.SCORES])
    other = tok.with_overrides({K.SCORES: [*scores[:5], *reversed(scores[5:])]})
    found = diff(tok, other, ["the hello world and other words that are tokens here"])
    assert found.texts is not None
    causes = [cause.id for difference in found.texts.differences for cause in difference.causes]
    assert causes == ["scores"]


_WORDS = small_tokenizer("low", "lower", attributes={}).vocabulary._replace(merges=())


@pytest.mark.parametrize(
    ("whole", "lost", "is_seed"),
    [
        (_WORDS, 1, True),  # no merges, as in SPM
        (_WORDS._replace(special_ids={**_WORDS.special_ids, "eot": len(_WORDS.tokens) - 1}), 1, False),
        (small_tokenizer().vocabulary, 1, False),  # without <|im_end|>
        (small_tokenizer().vocabulary, 0, False),
    ],
)
def test_a_file_that_lost_its_end_is_no_seed(whole: Vocabulary, lost: int, is_seed: bool) -> None:
    size = len(whole.tokens) - lost
    cut = whole._replace(tokens=whole.tokens[:size], merges=whole.merges[: len(whole.merges) - lost])
    assert _is_extended(cut, whole) is is_seed


def test_rows_that_would_look_alike_are_shown_as_they_are_written(tmp_path: Path) -> None:
    """Merges in which spaces are not written in GPT-2's alphabet, and tokens without U+2581."""
    good = gpt2_vocabulary()
    bad = good._replace(merges=[merge.replace("Ġ", " ") for merge in good.merges])
    lines = [each.lines[0] for each in vocabulary_differences(bad, good)["merges"]]
    assert lines == ["rank 0: ' ' + 't'", "rank 0: 'Ġ' + 't'"]
    spm = load_vocabulary(UNIGRAM)
    tokens = [token.replace("▁", " ") for token in spm.tokens]
    ids = {token: index for index, token in enumerate(tokens)}
    found = vocabulary_differences(spm._replace(tokens=tokens, token_to_id=ids), spm)["tokens"]
    rows = [each.lines[0].partition(" ")[2] for each in found]
    assert rows[0].replace(" ", "▁") == rows[1]


@pytest.fixture
def wrong_model(tmp_path: Path) -> Path:
    """GPT-2's vocabulary under the name of another tokenizer, which needs a token for each byte."""
    path = tmp_path / "wrong.gguf"
    fix(GPT2, path, set={"tokenizer.ggml.model": "llama"}, force=True)
    return path


@pytest.mark.filterwarnings("ignore:.*no token for the newline")
@pytest.mark.parametrize("texts", [(), ("Hello", "€")])
def test_a_wrong_tokenizer_model_cannot_encode_texts_and_is_mended(
    texts: tuple[str, ...], wrong_model: Path
) -> None:
    for turn in (1, -1):
        found = diff(*(wrong_model, GPT2)[::turn], texts)
        assert found.suspect == (turn < 0)
        assert found.fix == f"ggufbpe fix {wrong_model} --set tokenizer.ggml.model=gpt2 -o fixed.gguf"


@pytest.mark.filterwarnings("ignore:.*no token for the newline")
def test_texts_that_one_side_cannot_encode_differ(wrong_model: Path) -> None:
    """llama.cpp throws an exception for them; the other texts are compared all the same."""
    ours, theirs = verify(wrong_model, GPT2, ["Hello"]), verify(GPT2, wrong_model, ["Hello"])
    assert (ours.same, ours.different, [group.kind for group in ours.failures]) == (False, 1, ["not encoded"])
    assert (theirs.same, theirs.failed, [group.kind for group in theirs.failures]) == (False, 1, ["crash"])


def test_causes_are_looked_for_in_the_beginning_of_a_long_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further byte of a word without end is encoded some thirty times, and tells nothing new."""
    from ggufbpe.analysis.diagnose import id_diagnosis

    sizes: list[int] = []
    answers = id_diagnosis.answers

    def counted(model: Tokenizer, compared: Any, *rest: Any) -> Any:
        sizes.append(len(compared.text))
        return answers(model, compared, *rest)

    monkeypatch.setattr(id_diagnosis, "answers", counted)
    assert diff(cached("llama-spm"), GPT2, ["a" * 60_000]).texts
    assert sizes
    assert max(sizes) < 10_000
