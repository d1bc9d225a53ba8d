"""Proposals: what a change is, which tokens are markers, how texts are cut, and which changes are objected to."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from conftest import GPT2, prepared
from reference import vocabulary, with_pre
from small_models import FactsOf, facts_of, small_keys
from synthetic import gpt2_vocabulary

from ggufbpe import Tokenizer, fix, verify
from ggufbpe.analysis.diagnose.id_diagnosis import diagnose
from ggufbpe.analysis.diagnose.several import Several
from ggufbpe.analysis.diagnose.texts_of_ids import swapped, texts_of_lost
from ggufbpe.analysis.doctor.marker_tokens import MarkerTokens
from ggufbpe.analysis.doctor.model_checks import charsmap
from ggufbpe.analysis.doctor.proposal import (
    ENDS,
    Proposal,
    Trial,
    checks_left_out,
    prove,
    prove_by_parts,
    unless_ends_are_lost,
)
from ggufbpe.analysis.doctor.texts_with_ids import TextWithIds, end_of_token, ends_of, parts_of, with_exchange
from ggufbpe.analysis.verify.model_diff import diff
from ggufbpe.analysis.verify.weighing import change_to, weigh
from ggufbpe.gguf.change import Change, all_of
from ggufbpe.gguf.constants import GGUFValueType
from ggufbpe.gguf.constants import TokenizerKey as K
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.hub.model_location import fix_command
from ggufbpe.models.loading import load, load_vocabulary
from ggufbpe.models.vocabulary import CONTROL, NORMAL, USER_DEFINED, Vocabulary

pytestmark = pytest.mark.tries_fixes
__all__ = ["facts_of"]  # the fixture


def opened(path: Path) -> Tokenizer:
    """The tokenizer of a file, without what it warns of."""
    return Tokenizer(load_vocabulary(path))


PRE, BOS = Change({K.PRE: "qwen2"}), Change({K.ADD_BOS: "true"})
END = 50256  # <|endoftext|> in GPT-2's vocabulary

# ---- changes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "arguments", "described"),
    [
        (Change(), [], []),
        (PRE, ["--set", f"{K.PRE}=qwen2"], [f"{K.PRE}=qwen2"]),
        (Change({K.SCORES: None}), ["--remove", K.SCORES], [f"no {K.SCORES}"]),
        (Change(types={7: "CONTROL"}), ["--set-token-type", "7=CONTROL"], ["token 7 of type CONTROL"]),
        (
            Change(types={9: "NORMAL", 7: "CONTROL", 8: "CONTROL"}),
            ["--set-token-type", "9=NORMAL", "--set-token-type", "7..8=CONTROL"],
            ["token 9 of type NORMAL", "tokens 7..8 of type CONTROL"],
        ),
        (
            Change(templates={"": "known:chatml"}),
            ["--chat-template", "known:chatml"],
            ["the chat template of known:chatml"],
        ),
        (
            Change(templates={"tool_use": "a=b.jinja"}),
            ["--chat-template", "tool_use=a=b.jinja"],
            ["the chat template of tool_use=a=b.jinja"],
        ),
    ],
)
def test_a_change_is_arguments_words_and_a_command(
    change: Change, arguments: list[str], described: list[str]
) -> None:
    assert (change.arguments, change.described, bool(change)) == (arguments, described, bool(arguments))
    command = " ".join(["ggufbpe fix m.gguf", *arguments, "-o fixed.gguf"])
    assert Change.of_command(command) == change


def test_a_path_with_an_equals_sign_is_no_name_of_a_template() -> None:
    arguments = Change(templates={"": "v=2.gguf"}).arguments
    command = " ".join(["ggufbpe fix m.gguf", *arguments, "-o fixed.gguf"])
    assert Change.of_command(command) == Change(templates={"": "./v=2.gguf"})


@pytest.mark.parametrize("flag", ["--chat-template FILE", "--set-token-type '<|x|>=CONTROL'"])
def test_a_command_that_needs_something_of_the_user_is_no_change(flag: str) -> None:
    assert Change.of_command(f"ggufbpe fix m.gguf {flag} -o fixed.gguf") is None


def test_of_two_changes_of_one_thing_the_later_one_counts() -> None:
    assert all_of([PRE, BOS, Change({K.PRE: "gpt-2"})]) == Change({K.PRE: "gpt-2", K.ADD_BOS: "true"})


# ---- markers ------------------------------------------------------------------------------------------


def with_added(texts: list[str], types: list[int], merges: tuple[str, ...] | None = None) -> Vocabulary:
    """GPT-2's vocabulary with tokens added behind the others."""
    own = gpt2_vocabulary()
    added = range(len(own.tokens), len(own.tokens) + len(texts))
    return own._replace(
        tokens=[*own.tokens, *texts],
        token_to_id={**dict(own.token_to_id), **dict(zip(texts, added))},
        attributes=[*own.attributes, *types],
        merges=own.merges if merges is None else merges,
    )


