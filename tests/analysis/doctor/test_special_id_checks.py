"""Special ids: those that name no token or an ordinary one, and those that are missing."""

from __future__ import annotations

from typing import Any

import pytest
from small_models import (
    CONTROL,
    NORMAL,
    UNUSED,
    FactsOf,
    K,
    Keys,
    facts_of,
    family_keys,
    found,
    scored_keys,
    small_keys,
)

from ggufbpe.analysis.doctor.special_id_checks import generation_ends, missing_special_ids, wrong_special_ids
from ggufbpe.gguf.constants import TokenType

__all__ = ["facts_of"]  # the fixture

BYTE = int(TokenType.BYTE)
SIZE = len(small_keys()[K.LIST])
IM_START = small_keys()[K.LIST].index("<|im_start|>")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, []),
        ({"eos_token_id": SIZE}, [("special_id_out_of_range", "error")]),
        ({"padding_token_id": 2**32 - 1}, [("special_id_out_of_range", "error")]),
        ({"eos_token_id": SIZE - 1}, []),
        ({"eos_token_id": 65}, [("special_id_is_normal", "warning")]),
        ({"padding_token_id": 65}, [("special_id_is_normal", "note")]),  # which is never generated
    ],
)
def test_ids_that_cannot_be_right(
    keys: dict[str, Any], expected: list[tuple[str, str]], facts_of: FactsOf
) -> None:
    assert found(wrong_special_ids(facts_of(small_keys(**keys)))) == expected


@pytest.mark.parametrize(
    ("keys", "is_offered"),
    [
        ({"eos_token_id": SIZE}, False),  # the default is 11, which is ordinary text
        ({"padding_token_id": SIZE}, True),  # there is no default
    ],
)
def test_removal_is_offered_where_no_wrong_default_follows(
    keys: dict[str, Any], is_offered: bool, facts_of: FactsOf
) -> None:
    [finding] = wrong_special_ids(facts_of(small_keys(**keys)))
    assert ("remove the key" in finding.fix) is is_offered
    assert ("answers may never end" in finding.why) is (finding.where.key == K.EOS_ID)


def test_of_a_marker_the_type_is_wrong_and_of_text_the_id(facts_of: FactsOf) -> None:
    keys = small_keys(eos_token_id=IM_START)
    keys[K.TOKEN_TYPE][IM_START] = NORMAL
    model = facts_of(keys)
    [finding] = wrong_special_ids(model)
    assert finding.fix == model.set_types(CONTROL=[IM_START])
    model = facts_of(small_keys(bos_token_id=65))
    [finding] = wrong_special_ids(model)
    assert finding.fix == model.set(K.BOS_ID, SIZE - 3)  # <|endoftext|>


WORDPIECE = {"[PAD]": 3, "[UNK]": 2, "[CLS]": 3, "[SEP]": 3, "[unused0]": 1, "▁to": 1, "<mask>": 3}


def wordpiece_keys(*added: str, **ids: int | None) -> Keys:
    """The keys of a small BERT with `added` as more normal tokens; `ids` are its special ids, None to leave one out."""
    keys = {
        K.MODEL: "bert",
        K.LIST: [*WORDPIECE, *added],
        K.TOKEN_TYPE: [*WORDPIECE.values(), *[NORMAL] * len(added)],
        K.BOS_ID: 2,
        K.SEP_ID: 3,
        K.UNK_ID: 1,
        **{f"tokenizer.ggml.{key}": token for key, token in ids.items()},
    }
    return {key: value for key, value in keys.items() if value is not None}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({}, []),
        ({"seperator_token_id": 5}, ["special_id_is_normal"]),  # it ends every text of BERT
        ({"unknown_token_id": 4}, ["special_id_of_wrong_kind"]),
        ({"unknown_token_id": 6}, ["special_id_of_wrong_kind"]),
        ({"padding_token_id": 5}, []),
    ],
)
def test_ids_that_come_out_of_texts(ids: dict[str, int], expected: list[str], facts_of: FactsOf) -> None:
    model = facts_of(wordpiece_keys(**ids))
    grave = [finding for finding in wrong_special_ids(model) if finding.severity != "note"]
    assert [finding.id for finding in grave] == expected
    for finding in grave:
        key = finding.where.key or ""
        assert finding.fix == model.set(key, {K.SEP_ID: 3, K.UNK_ID: 1}[key])
        if key == K.SEP_ID:
            assert finding.why == "SEP ends every text, so every text gets another last id."
        else:
            assert finding.evidence == f"{key} is {finding.where.token}. '[UNK]' is token 1."


