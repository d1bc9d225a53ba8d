"""Text files of vocabularies: which are a vocab.txt or a merges.txt with its vocab.json, and which are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT
from exporting import FIXTURES, names, sample, tokenizer
from real_vocabularies import cached

from ggufbpe import Tokenizer
from ggufbpe.cli import main
from ggufbpe.convert.exporters.merges_txt import to_merges_txt
from ggufbpe.convert.imported import Imported, NotImportableError, pack
from ggufbpe.convert.importers.import_files import import_file
from ggufbpe.convert.portable_patterns import NotExpressibleError
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.vocabulary import CONTROL, USER_DEFINED

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

WORD_PIECES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nplay\n##ing\n"
BYTES = {char: token for token, char in enumerate(BYTE_CHARS)}
VOCAB = {**BYTES, "ab": 256, "Ġab": 257, "<|endoftext|>": 258}
MERGES = "#version: 0.2\na b\nĠ ab\n"


def written(folder: Path, **files: str | dict[str, Any]) -> Path:
    """Write files, given by their names with an underscore for the last dot; return the folder."""
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / ".".join(name.rsplit("_", 1))).write_text(text, encoding="utf-8")
    return folder


def opened(imported: Imported, folder: Path) -> Tokenizer:
    path = folder / "imported.gguf"
    path.write_bytes(pack(imported.metadata))
    return Tokenizer.from_gguf(path)


# ---- what is refused --------------------------------------------------------------------------------------

PROSE = (
    "It was a bright cold day in April,\nand the clocks were striking thirteen.\nWinston Smith slipped\nin.\n"
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PROSE, r"no line is '\[UNK\]', which a vocab.txt of BERT has"),
        ("one\ntwo\nthree\n", r"no line is '\[UNK\]'"),
        ("[UNK]\nplay\n", r"no line is '\[CLS\]'"),
        (
            WORD_PIECES + "two words\n",
            r"line 8, 'two words', has white space in it, and a word piece has none",
        ),
        (WORD_PIECES + "a\tb\n", "line 8, 'a.*b', has white space in it"),
        (WORD_PIECES + "play\n", "line 6, 'play', is there twice"),
        (WORD_PIECES + "\nmore\n", "line 8 is ''"),
        (MERGES, "is a merges.txt: its ids are in a vocab.json, which is not beside it"),
        ("", r"no line is '\[UNK\]'"),
    ],
)
def test_text_that_is_no_vocabulary_is_refused(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NotImportableError, match=reason):
        import_file(str(path))
    assert main(["import", str(path), "-o", str(tmp_path / "v.gguf")]) == 2
    assert "some.txt" in capsys.readouterr().err
    assert not (tmp_path / "v.gguf").exists()


def test_a_chat_template_beside_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text(WORD_PIECES, encoding="utf-8")
    (tmp_path / "chat_template.jinja").write_bytes("{{ 'naïve' }}".encode("latin-1"))
    with pytest.raises(NotImportableError, match=r"chat_template\.jinja is not UTF-8: .* at byte 6"):
        import_file(str(tmp_path / "vocab.txt"))
    (tmp_path / "chat_template.jinja").write_bytes("{{ 'naïve' }}".encode())
    found = import_file(str(tmp_path / "vocab.txt")).metadata
    assert found["tokenizer.chat_template"] == "{{ 'naïve' }}"


def test_further_chat_templates_in_files(tmp_path: Path) -> None:
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("t")
    (tmp_path / "chat_template.jinja").write_text("d")
    (tmp_path / "vocab.txt").write_text(WORD_PIECES)
    found = import_file(str(tmp_path / "vocab.txt")).metadata
    assert (found["tokenizer.chat_template"], found["tokenizer.chat_template.tool_use"]) == ("d", "t")


@pytest.mark.parametrize(
    ("beside", "default", "number_lost"),
    [
        (None, None, 0),
        ("d", "d", 0),
        ([{"name": "default", "template": "d"}, {"name": "tool_use", "template": "old"}], "d", 0),
        (7, None, 1),
    ],
)
def test_named_chat_templates_in_files_without_a_default_one(
    beside: Any, default: str | None, number_lost: int, tmp_path: Path
) -> None:
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("t")
    written(tmp_path, vocab_txt=WORD_PIECES, tokenizer_config_json={"chat_template": beside})
    found = import_file(str(tmp_path / "vocab.txt"))
    assert found.metadata.get("tokenizer.chat_template") == default
    assert found.metadata["tokenizer.chat_template.tool_use"] == "t"
    assert sum(limit.number for limit in found.limits if limit.name == "chat_template") == number_lost


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (WORD_PIECES, {}),
        ("<pad>\n<unk>\n<s>\n</s>\nplay\n", {"unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}),
        (WORD_PIECES + "new york\n", {"added_tokens_decoder": {"7": {"content": "new york"}}}),
        (WORD_PIECES.replace("\n", "\r\n"), {}),
    ],
)
def test_vocab_txt_is_recognized_whatever_its_special_tokens_are_called(
    text: str, config: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "vocab.txt").write_bytes(text.encode())
    written(tmp_path, tokenizer_config_json=config)
    found = import_file(str(tmp_path / "vocab.txt")).metadata
    assert found["tokenizer.ggml.model"] == "bert"
    assert len(found["tokenizer.ggml.tokens"]) == len(text.split()) - ("new york" in text)


@pytest.mark.parametrize(
    "path", [p for p in FIXTURES if tokenizer(p).vocabulary.model == "bert"], ids=lambda p: p.stem
)
def test_exported_vocab_txt_is_recognized(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    assert main(["export", "-m", str(path), "--to", "vocab.txt", "-o", str(target), "--no-check"]) == 0
    assert main(["import", str(target), "-o", str(tmp_path / "v.gguf")]) == 0


def test_a_byte_order_mark_is_in_no_token(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text(WORD_PIECES, encoding="utf-8-sig")
    found = import_file(str(tmp_path / "vocab.txt")).metadata
    assert (found["tokenizer.ggml.tokens"][0], found["tokenizer.ggml.padding_token_id"]) == ("[PAD]", 0)
    written(tmp_path, vocab_json=VOCAB)
    (tmp_path / "some.txt").write_text(MERGES, encoding="utf-8-sig")
    assert import_file(str(tmp_path / "some.txt")).metadata["tokenizer.ggml.merges"] == ["a b", "Ġ ab"]


def test_a_word_piece_that_an_added_token_replaces_is_told(tmp_path: Path) -> None:
    written(tmp_path, vocab_txt=WORD_PIECES, added_tokens_json={"<x>": 5, "[PAD]": 0, "<y>": 9})
    [told] = [
        limit for limit in import_file(str(tmp_path / "vocab.txt")).limits if limit.name == "replaced_tokens"
    ]
    assert (told.number, "'<x>' takes the place of 'play'" in told.what) == (1, True)


BERT_NAMES = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
IGNORED: dict[str, tuple[dict[str, Any], str]] = {  # beside a vocab.txt: the settings that are told
    "no EOS": ({"special_tokens_map_json": BERT_NAMES}, ""),
    "SEP as EOS": ({"tokenizer_config_json": {**BERT_NAMES, "bos_token": "[CLS]", "eos_token": "[SEP]"}}, "EOS"),
    "another BOS": (
        {"tokenizer_config_json": {"bos_token": "play"}},
        "the settings name 'play' as BOS, and '[CLS]' is taken: texts of word pieces begin with CLS and end with SEP",
    ),
    "no such token": (
        {"tokenizer_config_json": {"mask_token": "<m>"}},
        "the settings name '<m>' as MASK, and no token is taken: there is no such token",
    ),
    "an older export": (
        {"tokenizer_config_json": {"add_bos_token": False, "gguf": {"tokenizer.ggml.add_bos_token": True}}},
        'tokenizer_config.json has add_bos_token = false, but its entry "gguf" adds BOS, and that is what is imported',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IGNORED)
def test_settings_beside_a_vocab_txt_that_are_not_imported(name: str, tmp_path: Path) -> None:
    beside, told = IGNORED[name]
    written(tmp_path, vocab_txt=WORD_PIECES, **beside)
    found = [
        limit.what for limit in import_file(str(tmp_path / "vocab.txt")).limits if limit.name == "settings"
    ]
    assert len(found) == bool(told)
    assert all(told in what for what in found)


def test_special_tokens_that_are_not_added_tokens_of_a_tokenizer_json(tmp_path: Path) -> None:
    vocab = {text: token for token, text in enumerate(WORD_PIECES.split())}
    model = {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]"}
    for beside, told in ((BERT_NAMES, []), ({**BERT_NAMES, "unk_token": "play"}, ["'[UNK]' is taken"])):
        written(tmp_path, tokenizer_json={"model": model}, tokenizer_config_json=beside)
        found = import_file(str(tmp_path / "tokenizer.json")).limits
        settings = [limit.what for limit in found if limit.name == "settings"]
        assert [part in what for part, what in zip(told, settings, strict=True)] == [True] * len(told)


@pytest.mark.parametrize("name", ["qwen.tiktoken", "tokenizer.model", "tekken.json"])
def test_ranks_of_tiktoken_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("IQ== 0\nIg== 1\n")
    with pytest.raises(
        NotImportableError, match="has the ranks of tiktoken and no merges, so it cannot be imported"
    ):
        import_file(str(path))


def test_a_file_with_tekken_in_its_name_is_read(tmp_path: Path) -> None:
    path = tmp_path / "nemo-tekken.json"
    path.write_text("{}")
    with pytest.raises(NotImportableError, match="the file has no model with a vocabulary"):
        import_file(str(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokenizer.json")
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        with pytest.raises(OSError, match="not a regular file"):
            import_file(str(path))


# ---- merges.txt with vocab.json ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"vocab_json": VOCAB}, "vocab.json is half of a vocabulary: its merges are in a merges.txt"),
        ({"merges_txt": MERGES + "a b c\n", "vocab_json": VOCAB}, "line 4, 'a b c', is not two tokens"),
        ({"merges_txt": MERGES + "c\n", "vocab_json": VOCAB}, "line 4, 'c', is not two tokens"),
        ({"merges_txt": MERGES, "vocab_json": [1]}, "has no JSON object"),
        ({"merges_txt": MERGES, "vocab_json": {"a": "b"}}, "not all numbers from 0 up"),
        ({"merges_txt": MERGES, "vocab_json": {**VOCAB, "x y": 256}}, "two tokens have the id 256"),
        (
            {"merges_txt": MERGES, "vocab_json": VOCAB | {f"{c}</w>": 300 + i for i, c in enumerate("abcdefgh")}},
            "its tokens mark the end of a word with '</w>', which llama.cpp does not have",
        ),
        (
            {
                "merges_txt": "#version: 0.2\n日 本\n▁ 日本\n",
                "vocab_json": {"日": 0, "本": 1, "日本": 2, "▁日本": 3, "▁": 4},
            },
            "pre=NAME",
        ),
    ],
)  # fmt: skip
def test_merges_that_are_not_sound_are_refused(files: dict[str, Any], reason: str, tmp_path: Path) -> None:
    written(tmp_path, **files)
    name = "merges.txt" if "merges_txt" in files else "vocab.json"
    with pytest.raises(NotImportableError, match=reason):
        import_file(str(tmp_path / name))


@pytest.mark.parametrize(
    ("beside", "pre", "how"),
    [
        ({}, "gpt-2", "nothing names the pre-tokenizer, and 2 merges are too few to tell"),
        ({"tokenizer_config_json": {"tokenizer_class": "Qwen2Tokenizer"}}, "qwen2", "Qwen2Tokenizer"),
        ({"tokenizer_config_json": {"tokenizer_class": "RobertaTokenizerFast"}}, "roberta-bpe", "Roberta"),
        ({"tokenizer_config_json": {"gguf": {"tokenizer.ggml.pre": "falcon"}}}, "falcon", "as exported"),
    ],
)  # fmt: skip
def test_what_names_the_pre_tokenizer_of_merges(
    beside: dict[str, Any], pre: str, how: str, tmp_path: Path
) -> None:
    written(tmp_path, merges_txt=MERGES, vocab_json=VOCAB, **beside)
    found = import_file(str(tmp_path / "merges.txt"))
    assert found.pre == pre
    assert found.recognized is not None
    assert how in found.recognized.sentence
    assert import_file(str(tmp_path / "merges.txt"), pre="llama-bpe").pre == "llama-bpe"


def test_tokens_tell_the_pre_tokenizer_where_nothing_names_it(tmp_path: Path) -> None:
    export = to_merges_txt(tokenizer(cached("deepseek-coder")).vocabulary)
    text = export.files["merges.txt"].decode()
    written(tmp_path, merges_txt="#version: 0.2\n" + text.partition("\n")[2])
    (tmp_path / "vocab.json").write_bytes(export.files["vocab.json"])
    found = import_file(str(tmp_path / "merges.txt"))
    assert found.pre == "deepseek-coder"
    assert found.recognized is not None
    assert "the tokens look made with this one" in found.recognized.sentence


def test_special_tokens_of_older_repositories(tmp_path: Path) -> None:
    """added_tokens.json, special_tokens_map.json and what the class of the tokenizer names by itself."""
    written(
        tmp_path,
        merges_txt=MERGES,
        vocab_json=VOCAB,
        added_tokens_json={"<tool>": 259, "<s>": 260},
        special_tokens_map_json={
            "bos_token": {"content": "<s>"},
            "pad_token": "<pad>",
            "additional_special_tokens": ["<|user|>", {"content": "<|bot|>"}],
        },
        tokenizer_config_json={
            "tokenizer_class": "GPT2Tokenizer",
            "add_bos_token": True,
            "chat_template": "t",
        },
    )
    tok = opened(import_file(str(tmp_path / "merges.txt")), tmp_path)
    assert [tok.id_to_token(token) for token in range(256, tok.vocab_size)] == [
        *("ab", "Ġab", "<|endoftext|>", "<tool>", "<s>", "<pad>", "<|user|>", "<|bot|>")
    ]
    kinds = {259: USER_DEFINED, **dict.fromkeys((258, 260, 261, 262, 263), CONTROL)}
    assert {token: tok.token_attributes(token) & (CONTROL | USER_DEFINED) for token in kinds} == kinds
    assert (tok.bos_id, tok.eos_id, tok.pad_id) == (260, 258, 261)
    assert tok.encode("ab ab<tool><|endoftext|>") == [260, 256, 257, 259, 258]
    assert tok.chat_template == "t"


def test_roberta_puts_both_ends_around_a_text(tmp_path: Path) -> None:
    vocab = {"<s>": 0, "</s>": 1, **{text: token + 2 for text, token in VOCAB.items()}}
    written(
        tmp_path,
        merges_txt=MERGES,
        vocab_json=vocab,
        tokenizer_config_json={"tokenizer_class": "RobertaTokenizer"},
    )
    tok = opened(import_file(str(tmp_path / "merges.txt")), tmp_path)
    assert tok.encode("ab") == [0, vocab["ab"], 1]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"tokenizer_class": "RobertaTokenizer", "add_eos_token": False},
            "but RobertaTokenizer adds EOS, and that is what is imported",
        ),
        ({"add_eos_token": True}, "but no token of the vocabulary is named as EOS"),
        (
            {"add_bos_token": False, "gguf": {"tokenizer.ggml.add_bos_token": True}},
            'but its entry "gguf" adds BOS, and that is what is imported',
        ),
    ],
)
def test_settings_beside_merges_that_are_not_imported(
    settings: dict[str, Any], told: str, tmp_path: Path
) -> None:
    vocab = {"<s>": 0, "</s>": 1, **{text: token + 2 for text, token in VOCAB.items()}}
    written(tmp_path, merges_txt=MERGES, vocab_json=vocab, tokenizer_config_json=settings)
    found = import_file(str(tmp_path / "merges.txt")).limits
    [what] = [limit.what for limit in found if limit.name == "settings"]
    assert told in what


def test_tokens_that_only_a_configuration_could_explain_are_told(tmp_path: Path) -> None:
    written(tmp_path, merges_txt=MERGES, vocab_json={**VOCAB, "<extra>": 259})
    found = import_file(str(tmp_path / "merges.txt"))
    limit = next(limit for limit in found.limits if limit.name == "special_tokens")
    assert "'<extra>'" in limit.what
    assert opened(found, tmp_path).encode("<|endoftext|>") == [258]
    assert "special_tokens" in names(found.limits)


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt", ""])
def test_command_imports_either_file_or_the_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, merges_txt=MERGES, vocab_json=VOCAB)
    assert main(["import", str(tmp_path / name), "-o", str(tmp_path / "v.gguf")]) == 0
    said = capsys.readouterr().out
    assert "259 tokens, 2 merges" in said
    assert "not checked: merges.txt does not say how text is split" in said
    assert Tokenizer.from_gguf(tmp_path / "v.gguf").encode("ab ab") == [256, 257]


REAL = ["deepseek-coder"]
MERGING = [p for p in FIXTURES if tokenizer(p).vocabulary.tokenizer_model.algorithm == "merges"]


@pytest.mark.slow
@pytest.mark.parametrize("source", [GPT2, *MERGING, *REAL], ids=lambda s: s if isinstance(s, str) else s.stem)
def test_own_export_gives_the_same_ids(source: Path | str, tmp_path: Path) -> None:
    """Of the text between special tokens: merges.txt and vocab.json do not say all that a GGUF says about these."""
    before = tokenizer(source if isinstance(source, Path) else cached(source))
    try:
        export = to_merges_txt(before.vocabulary)
    except NotExpressibleError:
        return
    for name, data in export.files.items():
        (tmp_path / name).write_bytes(data)
    after = opened(import_file(str(tmp_path / "merges.txt")), tmp_path)
    assert after.pre == before.pre
    assert list(after.vocabulary.tokens) == list(before.vocabulary.tokens)
    for name in ("bos", "eos"):
        token = before.vocabulary.special_ids[name]
        if token in before.vocabulary.special_token_ids:
            assert after.vocabulary.special_ids[name] == token
            assert token in after.vocabulary.special_token_ids
    if "merges_without_tokens" in names(export.limits):
        return  # merges that no file can hold
    special = [before.vocabulary.tokens[token].strip() for token in before.vocabulary.special_token_ids]
    texts = [text for text in sample(before, 100) if not any(each in text for each in special)]
    flags = {"add_special": False, "parse_special": False}
    assert after.encode_batch(texts, **flags) == before.encode_batch(texts, **flags)


def test_older_export_with_the_configuration_of_tokenizer_json(tmp_path: Path) -> None:
    """Exports of an older version name no pre-tokenizer in merges.txt; tokenizer_config.json beside it does."""
    source = ROOT / "fixtures" / "vocabs" / "add-bos-and-eos.gguf"
    for kind in ("tokenizer.json", "merges.txt"):
        assert main(["export", "-m", str(source), "--to", kind, "-o", f"{tmp_path}/", "--no-check"]) == 0
    merges = (tmp_path / "merges.txt").read_text(encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + merges.partition("\n")[2], encoding="utf-8")
    before, after = tokenizer(source), opened(import_file(str(tmp_path / "merges.txt")), tmp_path)
    assert after.vocabulary.special_ids == before.vocabulary.special_ids
    for text in sample(before, 50):
        assert after.encode(text) == before.encode(text)