FEW_MERGES = 5000  # of 50,000
FILLER = [f"filler{number}" for number in range(100)]
CHAT = ["<|im_start|>", "<|im_end|>", "<think>", "<h2>", "</s>"]


@pytest.mark.parametrize(
    ("texts", "types", "parsed", "group"),
    [  # of ids counted from the first added token
        (CHAT[:2], [NORMAL, NORMAL], 0, {0: CONTROL, 1: CONTROL}),
        (CHAT[:2], [NORMAL, CONTROL], 0, {0: CONTROL}),
        (CHAT[:3], [NORMAL] * 3, 0, {0: CONTROL, 1: CONTROL}),  # other brackets are another group
        (["<h1>", "<h2>"], [NORMAL, NORMAL], 0, {0: CONTROL, 1: CONTROL}),
        # a tag of reasoning is shown
        (["<think>", "<h2>"], [NORMAL, NORMAL], 0, {0: USER_DEFINED, 1: CONTROL}),
        (["<|x|>", "  "], [NORMAL, NORMAL], 1, {1: USER_DEFINED}),
        # the quotation mark of Gemma 4's tool calls is shown
        (["<|x|>", '<|"|>'], [NORMAL, NORMAL], 0, {0: CONTROL, 1: USER_DEFINED}),
        (["<|x|>", '<|"|>'], [NORMAL, NORMAL], 1, {0: CONTROL, 1: USER_DEFINED}),
    ],
)
def test_markers_get_their_types_as_a_group(
    texts: list[str], types: list[int], parsed: int, group: dict[int, int]
) -> None:
    first = len(gpt2_vocabulary().tokens)
    found = MarkerTokens(with_added(texts, types)).types_of([first + parsed])
    assert {token - first: kind for token, kind in found.items() if token >= first} == group


@pytest.mark.parametrize(
    ("texts", "parsed", "group"),
    [
        (["</s>", "<SEP>", "<h2>"], 0, [0]),
        (["<|user|>", "<|end|>", "<h2>"], 0, [0, 1]),
        (["<h2>", "<h3>"], 0, [0]),
    ],
)
def test_without_merges_only_bars_tell_markers_from_text(
    texts: list[str], parsed: int, group: list[int]
) -> None:
    own = with_added(texts, [NORMAL] * len(texts), merges=())
    first = len(gpt2_vocabulary().tokens)
    assert MarkerTokens(own).group_of([first + parsed]) == [first + token for token in group]


def test_a_well_known_name_far_from_the_markers_is_text() -> None:
    """As <s> is in Qwen 2's vocabulary."""
    vocabulary = with_added(["</s>", *FILLER, *CHAT[:2]], [NORMAL] * 103)
    first = len(gpt2_vocabulary().tokens)
    assert first not in MarkerTokens(vocabulary).group_of([first + 101])