def test_the_default_of_unk_is_wrong_where_another_token_is_written_as_unk(facts_of: FactsOf) -> None:
    more = [f"word{index}" for index in range(len(WORDPIECE), 110)]
    model = facts_of(wordpiece_keys(*more, unknown_token_id=None))
    [finding] = missing_special_ids(model)
    assert (finding.id, finding.severity, finding.where.key) == ("special_id_missing", "warning", K.UNK_ID)
    assert finding.what.startswith("The file does not say which token is UNK, so llama.cpp uses ")
    assert finding.evidence == f"{K.UNK_ID} is missing, so UNK is 100. '[UNK]' is token 1."
    assert finding.fix == model.set(K.UNK_ID, 1)
    more[100 - len(WORDPIECE)] = "<unk>"
    assert not list(missing_special_ids(facts_of(wordpiece_keys(*more, unknown_token_id=None))))


def test_of_an_unk_that_is_written_as_one_the_type_is_wrong(facts_of: FactsOf) -> None:
    keys = wordpiece_keys()
    keys[K.TOKEN_TYPE][1] = NORMAL
    model = facts_of(keys)
    [finding] = wrong_special_ids(model)
    assert (finding.id, finding.fix) == ("special_id_is_normal", model.set_types(CONTROL=[1]))


@pytest.mark.parametrize(("usual", "expected"), [("[UNK]", 100), ("word", 7)])
def test_of_two_tokens_that_are_written_as_unk_it_is_the_default(
    usual: str, expected: int, facts_of: FactsOf
) -> None:
    keys = wordpiece_keys(*[f"word{index}" for index in range(len(WORDPIECE), 110)], unknown_token_id=None)
    keys[K.LIST][1], keys[K.LIST][7], keys[K.LIST][100] = "[unused1]", "<unk>", usual
    for token in (7, 100):
        keys[K.TOKEN_TYPE][token] = CONTROL
    model = facts_of(keys)
    assert model.unknown_token == expected
    assert model.set_id(K.UNK_ID) == model.set(K.UNK_ID, expected)


@pytest.mark.parametrize("name", ["bos", "eos", "eot", "eom"])
def test_no_byte_is_a_marker(name: str, facts_of: FactsOf) -> None:
    keys = small_keys("<0x02>", kind=BYTE, **{f"{name}_token_id": SIZE})
    [finding] = wrong_special_ids(facts_of(keys))
    assert (finding.id, finding.severity) == ("special_id_of_wrong_kind", "warning")
    assert finding.what == f"The file says that {name.upper()} is '\\x02', which is a byte of text."
    assert "--set-token-type" not in finding.fix


@pytest.mark.parametrize(
    ("token", "template", "is_marker"),
    [
        ("<reserved_7>", "", False),
        ("<reserved_7>", "{{ messages[0].content }}<reserved_7>", True),
        ("<|end|>", "", True),
        ("<|reserved_7|>", "", False),
        ("mess", "{{ messages[0].content }}<|im_end|>", False),  # which is in the template's code
        ("", "", False),
    ],
)
def test_of_an_unused_token_the_type_is_wrong_if_it_is_a_marker(
    token: str, template: str, is_marker: bool, facts_of: FactsOf
) -> None:
    model = facts_of(
        {
            **small_keys(token, kind=UNUSED, eos_token_id=SIZE),
            **({K.CHAT_TEMPLATE: template} if template else {}),
        }
    )
    [finding] = wrong_special_ids(model)
    assert finding.what.endswith("which is marked as unused.")
    assert (finding.fix == model.set_types(CONTROL=[SIZE])) is is_marker


def test_an_unused_padding_token_is_right(facts_of: FactsOf) -> None:
    assert not list(wrong_special_ids(facts_of(small_keys("[PAD1]", kind=UNUSED, padding_token_id=SIZE))))


def test_a_normal_bos_that_is_the_family_s_has_the_wrong_type(facts_of: FactsOf) -> None:
    keys = family_keys("Llama 3")
    keys[K.TOKEN_TYPE] = [NORMAL] * len(keys[K.LIST])
    model = facts_of(keys)
    found_by_key = {each.where.key: each for each in wrong_special_ids(model)}
    assert found_by_key[K.BOS_ID].fix == model.set_types(CONTROL=[128000])
    assert found_by_key[K.BOS_ID].evidence == (
        f"{K.BOS_ID} is 128000, a token of type NORMAL. In Llama 3 files, this token is a marker."
    )


