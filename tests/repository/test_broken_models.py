"""The generator of broken models, and how advice about them is judged (scripts/broken_models.py, measure_advice.py)."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from broken_models import BASES, BY_NAME, DEFECTS, Base, Case, case, cases, make_texts
from measure_advice import Trial, table, the_command

from ggufbpe.gguf.constants import TokenizerKey as K
from ggufbpe.models.loading import load_vocabulary

pytestmark = pytest.mark.tries_fixes

GPT2, WPM = (next(base for base in BASES if base.name == name) for name in ("gpt-2", "rwkv"))


def made(base: Base, *names: str, with_markers: bool = False) -> Case:
    return Case("1", 0, base, tuple(BY_NAME[name] for name in names), with_markers)


def test_there_are_enough_defects_and_bases_of_all_models() -> None:
    assert len(DEFECTS) >= 12
    assert len(BASES) >= 8
    assert {base.kind for base in BASES} == {"BPE", "SPM", "WPM", "UGM", "RWKV"}


def test_2000_cases_have_every_combination_and_every_base() -> None:
    found = [(made.base.name, made.defects) for made in cases("1", 2000)]
    possible = {
        chosen
        for size in (1, 2, 3)
        for chosen in combinations(DEFECTS, size)
        if len({defect.part for defect in chosen}) == size
        and any(not {defect.name for defect in chosen} & set(base.lacks) for base in BASES)
    }
    assert {defects for _, defects in found} == possible
    assert {name for name, _ in found} == {base.name for base in BASES}
    assert [len(defects) for _, defects in found[:6]] == [1, 2, 3, 1, 2, 3]


def test_a_case_is_determined_by_seed_and_number() -> None:
    first, again, other = case("1", 5, ("gpt-2",)), case("1", 5, ("gpt-2",)), case("2", 5, ("gpt-2",))
    assert str(first) == str(again) != str(other)
    assert (first.compared, first.changes) == (again.compared, again.changes)
    assert first.compared != first.held_out


def test_texts_have_markers_if_asked_for() -> None:
    plain, marked = (" ".join(make_texts(GPT2, "1", 6, has)) for has in (False, True))
    assert "<|endoftext|>" in marked
    assert "<|endoftext|>" not in plain
    assert "I'll do it(x)" in plain


@pytest.mark.parametrize(
    ("printed", "command", "count"),
    [
        ("OK: nothing to fix: bad.gguf", "", 0),
        (
            "fix:\n  ggufbpe fix a.gguf --remove k -o fixed.gguf\n",
            "ggufbpe fix a.gguf --remove k -o fixed.gguf",
            1,
        ),
        (
            "  ggufbpe fix a.gguf --set k=1 -o fixed.gguf, or ggufbpe fix a.gguf --set k=2 -o fixed.gguf",
            "ggufbpe fix a.gguf --set k=1 -o fixed.gguf",
            2,
        ),
        (
            "ggufbpe fix a.gguf --set k=1 -o fixed.gguf\n"
            "ggufbpe fix a.gguf --set l=2 -o fixed.gguf\n"
            "   all: ggufbpe fix a.gguf --set k=1 --set l=2 -o fixed.gguf",
            "ggufbpe fix a.gguf --set k=1 --set l=2 -o fixed.gguf",
            3,
        ),
        ("fix: ggufbpe fix bad.gguf --chat-template FILE -o fixed.gguf", "", 0),
        ("fix: ggufbpe fix bad.gguf --chat-template tool_use=FILE -o fixed.gguf", "", 0),
    ],
    ids=["none", "one", "a choice", "all together", "a file of one's own", "a named template of one's own"],
)
def test_the_command_that_people_run(printed: str, command: str, count: int) -> None:
    assert the_command(printed) == (command, count)


PRE = "ggufbpe fix bad.gguf --set tokenizer.ggml.pre"
BAD_TYPE = "ggufbpe fix bad.gguf --set tokenizer.ggml.pre=gpt-2 --set-token-type 262=CONTROL -o fixed.gguf"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "printed", "outcome"),
    [
        (["pre_missing"], f"{PRE}=gpt-2 -o fixed.gguf", "mended"),
        (["pre_missing", "bos_flag"], f"{PRE}=gpt-2 -o fixed.gguf", "too little"),
        (["pre_missing"], f"{PRE}=llama-bpe -o fixed.gguf", "harm"),
        (
            ["pre_missing"],
            "ggufbpe fix bad.gguf --set tokenizer.ggml.pre=no-such -o fixed.gguf",
            "too little",
        ),
        (["pre_missing"], "the pre-tokenizer is missing", "described"),
        (["pre_missing"], "OK: nothing to fix", "nothing"),
        (["pre_missing"], BAD_TYPE, "harm"),
        (["pre_missing"], "ggufbpe fix good.gguf --set tokenizer.ggml.pre=default -o fixed.gguf", "harm"),
        (["pre_missing"], "ggufbpe fix good.gguf --set general.name=good -o fixed.gguf", "harm"),
        (["merges_cut"], "the words are merged differently", "named"),
        (["merges_cut"], "OK: nothing to fix", "unnamed"),
        (["merges_cut", "pre_missing"], f"merges differ {PRE}=gpt-2 -o fixed.gguf", "mended"),
        (["merges_cut", "pre_missing"], f"{PRE}=gpt-2 -o fixed.gguf", "unnamed"),
        (["eos_id"], "OK: nothing to fix", "unseen"),
    ],
)
def test_advice_is_judged(names: list[str], printed: str, outcome: str, tmp_path: Path) -> None:
    with Trial(made(GPT2, *names), tmp_path) as trial:
        judged = trial.judged(0, printed)
    assert judged.outcome == outcome, judged.detail


def test_a_fix_that_makes_another_finding_of_doctor_is_harm(tmp_path: Path) -> None:
    command = f"{PRE}=gpt-2 --set {K.EOS_ID}=11 -o fixed.gguf"
    with Trial(made(GPT2, "pre_missing"), tmp_path) as trial:
        assert trial.judged(0, command).detail.startswith("doctor has new findings: ")


def test_a_finding_that_another_defect_hid_is_no_harm(tmp_path: Path) -> None:
    command = f"merges differ: ggufbpe fix bad.gguf --set {K.MODEL}=gpt2 -o fixed.gguf"
    with Trial(made(GPT2, "model_wrong", "merges_cut"), tmp_path) as trial:
        judged = trial.judged(0, command)
    assert judged.outcome == "mended", judged.detail


@pytest.mark.slow
def test_an_id_of_a_lost_token_is_no_defect(tmp_path: Path) -> None:
    """Wherever the id would be of a token that is lost with it, the file cannot be opened."""
    base = next(base for base in BASES if base.name == "deepseek-coder")
    seen = set()
    for number in range(20):
        broken = Case("1", number, base, (BY_NAME["bos_id"], BY_NAME["tokens_lost"]), False)
        keys, alone = broken.broken(), broken.broken(but=["tokens_lost"])
        seen.add(K.BOS_ID in keys)
        assert keys.get(K.BOS_ID, 0) < len(keys[K.LIST])
        assert keys.get(K.BOS_ID) == alone.get(K.BOS_ID)  # which is no defect without the other either
    assert seen == {True, False}


@pytest.mark.slow
def test_the_broken_model_has_its_defect(tmp_path: Path) -> None:
    for base in (GPT2, WPM):
        for defect in DEFECTS:
            if defect.name in base.lacks:
                continue
            keys = made(base, defect.name).broken()
            assert keys, defect.name
            bad, right = load_vocabulary(base.copy(tmp_path / "bad.gguf", keys)), base.tokenizer.vocabulary
            same = bad._replace(path="", warnings=()) == right._replace(path="", warnings=())
            assert same is (K.CHAT_TEMPLATE in keys), defect.name


@pytest.mark.slow
@pytest.mark.parametrize("base", [each for each in BASES if each.name != "rwkv"], ids=lambda base: base.name)
def test_another_model_or_special_id_changes_the_ids(base: Base) -> None:
    for defect in {"model_wrong", "unk_id", "sep_id"}.difference(base.lacks):
        broken = made(base, defect)
        right, wrong = (
            opened.encode_batch(broken.compared) for opened in (base.tokenizer, base.opened(broken.broken()))
        )
        assert right != wrong, defect


@pytest.mark.slow
def test_the_table_counts_outcomes(tmp_path: Path) -> None:
    with Trial(made(GPT2, "pre_missing"), tmp_path) as trial:
        found = [trial.asked("doctor")]
    assert "| doctor | 1 | 1 | 1 | 0 |" in table(found)