@pytest.mark.parametrize(
    ("texts", "kinds", "markers"),
    [  # of ids counted from the first added token
        ([*FILLER, "<s>", *FILLER, "<|x|>"], [NORMAL] * 202, [201]),
        (["<s>", "<|x|>"], [NORMAL, CONTROL], [0, 1]),
        (["<|x|>", "\xff", "\xfe", "word"], [NORMAL] * 4, [0, 1, 2]),  # no UTF-8 has these bytes
    ],
)
def test_where_merges_are_missing_they_do_not_tell_markers_from_text(
    texts: list[str], kinds: list[int], markers: list[int]
) -> None:
    vocabulary = with_added(texts, kinds, merges=gpt2_vocabulary().merges[:FEW_MERGES])
    first, known = len(gpt2_vocabulary().tokens), MarkerTokens(vocabulary)
    assert [token - first for token in range(first, len(vocabulary.tokens)) if token in known] == markers


def test_a_special_id_of_a_padding_token_does_not_make_it_a_marker() -> None:
    """The id is wrong rather than the type."""
    vocabulary = with_added(["[unused1]", "[CLS]", "[SEP]"], [NORMAL] * 3)
    first = len(gpt2_vocabulary().tokens)
    vocabulary = vocabulary._replace(special_ids={**vocabulary.special_ids, "bos": first})
    assert MarkerTokens(vocabulary).group_of([first + 1]) == [first + 1, first + 2]


def test_a_special_id_of_html_does_not_make_it_a_marker_without_merges() -> None:
    vocabulary = with_added(["<s>", "<h1>", "<h2>"], [CONTROL, NORMAL, NORMAL], merges=[])
    first = len(gpt2_vocabulary().tokens)
    vocabulary = vocabulary._replace(special_ids={**vocabulary.special_ids, "bos": first + 2})
    assert MarkerTokens(vocabulary).group_of([first]) == [first]


@pytest.mark.parametrize("text", ["hello", "[", "<", "]", "Ġ<", "ing"])
def test_what_merges_produce_is_no_marker(text: str) -> None:
    vocabulary = gpt2_vocabulary()
    assert vocabulary.token_to_id[text] not in MarkerTokens(vocabulary)


# ---- texts and their parts ----------------------------------------------------------------------------

LINES = "The first line\nand another\n\n  indented\nlast"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", 1),
        ("one line", 1),
        ("two\nlines", 2),
        (LINES, 3),  # no cut before white space: the break and the indentation may be one word
        ("\n\n", 1),
    ],
)
def test_parts_are_whole_lines_and_have_the_ids_of_the_text(text: str, parts: int) -> None:
    tok = Tokenizer.from_gguf(GPT2)
    found = parts_of(tok, TextWithIds(text.encode(), [END, *tok.encode(text)]))
    assert len(found) == parts
    assert b"".join(part.text for part in found) == text.encode()
    assert [token for part in found for token in part.ids] == [END, *tok.encode(text)]
    assert [part.has_begin for part in found] == [True] + [False] * (parts - 1)


def test_ids_of_another_text_are_not_cut() -> None:
    tok = Tokenizer.from_gguf(GPT2)
    compared = TextWithIds(LINES.encode(), tok.encode("something\nelse"))
    assert parts_of(tok, compared) == [compared]


def test_lines_are_cut_where_the_other_side_has_exchanged_two_tokens() -> None:
    tok, text = Tokenizer.from_gguf(GPT2), LINES.encode()
    right = tok.encode(LINES)
    pair = right[0], right[-1]
    compared = TextWithIds(text, with_exchange(right, [pair]))
    assert parts_of(tok, compared) == [compared]
    found = parts_of(tok, compared, [pair])
    assert [part.text for part in found] == [part.text for part in parts_of(tok, TextWithIds(text, right))]
    assert [token for part in found for token in part.ids] == compared.ids


def test_an_exchange_of_tokens_is_undone_by_itself() -> None:
    pairs = ((1, 2), (3, 4))
    assert with_exchange([1, 2, 3, 4, 5], pairs) == [2, 1, 4, 3, 5]
    assert with_exchange([2, 1, 4, 3, 5], pairs) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("piece", "text", "at", "end"),
    [
        (b"ab", b"abc", 0, 2),
        (b"ab", b"xabc", 1, 3),
        (b" ab", b"abc", 0, 2),  # the model has added the space
        (b" ", b"abc", 0, 0),
        (b"ab", b"\n abc", 0, 4),  # a marker has taken white space
        (b"x", b"abc", 0, -1),
        (b"ab", b"abc", 1, -1),
    ],
)
def test_where_a_token_ends(piece: bytes, text: bytes, at: int, end: int) -> None:
    assert end_of_token(piece, text, at) == end


