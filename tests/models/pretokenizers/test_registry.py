"""The registry of pre-tokenizers: a name that a newer llama.cpp adds to a family changes no answer of the others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from synthetic import gpt2_vocabulary

from ggufbpe._util import llama_cpp_states
from ggufbpe._util.llama_cpp_states import DIFFERENCES, STATES, StateDifference
from ggufbpe.analysis.diagnose import causes
from ggufbpe.analysis.diagnose.changes import groups_of_pre
from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.importers import import_bpe
from ggufbpe.convert.importers.hf_document import HFDocument
from ggufbpe.convert.importers.import_bpe import BytePairImport
from ggufbpe.convert.importers.recognize import Recognized
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.pretokenizers import registry
from ggufbpe.models.pretokenizers.families import evidence
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer, one_of_each

NEW = "acme-bpe"  # before all other names of its family in the alphabet
FLAGS = list(product((False, True), (False, True)))  # ignore_merges, clean_spaces


@pytest.fixture(params=FLAGS)
def new_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """While it is used, a newer llama.cpp has another name that splits like llama-bpe."""
    ignore_merges, clean_spaces = request.param
    difference = StateDifference("b99999", "pre", (NEW,), "the pre-tokenizer acme-bpe")
    monkeypatch.setattr(llama_cpp_states, "STATES", (*STATES, "b99999"))
    monkeypatch.setattr(llama_cpp_states, "DIFFERENCES", (*DIFFERENCES, difference))
    known = dict(PRE_TOKENIZERS)
    new = PreTokenizer(NEW, "llama-bpe", ignore_merges=ignore_merges, clean_spaces=clean_spaces)
    _replace_all(registry._established_first([new, *known.values()]))
    yield
    _replace_all(known)


def _replace_all(entries: dict[str, PreTokenizer]) -> None:
    PRE_TOKENIZERS.clear()
    PRE_TOKENIZERS.update(entries)
    one_of_each.cache_clear()


def imported(ignore_merges: bool, clean_spaces: bool) -> str:
    """The name for a tokenizer.json that splits like llama-bpe."""
    vocab = {text: token for token, text in enumerate(BYTE_CHARS)}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "ignore_merges": ignore_merges}
    steps = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    config = HFConfig({"clean_up_tokenization_spaces": clean_spaces})
    return BytePairImport(HFDocument({"pre_tokenizer": steps, "model": model}, config), None).entry.name


def answers() -> dict[str, object]:
    """What import, diagnose, and the search for a family answer from the registry."""
    gpt2 = gpt2_vocabulary()
    judged = evidence(gpt2.tokens, gpt2.merges, "", "llama")
    under = {name: gpt2._replace(pre=name, pre_tokenizer=PRE_TOKENIZERS[name]) for name in ("gpt-2", "dbrx")}
    groups = groups_of_pre(under["gpt-2"], False)
    return {
        "import": [imported(*flags) for flags in FLAGS],
        "one of each": one_of_each(),
        "order of families": list(one_of_each()),
        "likeliest": [family.family for family in judged.found],
        "ignore_merges": causes.ignore_merges(under["dbrx"]),
        "other names": {
            causes.pre_type(under["gpt-2"], group, [], judged).detail["pre"]
            for group in groups
            if group != [NEW]
        },
    }


@pytest.fixture
def known_answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The answers without the new name; the splitting of a tokenizer.json is taken for llama-bpe's."""
    recognized = Recognized("llama-bpe", "patterns", "as expected", exact=True)
    monkeypatch.setattr(import_bpe, "recognize", lambda *_: recognized)
    return answers()


def test_a_newer_name_changes_no_answer(known_answers: dict[str, object], new_name: None) -> None:
    assert NEW in PRE_TOKENIZERS
    assert answers() == known_answers