def test_an_id_of_the_wrong_kind_is_told_by_the_family(facts_of: FactsOf) -> None:
    begin, end = 32013, 32014
    model = facts_of(family_keys("DeepSeek Coder", bos_token_id=end, add_bos_token=True))
    [finding] = wrong_special_ids(model)
    assert (finding.id, finding.severity) == ("special_id_of_wrong_kind", "warning")
    assert finding.fix == model.set(K.BOS_ID, begin)
    assert f"DeepSeek Coder files have {begin}" in finding.evidence
    not_added = family_keys("DeepSeek Coder", bos_token_id=end, add_bos_token=False)
    assert not list(wrong_special_ids(facts_of(not_added)))


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("<|my_stop|>", True),  # as of tuned models, which may come without a template
        ("<|my_end|>", True),
        ("<|eoa|>", True),
        ("<|imend|>", True),  # another check renames it
        ("<|my_start|>", False),
        ("<|end_header|>", False),  # there is <|start_header|>
        ("</tool>", False),
        ("[PAD7]", False),
    ],
)
def test_an_eos_of_another_name_may_be_meant(text: str, is_right: bool, facts_of: FactsOf) -> None:
    keys = family_keys("Qwen 2")
    at = len(keys[K.LIST])
    keys[K.LIST] = [*keys[K.LIST], text, "<|start_header|>", "<tool>"]
    keys[K.TOKEN_TYPE] = [*keys[K.TOKEN_TYPE], CONTROL, CONTROL, CONTROL]
    model = facts_of({**keys, K.EOS_ID: at})
    expected = [] if is_right else [("special_id_of_wrong_kind", "warning")]
    assert found(wrong_special_ids(model)) == expected


CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
UNMARKED = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\n{% endfor %}"


@pytest.mark.parametrize(
    ("eos", "template", "is_found"),
    [
        ("<|im_start|>", CHATML, True),
        ("<|im_start|>", UNMARKED, False),  # generation may stop at the next message
        ("<|im_end|>", CHATML, False),
        ("<|endoftext|>", CHATML, False),
        ("<|im_start|>", CHATML + "{{ eos_token }}", True),  # behind an end, the template writes any EOS
        ("<|im_start|>", UNMARKED + "{{ eos_token }}", False),
        ("<unk>", UNMARKED + "{{ eos_token }}", True),
    ],
)
@pytest.mark.parametrize("family", [None, "Qwen 2"])
def test_what_begins_the_next_message_is_no_eos(
    family: str | None, eos: str, template: str, is_found: bool, facts_of: FactsOf
) -> None:
    keys = {**(family_keys(family) if family else small_keys()), K.CHAT_TEMPLATE: template}
    markers = [each for each in ("<|im_start|>", "<|im_end|>", "<unk>") if each not in keys[K.LIST]]
    keys[K.LIST], keys[K.TOKEN_TYPE] = (
        [*keys[K.LIST], *markers],
        [*keys[K.TOKEN_TYPE], *[CONTROL] * len(markers)],
    )
    keys[K.EOS_ID] = keys[K.LIST].index(eos)
    findings = list(wrong_special_ids(facts_of(keys)))
    assert found(findings) == ([("special_id_of_wrong_kind", "warning")] if is_found else [])


def test_the_eos_of_a_family_that_adds_bos_is_no_bos(facts_of: FactsOf) -> None:
    """<|endoftext|> is the BOS of other families."""
    keys = family_keys("Phi-3", bos_token_id=32000, eos_token_id=2, add_bos_token=True, merges=None)
    keys[K.TOKEN_TYPE][2] = CONTROL
    model = facts_of(keys)
    [finding] = wrong_special_ids(model)
    assert (finding.id, finding.fix) == ("special_id_of_wrong_kind", model.set(K.BOS_ID, 1))