@pytest.mark.parametrize(
    ("text", "head", "tail"),
    [
        ("Hi", [END], []),
        ("Hi", [], [END]),
        ("Hi", [END, END], [END]),
        ("Hi", [], []),
    ],
)
@pytest.mark.parametrize("own", ["", "<|endoftext|>"])
def test_what_is_around_a_text_is_not_what_the_text_begins_with(
    text: str, head: list[int], tail: list[int], own: str
) -> None:
    tok = Tokenizer.from_gguf(GPT2)
    given = [*head, *tok.encode(own + text + own), *tail]
    before, behind = ends_of(tok, TextWithIds((own + text + own).encode(), given))
    assert (before.ids, behind.ids) == (head, tail)


# ---- what is proposed, and what is objected to --------------------------------------------------------

RIGHT = Tokenizer.from_gguf(GPT2).encode


@pytest.mark.parametrize(
    ("pre", "change", "text", "ids", "objection"),
    [
        ("qwen2", Change({K.PRE: "gpt-2"}), "in 2024", RIGHT("in 2024"), ""),
        ("qwen2", Change({K.PRE: "olmo"}), "in 2024", RIGHT("in 2024"), ""),
        ("gpt-2", Change(), "x", [1], "nothing in the file has to change"),
        ("qwen2", Change({K.PRE: "falcon"}), "x 123y", [5], "no text gets the other side's ids by it"),
        ("gpt-2", Change({K.PRE: "no-such"}), "x", [5], "the model cannot be opened afterwards"),
        ("gpt-2", Change({K.EOS_ID: "-5"}), "x", [5], "the change cannot be made"),
        ("gpt-2", Change(types={1212: "CONTROL"}), "This is", [1212, 318], "would decode to other text"),
    ],
)
def test_a_change_is_proposed_if_it_helps_and_harms_nothing(
    pre: str, change: Change, text: str, ids: list[int], objection: str, tmp_path: Path
) -> None:
    tok = opened(with_pre(GPT2, pre, tmp_path / "model.gguf"))
    with Trial(tok) as trial:
        found = prove(trial, change, [TextWithIds(text.encode(), ids)])
    assert objection in found.objection
    assert bool(objection) == bool(found.objection)
    command = fix_command(tok.vocabulary.path, change.arguments)
    assert (found.command, found.explained) == (("", 0) if objection else (command, 1))


@pytest.mark.parametrize(
    ("bos", "says", "is_proposed"),
    [("<s>", True, False), ("<s>", None, True), ("<|endoftext|>", True, True), ("hello", True, True)],
)
def test_ids_without_bos_switch_off_none_that_the_file_itself_asks_for(
    bos: str, says: bool | None, is_proposed: bool, facts_of: FactsOf
) -> None:
    """As for DeepSeek V3, whose tokenizer.json adds none: tokenizer_config.json asks for it."""
    keys = small_keys("<s>", add_bos_token=says)
    keys |= {K.BOS_ID: keys[K.LIST].index(bos), K.PRE: "gpt-2" if says else "llama-bpe"}
    before = facts_of(keys)
    assert before.family is None
    with Trial(None, facts=before) as trial:
        proposal = prove(trial, Change({K.ADD_BOS: "false"}), [TextWithIds(b"x", [before.ids["x"]])])
        assert proposal.command  # a model file that gave the ids would tell
        found = unless_ends_are_lost(trial, proposal)
    assert "which the file itself asks for" in found.objection or is_proposed
    assert bool(found.command) == is_proposed


def test_ids_without_eos_do_not_switch_it_off_where_all_files_of_a_family_add_it() -> None:
    """A limit has cut it off, or the other tool was asked for no special tokens."""
    tok = opened(prepared(vocabulary, "nomic-bert-moe"))
    [found] = diagnose(tok, "The story", tok.encode("The story")[:-1]).explanations
    assert "which all XLM-RoBERTa files add" in found.objection
    assert not found.fix


def test_a_text_that_is_right_must_stay_right() -> None:
    tok = Tokenizer.from_gguf(GPT2)
    as_qwen2 = Tokenizer(load(GPT2, {K.PRE: "qwen2"})[0])
    texts = ["in 2024", "and 1999"]
    compared = [
        TextWithIds(texts[0].encode(), as_qwen2.encode(texts[0])),
        TextWithIds(texts[1].encode(), tok.encode(texts[1])),
    ]
    with Trial(tok) as trial:
        found = prove(trial, PRE, compared)
    assert (found.command, found.objection) == ("", "1 text that is now the same would differ")


def test_texts_that_are_explained_without_the_change_do_not_speak_for_it() -> None:
    """All that differs is something that no file can express; the change has another reason."""
    compared = [TextWithIds(b"in 2024", [*RIGHT("in 2024"), 5])]
    with Trial(Tokenizer.from_gguf(GPT2)) as trial:
        found = prove(trial, BOS, compared, expected=lambda changed, each: each.ids)
    assert (bool(found.command), found.explains) == (True, "")


def test_what_another_cause_changes_as_well_is_explained_and_not_mended(tmp_path: Path) -> None:
    """The other side has another pre-tokenizer, which a command can mend, and once an id more, which none can."""
    tok = opened(with_pre(GPT2, "qwen2", tmp_path / "model.gguf"))
    compared = [TextWithIds(b"in 2024", [*RIGHT("in 2024"), 5]), TextWithIds(b"in 1999", RIGHT("in 1999"))]

    def expected(changed: Tokenizer, each: TextWithIds) -> list[int]:
        return changed.encode(each.text) + [5] * (each is compared[0])

    with Trial(tok) as trial:
        found = prove(trial, Change({K.PRE: "gpt-2"}), compared, expected=expected)
    assert (found.objection, found.explained, found.unmended) == ("", 2, 1)
    assert (
        found.explains == "explains all 2 texts; in 1 of them another cause remains, which it does not mend"
    )


def test_a_type_that_does_not_exist_may_be_mended(facts_of: FactsOf) -> None:
    keys = small_keys()
    model = facts_of({**keys, K.TOKEN_TYPE: [0] * len(keys[K.LIST])})
    with Trial(None, facts=model) as trial:
        assert prove(trial, Change(types=dict.fromkeys(range(5), "NORMAL"))).command


def test_a_file_that_is_gone_has_no_proposal(tmp_path: Path) -> None:
    path = with_pre(GPT2, "qwen2", tmp_path / "model.gguf")
    tok = opened(path)
    path.unlink()
    found = diagnose(tok, "in 2024", RIGHT("in 2024"))
    assert found.explanations[0].causes[0].id == "pre_type"
    assert found.fix == ""


@pytest.mark.parametrize(
    ("proposal", "explains"),
    [
        (Proposal(explained=1, differing=1), "explains the text"),
        (Proposal(explained=212, differing=212), "explains all 212 texts"),
        (Proposal(explained=209, differing=212), "explains all but 3 of the 212 texts that differ"),
        (
            Proposal(explained=1, differing=1, unmended=1),
            "explains the text; another cause remains, which it does not mend",
        ),
        (
            Proposal(explained=3, differing=3, unmended=2),
            "explains all 3 texts; in 2 of them another cause remains, which it does not mend",
        ),
        (Proposal(explained=2, differing=3, unit="line"), "explains all but 1 of the 3 lines that differ"),
        (
            Proposal(explained=1, differing=1, unit=ENDS),
            "explains what is around the texts, such as BOS and EOS",
        ),
        (Proposal(explained=0, differing=3), "explains a part of what differs"),
        (Proposal(), ""),
    ],
)
def test_what_a_change_explains_in_words(proposal: Proposal, explains: str) -> None:
    assert proposal.explains == explains