def test_of_an_own_end_that_is_plain_text_the_type_is_wrong(facts_of: FactsOf) -> None:
    keys = family_keys("Qwen 2")
    at = len(keys[K.LIST])
    added = {K.LIST: [*keys[K.LIST], "<|my_end|>"], K.TOKEN_TYPE: [*keys[K.TOKEN_TYPE], NORMAL], K.EOS_ID: at}
    model = facts_of({**keys, **added})
    [finding] = wrong_special_ids(model)
    assert (finding.id, finding.fix) == ("special_id_is_normal", model.set_types(CONTROL=[at]))


def test_an_end_of_turn_stays_eos_where_types_are_lost(facts_of: FactsOf) -> None:
    """As after markers were added to the tokens of GPT-2 and not to the types: llama.cpp refuses the file."""
    keys = family_keys("GPT-2")
    keys[K.LIST] += ["<|im_start|>", "<|im_end|>"]
    end = keys[K.EOS_ID] = len(keys[K.LIST]) - 1
    model = facts_of(keys)
    assert model.tokenizer is None
    [finding] = wrong_special_ids(model)
    assert (finding.id, finding.fix) == ("special_id_is_normal", model.set_types(CONTROL=[end]))


def test_of_a_marker_that_is_a_byte_the_type_is_wrong(facts_of: FactsOf) -> None:
    """As where types are shifted by one; setting the id that the file has mends nothing."""
    keys = scored_keys(["▁a", "▁b"])
    end = keys[K.LIST].index("</s>")
    keys[K.TOKEN_TYPE][end], keys[K.EOS_ID] = BYTE, end
    model = facts_of(keys)
    [finding] = wrong_special_ids(model)
    assert finding.what == "The file says that EOS is '</s>', which is stored as a byte of text."
    assert finding.fix == model.set_types(CONTROL=[end])


@pytest.mark.parametrize("text", ["[CLS]", "[UNK]", "[PAD]", "[MASK]"])
def test_a_separator_is_no_token_of_another_use(text: str, facts_of: FactsOf) -> None:
    keys = wordpiece_keys("[MASK]")
    keys[K.TOKEN_TYPE][-1] = CONTROL
    model = facts_of({**keys, K.SEP_ID: keys[K.LIST].index(text)})
    [finding] = wrong_special_ids(model)
    assert (finding.id, finding.fix) == ("special_id_of_wrong_kind", model.set(K.SEP_ID, 3))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, []),
        ({"eos_token_id": None}, [("special_id_missing", "warning")]),
        ({"bos_token_id": None}, [("special_id_missing", "note")]),
        ({"bos_token_id": None, "add_bos_token": True}, [("special_id_missing", "warning")]),
    ],
)
def test_missing_ids(keys: dict[str, Any], expected: list[tuple[str, str]], facts_of: FactsOf) -> None:
    assert found(missing_special_ids(facts_of(small_keys(**keys)))) == expected


def test_a_default_that_the_family_does_not_use_is_wrong(facts_of: FactsOf) -> None:
    """A unigram model without the key ends texts with token 1, which is "<pad>" in XLM-RoBERTa."""
    keys = family_keys("XLM-RoBERTa", eos_token_id=None)
    keys[K.TOKEN_TYPE][:4] = [CONTROL] * 4
    model = facts_of(keys)
    assert model.tokens[1] == "<pad>"
    [finding] = missing_special_ids(model)
    assert (finding.id, finding.fix) == ("special_id_missing", model.set(K.EOS_ID, 2))


def test_an_eos_that_is_never_used_may_be_any_token(facts_of: FactsOf) -> None:
    keys = scored_keys(["▁word"], ["[PAD]", "[CLS]", "[SEP]"])
    ids = {K.EOS_ID: "[PAD]", K.BOS_ID: "[CLS]", K.SEP_ID: "[SEP]"}
    ids = {key: keys[K.LIST].index(text) for key, text in ids.items()}
    assert not list(wrong_special_ids(facts_of({**keys, **ids, K.MODEL: "bert"})))


@pytest.mark.parametrize(("key", "default"), [(K.BOS_ID, 1), (K.EOS_ID, 2)])
def test_a_default_of_another_use_is_wrong(key: str, default: int, facts_of: FactsOf) -> None:
    """As in Gemma, whose <eos> is 1 and <bos> is 2: SentencePiece's defaults are the other way round."""
    keys = scored_keys(["▁word"])
    keys[K.LIST][:3] = ["<unk>", "<eos>", "<bos>"]
    keys |= {K.BOS_ID: 2, K.EOS_ID: 1}
    right = keys.pop(key)
    model = facts_of(keys)
    [finding] = missing_special_ids(model)
    assert (finding.id, finding.severity, finding.where.key) == ("special_id_missing", "warning", key)
    assert f"llama.cpp uses {default}, " in finding.evidence
    assert finding.fix == model.set(key, right)