def test_where_no_whole_text_is_explained_its_ends_are_compared() -> None:
    """The words have unknown ids, so that only BOS can be mended."""
    tok = Tokenizer.from_gguf(GPT2)
    with Trial(tok) as trial:
        found = prove_by_parts(trial, BOS, [TextWithIds(b"Hi there", [END, 5, 6, 7])])
    assert found.unit in (ENDS, "text")
    assert found.explained == (found.unit == ENDS)


def test_parts_that_do_not_differ_are_no_proof() -> None:
    """Nothing is around this text and its ids, so that a change that leaves both as they are explains nothing."""
    tok = Tokenizer.from_gguf(GPT2)
    with Trial(tok) as trial:
        found = prove_by_parts(trial, Change({K.PRE: "olmo"}), [TextWithIds(b"Hi there", [5, 6, 7])])
    assert (found.command, found.objection) == ("", "no text gets the other side's ids by it")


# ---- several causes, and which file is the broken one -------------------------------------------------


def test_several_causes_are_found_over_all_texts(tmp_path: Path) -> None:
    tok = opened(with_pre(GPT2, "qwen2", tmp_path / "model.gguf", extra={K.ADD_BOS: True}))
    texts = ["in 2024 and 1999", "I'LL count 1234567", "no numbers"]
    found = Several(tok, [TextWithIds(text.encode(), RIGHT(text)) for text in texts]).found()
    assert {cause.id for cause in found.causes} == {"pre_type", "bos"}
    assert (found.explains, found.explained) == (1.0, [True] * 3)


def test_a_doubtful_pre_tokenizer_is_named_though_another_cause_hides_it(tmp_path: Path) -> None:
    """As text, the marker is fewer tokens by the wrong pre-tokenizer, so that more ids agree by it at first."""
    marker = "<|'s.com|>"
    with GGUFFile(GPT2) as file:
        tokens, types = [*file[K.LIST], marker], [*file[K.TOKEN_TYPE], 1]
    wrong = with_pre(GPT2, "superbpe", tmp_path / "a.gguf", extra={K.LIST: tokens, K.TOKEN_TYPE: types})
    types[-1] = 3
    right = opened(with_pre(GPT2, None, tmp_path / "b.gguf", extra={K.LIST: tokens, K.TOKEN_TYPE: types}))
    texts = [f"{marker}hello", f"{marker}world{marker}"]
    compared = [TextWithIds(text.encode(), right.encode(text)) for text in texts]
    tok = opened(wrong)
    found = Several(tok, compared).found()
    assert {cause.id for cause in found.causes} == {"pre_type", "special_token_types"}
    assert found.explained == [True] * 2
    text = "<|'s.com|"
    assert tok.encode(text) != right.encode(text)
    as_it_was = [*compared, TextWithIds(text.encode(), tok.encode(text))]
    assert {cause.id for cause in Several(tok, as_it_was).found().causes} == {"special_token_types"}


def test_lost_tokens_are_read_off_the_texts() -> None:
    tok = Tokenizer.from_gguf(GPT2)
    ids = [50257, *tok.encode("user\nHi"), 50258, *tok.encode("\nbye")]
    found = texts_of_lost(tok, [TextWithIds(b"<|im_start|>user\nHi<|im_end|>\nbye", ids)])
    assert found == {50257: "<|im_start|>", 50258: "<|im_end|>"}


@pytest.mark.parametrize(
    ("text", "exchange", "found"),
    [
        ("the man and the dog, or a man", ("man", "dog"), [("man", "dog")]),
        ("one man and a cat", ("man", "dog"), []),  # only one of them: other text is as likely
        ("the man and the dog", (), []),
    ],
)
@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
def test_swapped_tokens_are_read_off_the_texts(
    name: str, text: str, exchange: tuple[str, ...], found: list[tuple[str, str]]
) -> None:
    tok = Tokenizer.from_gguf(GPT2 if name == "gpt-2" else prepared(vocabulary, name))
    pair = [tok.encode(f" {word}", add_special=False)[-1] for word in exchange]
    others = dict(zip(pair, reversed(pair)))
    ids = [others.get(token, token) for token in tok.encode(text)]
    pairs = swapped(tok, [TextWithIds(text.encode(), ids)])
    assert [{tok.id_to_token(token)[-3:] for token in each} for each in pairs] == list(map(set, found))


def test_a_tokenizer_that_was_diagnosed_is_freed() -> None:
    tok = Tokenizer.from_gguf(GPT2)
    diagnose(tok, "in 2024", [1, 2, 3])
    gone = weakref.ref(tok)
    del tok
    gc.collect()
    assert gone() is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "suspect", "change"),
    [  # of a copy of GPT-2's vocabulary against the original
        ({}, None, Change()),
        ({K.PRE: "olmo"}, None, Change()),  # another name for the same splitting
        ({K.PRE: "qwen2"}, 0, Change({K.PRE: "gpt-2"})),
        ({K.ADD_BOS: True}, 0, Change({K.ADD_BOS: "false"})),
        ({K.EOS_ID: 5}, 0, Change({K.EOS_ID: str(END)})),
    ],
)
def test_the_suspicious_file_and_its_change(
    keys: dict[str, object], suspect: int | None, change: Change, tmp_path: Path
) -> None:
    path = with_pre(GPT2, None, tmp_path / "copy.gguf", extra=keys)
    with Trial(opened(path)) as one, Trial(Tokenizer.from_gguf(GPT2)) as other:
        assert weigh(one, other).suspect == suspect
        assert weigh(other, one).suspect == (None if suspect is None else 1 - suspect)
        assert change_to(one, other) == change


def test_of_two_healthy_files_both_changes_are_described_without_a_command(tmp_path: Path) -> None:
    """As a base model and the chat model made of it, which end with different tokens."""
    markers = ["<|endoftext|>", "<|im_end|>"]
    paths = []
    for number, end in enumerate(markers):
        vocabulary = Tokenizer.from_gguf(GPT2).vocabulary
        tokens = [*vocabulary.tokens, "<|im_end|>"]
        keys = {K.LIST: tokens, K.TOKEN_TYPE: [1] * END + [3, 3], K.EOS_ID: tokens.index(end)}
        paths.append(with_pre(GPT2, None, tmp_path / f"{number}.gguf", extra=keys))
    found = diff(*paths)
    assert (found.suspect, found.fix) == (None, "")
    assert [change.described for change in found.changes] == [[f"{K.EOS_ID}=50257"], [f"{K.EOS_ID}=50256"]]
    assert found.to_dict()["changes"] == {"a": [f"{K.EOS_ID}=50257"], "b": [f"{K.EOS_ID}=50256"]}


def test_the_other_file_tells_which_tokenizer_model_it_is(tmp_path: Path) -> None:
    good = prepared(vocabulary, "llama-spm")
    fix(good, tmp_path / "bad.gguf", set={K.MODEL: "t5"})
    found = diff(good, tmp_path / "bad.gguf", "hello world")
    assert found.suspect == 1
    assert f"--set {K.MODEL}=llama" in found.fix
    proposal = verify(tmp_path / "bad.gguf", Tokenizer.from_gguf(good), ["hello world"]).proposal
    assert proposal is not None
    assert f"--set {K.MODEL}=llama" in proposal.command


@pytest.mark.parametrize("differs", [False, True])
def test_a_charsmap_is_checked_where_it_tells_two_files_apart(differs: bool, facts_of: FactsOf) -> None:
    one, other = (
        facts_of(
            {
                **small_keys(pre=None),
                K.MODEL: "t5",
                K.PRECOMPILED_CHARSMAP: ([0, 0, 0, 0, last], GGUFValueType.ARRAY, GGUFValueType.UINT8),
            },
            f"{name}.gguf",
        )
        for name, last in (("one", 1), ("other", 1 + differs))
    )
    assert (charsmap in checks_left_out(one, other)) == (not differs)