@pytest.mark.parametrize(
    ("key", "text", "right"),
    [
        (K.EOS_ID, "<pad>", "</s>"),
        (K.EOS_ID, "<unk>", "</s>"),
        (K.EOS_ID, "<|mine|>", ""),
        (K.BOS_ID, "<pad>", "<s>"),
        (K.BOS_ID, "</s>", "<s>"),
        (K.BOS_ID, "<|im_end|>", "<s>"),
        (K.BOS_ID, "<|mine|>", ""),  # which a tuned model may have
        (K.BOS_ID, "<|im_start|>", ""),
    ],
)
def test_without_a_known_family_the_text_tells_that_an_id_has_another_use(
    key: str, text: str, right: str, facts_of: FactsOf
) -> None:
    keys = scored_keys(["▁word"], ["<pad>", "<|im_start|>", "<|im_end|>", "<|mine|>", "<|end|>"])
    ids = {token: index for index, token in enumerate(keys[K.LIST])}
    model = facts_of({**keys, K.EOS_ID: ids["<|end|>"], key: ids[text]})
    fixes = [finding.fix for finding in wrong_special_ids(model)]
    assert fixes == ([model.set(key, ids[right])] if right else [])


def test_what_merges_make_is_no_substitute_for_an_eos(facts_of: FactsOf) -> None:
    """Of a vocabulary of Qwen 2 that was cut down: its "</s>" is text, of which llama.cpp makes a control token."""
    model = facts_of(small_keys(merges=("< /", "</ s", "</s >"), eos_token_id=151643))
    [finding] = wrong_special_ids(model)
    assert finding.fix == model.set(K.EOS_ID, model.ids["<|endoftext|>"])


def test_a_lost_token_of_the_family_has_no_substitute(facts_of: FactsOf) -> None:
    """Qwen 2 has "</s>" as well, which is HTML there."""
    keys = family_keys("Qwen 2", eos_token_id=None, bos_token_id=None)
    tokens, kinds = keys[K.LIST][:151643], keys[K.TOKEN_TYPE][:151643]
    tokens[128247], kinds[128247] = "</s>", CONTROL
    cut = {K.LIST: tokens, K.TOKEN_TYPE: kinds}
    findings = {each.where.key: each for each in missing_special_ids(facts_of({**keys, **cut}))}
    assert findings[K.EOS_ID].fix == "convert the model again: '<|endoftext|>' is missing"


def test_a_token_that_is_added_but_does_not_exist(facts_of: FactsOf) -> None:
    # GPT-2's default of BOS is 11, which this vocabulary of ten tokens lacks
    keys = small_keys(tokens=[*"abcdefghi", "<|im_end|>"], merges=["a b"], add_bos_token=True)
    model = facts_of(keys)
    by_id = {finding.id: finding for finding in missing_special_ids(model)}
    assert by_id["special_id_wanted"].severity == "error"
    assert by_id["special_id_wanted"].fix.endswith(f", or {model.set(K.ADD_BOS, 'false')}")


def test_a_bos_that_the_family_has_not_is_not_to_be_added(facts_of: FactsOf) -> None:
    """As in umT5, which has a token <s> and begins no text with it."""
    model = facts_of(family_keys("umT5", add_bos_token=True))
    assert model.tokens[2] == "<s>"
    findings = [finding for finding in missing_special_ids(model) if finding.where.key == K.BOS_ID]
    assert [(finding.id, finding.fix) for finding in findings] == [
        ("special_id_wanted", model.set(K.ADD_BOS, "false"))
    ]


def test_an_eos_that_ends_no_generation(facts_of: FactsOf) -> None:
    assert not list(generation_ends(facts_of(small_keys())))
    keys = small_keys("</s>", "<|tool_response>", eos_token_id=SIZE)  # of a family where "</s>" ends nothing
    model = facts_of(keys)
    [finding] = generation_ends(model)
    assert (finding.id, finding.severity, finding.where.token) == (
        "eos_not_end_of_generation",
        "warning",
        SIZE,
    )
    assert model.tokenizer is not None
    assert model.set(K.EOS_ID, min(model.tokenizer.eog_ids)) in finding.fix
