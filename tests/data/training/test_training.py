"""Training: the merges that are learned, in the classic worked examples, by the naive way and by HF tokenizers."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, missing
from hypothesis import given
from hypothesis import strategies as st
from reference import NotPreparedError, Oracle, write_metadata
from small_models import small_keys
from synthetic import bounded, byte_tokens, make_vocabulary
from training_cases import EVERY_SCRIPT, source_text

from ggufbpe import Tokenizer, diff, train
from ggufbpe._util.progress import Progress
from ggufbpe.cli import main
from ggufbpe.data.training.learn_merges import TIES
from ggufbpe.data.training.native_counting import is_there
from ggufbpe.data.training.train_vocabulary import TrainedVocabulary
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.bpe.merge import BYTE_CHARS, PairRanks, byte_level, merge_steps
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.pretokenizers.splitter import splitter
from ggufbpe.models.vocabulary import CONTROL, NORMAL, USER_DEFINED, GGUFWarning


@pytest.fixture(scope="module", params=["reference", "compiled"], autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test runs on both engines, where both are there."""
    if request.param == "compiled" and not is_there():
        pytest.skip("the compiled module is not built")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "reference":
            patch.setattr("ggufbpe.data.training.train_vocabulary.is_there", lambda: False)
        yield request.param


def merged_tokens(vocabulary: TrainedVocabulary) -> list[str]:
    return [step.token for step in vocabulary.trace]


# ---- worked examples ------------------------------------------------------------------------------------


def test_aaabdaaabac_by_lowest_ids() -> None:
    found = train(["aaabdaaabac"], vocab_size=259, pre="none")
    assert found.trace == [("a", "a", 4, "aa"), ("a", "b", 2, "ab"), ("aa", "ab", 2, "aaab")]
    assert found.tokenize("aaabdaaabac") == ["aaab", "d", "aaab", "a", "c"]
    assert found.decode(found.encode("aaabdaaabac")) == "aaabdaaabac"


def test_aaabdaaabac_by_first_seen() -> None:
    found = train(["aaabdaaabac"], vocab_size=259, pre="none", ties="first-seen")
    assert merged_tokens(found) == ["aa", "aaa", "aaab"]
    assert found.tokenize("aaabdaaabac") == ["aaab", "d", "aaab", "a", "c"]


def test_hug_pug_and_an_unknown_letter() -> None:
    counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    found = train(word_counts=counts, vocab_size=10, pre="words", units="chars", unk="<unk>")
    assert [(step.token, step.frequency) for step in found.trace] == [("ug", 20), ("un", 16), ("hug", 15)]
    assert found.tokenize("pug") == ["p", "ug"]
    assert found.tokenize("bug") == ["b", "ug"]
    assert found.tokenize("mug") == ["<unk>", "ug"]
    assert [found.tokens[token] for token in found.encode("mug")] == ["<unk>", "ug"]
    assert len(found.tokens) == 11  # <unk> stands for what is not in the ten


@pytest.mark.parametrize("ties", TIES)
def test_end_of_word_that_is_joined_to_nothing(ties: str) -> None:
    text = "The quick brown fox jumps over the dog. The dog jumps over the frog."
    found = train(
        [text],
        vocab_size=len({*text, "_"} - {" "}) + 15,
        pre="words",
        units="chars",
        end_of_word="_",
        merge_end_of_word=False,
        ties=ties,
    )
    assert len(found.merges) == 15
    assert found.tokenize("bulldog") == ["b", "u", "l", "l", "dog", "_"]
    assert found.tokenize("overload") == ["over", "l", "o", "a", "d", "_"]
    assert found.tokenize("frog") == ["f", "r", "og", "_"]
    assert found.decode(found.encode("the frog.")) == "the frog ."


LOWER = {"low": 5, "lower": 2, "newer": 3, "newest": 1, "widest": 1}
LOWER_TRACE = """\
1. l + o = lo, 7 times
2. lo + w = low, 7 times
3. e + r = er, 5 times
4. n + e = ne, 4 times
5. ne + w = new, 4 times
6. new + er = newer, 3 times
7. low + er = lower, 2 times
8. e + s = es, 2 times
9. es + t = est, 2 times
10. new + est = newest, 1 time
"""


def test_low_lower_newest_as_traced(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    table = tmp_path / "words"
    table.write_text("".join(f"{word}\t{count}\n" for word, count in LOWER.items()))
    options = ["--pre", "words", "--units", "chars", "--ties", "first-seen", "--vocab-size", "20", "--trace"]
    assert main(["train", "--word-counts", str(table), *options]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert "".join(line + "\n" for line in lines if not line.startswith(" ")) == LOWER_TRACE


def test_no_pair_is_left_and_that_is_said(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    found = train(["hello hello world"], vocab_size=270, pre="none")
    assert (len(found.merges), len(found.tokens)) == (11, 267)
    assert found.decode(found.encode("hello world")) == "hello world"
    text = tmp_path / "text"
    text.write_text("hello hello world")
    command = ["train", str(text), "--vocab-size", "270", "--pre", "none", "-o", str(tmp_path / "v.json")]
    assert main(command) == 0
    assert (
        "no pair is left after 11 merges: the vocabulary has 267 tokens, not 270"
        in capsysbinary.readouterr().err.decode()
    )


def test_explain_shows_what_is_easily_confused(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """NFC and NFD of a word, an apostrophe, numbers, an emoji, indentation: each with its own tokens."""
    path = tmp_path / "vocab.gguf"
    train([EVERY_SCRIPT * 3], vocab_size=320, pre="llama-bpe", special=["<|endoftext|>"]).save(path)
    tok = Tokenizer.from_gguf(path)

    def explained(text: str) -> list[list[str]]:
        assert main(["explain", "-m", str(path), "--json", text]) == 0
        words = json.loads(capsysbinary.readouterr().out)["words"]
        assert [word["text"] for word in words] == tok.pre_tokenize(text)
        assert [
            token for word in words for symbol in word["symbols"] for token in symbol["ids"]
        ] == tok.encode(text)
        return [[symbol["text"] for symbol in word["symbols"]] for word in words]

    nfc, nfd = explained("caf\u00e9"), explained("cafe\u0301")
    assert ("".join(*nfc), "".join(*nfd[:1])) == (byte_level("caf\u00e9"), "cafe")
    assert "".join(nfd[1]) == byte_level("\u0301")  # the mark is a word of its own
    assert ["".join(word) for word in explained("T\u00fcrk\u00e7e'nin")] == [
        byte_level("T\u00fcrk\u00e7e"),
        "'nin",
    ]
    assert ["".join(word) for word in explained("12345")] == ["123", "45"]
    assert "".join(*explained("\U0001f642")) == byte_level("\U0001f642")
    assert ["".join(word) for word in explained("if:\n    x")] == ["if", ":Ċ", "ĠĠĠ", "Ġx"]


# ---- the naive way --------------------------------------------------------------------------------------


def naive(
    words: dict[str, int], size: int, ties: str, least: int = 1, longest: int = 1 << 30
) -> list[tuple[str, str, int]]:
    """Count all pairs of all words anew for each merge."""
    split = {word: list(byte_level(word)) for word in words}
    ids = {char: index for index, char in enumerate(sorted(BYTE_CHARS))}
    order = {
        "lowest-ids": lambda pair: (ids[pair[0]], ids[pair[1]]),
        "lexicographic": lambda pair: tuple(bytes(map(BYTE_CHARS.index, part)) for part in pair),
        "first-seen": lambda pair: 0,  # `min` takes the first
    }[ties]
    merges: list[tuple[str, str, int]] = []
    while len(ids) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(split[word]):
                if len(pair[0] + pair[1]) <= longest:
                    pairs[pair] += count
        if not pairs or max(pairs.values()) < least:
            break
        best = min((pair for pair in pairs if pairs[pair] == max(pairs.values())), key=order)
        merges.append((*best, pairs[best]))
        ids.setdefault(best[0] + best[1], len(ids))
        split = {word: applied(symbols, best) for word, symbols in split.items()}
    return merges


def applied(symbols: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """`symbols` with each `pair` joined, from the left."""
    found: list[str] = []
    rest = list(symbols)
    while rest:
        if tuple(rest[:2]) == pair:
            found.append(pair[0] + pair[1])
            del rest[:2]
        else:
            found.append(rest.pop(0))
    return found


letters = st.text("ab", max_size=12) | st.text("abcd é", max_size=30)


@pytest.mark.filterwarnings("ignore:the corpus has no text")
@pytest.mark.slow
@pytest.mark.parametrize("ties", TIES)
@given(
    texts=st.lists(letters, min_size=1, max_size=6),
    least=st.integers(1, 3),
    longest=st.sampled_from([2, 3, 5, 99]),
)
@bounded(120)
def test_merges_are_those_of_counting_anew(texts: list[str], least: int, longest: int, ties: str) -> None:
    found = train(texts, vocab_size=290, ties=ties, min_frequency=least, max_token_length=longest)
    words = Counter(word for text in texts for word in splitter(PRE_TOKENIZERS["gpt-2"]).words(text))
    assert [step[:3] for step in found.trace] == naive(words, 290, ties, least, longest)


@given(
    choices=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=30),
    word=st.text("abc", max_size=80),
)
@bounded(300)
def test_queue_gives_what_one_rule_after_the_other_gives(choices: list[tuple[int, int]], word: str) -> None:
    """In vocabularies in which each merge joins two tokens that were there to a new one, as training does."""
    tokens = list("abc")
    merges: list[tuple[str, str]] = []
    for left, right in choices:
        pair = tokens[left % len(tokens)], tokens[right % len(tokens)]
        if pair[0] + pair[1] not in tokens:
            merges.append(pair)
            tokens.append(pair[0] + pair[1])
    expected = list(word)
    for pair in merges:
        expected = applied(expected, pair)
    symbols = list(word)
    for _ in merge_steps(symbols, PairRanks([" ".join(pair) for pair in merges])):
        pass
    assert list(filter(None, symbols)) == expected


@pytest.mark.parametrize("ties", TIES)
def test_learned_words_are_encoded_as_they_were_merged(ties: str) -> None:
    text = EVERY_SCRIPT * 2
    found = train([text], vocab_size=330, ties=ties)
    words = splitter(PRE_TOKENIZERS["gpt-2"]).words(text)
    for word in set(words):
        expected = list(byte_level(word))
        for pair in found.merges:
            expected = applied(expected, pair)
        assert found.tokenize(word) == expected
    assert found.decode(found.encode(text)) == text


# ---- HF tokenizers --------------------------------------------------------------------------------------


def hf_merges(texts: Iterable[str], vocab_size: int, **options: int) -> list[tuple[str, str]]:
    """What HF's BpeTrainer learns with GPT-2's splitting; it ends one unit below its max_token_length."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size, show_progress=False, initial_alphabet=alphabet, **options
    )
    tokenizer.train_from_iterator(texts, trainer)
    return [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


def test_merges_are_those_of_hf() -> None:
    text = source_text()
    found = train([text], vocab_size=4000)
    assert found.merges == hf_merges([text], 4000)
    assert len(found.merges) == 4000 - 256


@pytest.mark.parametrize("seed", range(40))
def test_merges_are_those_of_hf_for_random_texts(seed: int) -> None:
    """Few letters, so that pairs overlap and ties are many."""
    choose = random.Random(seed)
    letters = "abcdefgh"[: choose.choice((1, 2, 3, 5, 8))]
    count, length = choose.choice(((30, 8), (200, 40)))
    text = " ".join("".join(choose.choices(letters, k=choose.randint(1, length))) for _ in range(count))
    least, longest = choose.choice((1, 2, 3)), choose.choice((None, 3, 4, 7))
    options = {} if longest is None else {"max_token_length": longest + 1}
    found = train([text], vocab_size=1000, min_frequency=least, max_token_length=longest)
    assert found.merges == hf_merges([text], 1000, min_frequency=least, **options)


def test_base_tokens_have_the_ids_of_hf_and_gpt_2() -> None:
    found = train(["a b"], vocab_size=257, special=["<s>"])
    assert found.tokens[0] == "<s>"
    assert found.tokens[1:] == Tokenizer.from_gguf(GPT2).vocabulary.tokens[:256]


# ---- the same result whatever the order -----------------------------------------------------------------


@pytest.mark.parametrize("ties", TIES)
def test_order_of_files_does_not_matter(ties: str, tmp_path: Path) -> None:
    texts = {"b.txt": "low lower", "a.txt": "newest widest", "c.jsonl": '{"text": "wider"}\n'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    orders = [
        train(map(tmp_path.joinpath, names), vocab_size=300, ties=ties) for names in permutations(texts)
    ]
    orders.append(train([tmp_path], vocab_size=300, ties=ties))
    assert len({tuple(found.tokens) for found in orders}) == 1
    assert len({tuple(found.merges) for found in orders}) == 1


def test_order_of_texts_matters_for_first_seen_alone() -> None:
    def learned(ties: str, *texts: str) -> set[tuple[str, ...]]:
        return {
            tuple(merged_tokens(train(order, vocab_size=300, ties=ties))) for order in permutations(texts)
        }

    texts = "ab", "cd", "ef"
    assert len(learned("lowest-ids", *texts)) == len(learned("lexicographic", *texts)) == 1
    assert len(learned("first-seen", *texts)) == 6


def test_an_interruption_ends_it() -> None:
    """Ctrl-C is an exception between two turns, as this one is."""

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train([source_text()], vocab_size=2000, progress=interrupt)


# ---- options --------------------------------------------------------------------------------------------


def test_special_tokens_are_cut_out_of_the_text() -> None:
    text = "ab<|end|>ab<|end|>ab<tag>"
    found = train([text], vocab_size=400, pre="none", special=["<|end|>"], user_defined=["<tag>"])
    assert found.tokens[:2] == ["<|end|>", "<tag>"]
    assert found.attributes[:3] == [CONTROL, USER_DEFINED, NORMAL]
    assert merged_tokens(found) == ["ab"]
    assert found.tokenize(text) == ["ab", "<|end|>", "ab", "<|end|>", "ab", "<tag>"]


@pytest.mark.parametrize("name", ["special", "user_defined"])
def test_one_text_is_no_list_of_tokens(name: str) -> None:
    """Its characters would be the tokens."""
    with pytest.raises(TypeError, match=rf"{name} must be a list of texts, such as \['<e>'\]"):
        train(["low lower"], vocab_size=270, **{name: "<e>"})  # type: ignore[arg-type]


def test_no_merge_gives_the_text_of_a_special_token() -> None:
    """It could only where the alphabet of bytes writes it: two equal tokens are what llama.cpp aborts on."""
    found = train(["é é"], vocab_size=400, special=["Ã©"])
    assert (found.tokens.count("Ã©"), merged_tokens(found)) == (1, ["ĠÃ", "ĠÃ©"])


def test_limit_alphabet_keeps_the_most_frequent() -> None:
    found = train(["aaabbcxc"], vocab_size=4, pre="none", units="chars", limit_alphabet=3, unk="?")
    assert found.tokens == ["?", "a", "b", "c", "aa"]
    assert found.tokenize("axb") == ["a", "?", "b"]
    apart = train(
        ["axb" * 9], vocab_size=9, pre="none", units="chars", limit_alphabet=2, unk="?", alphabet="ab"
    )
    assert apart.merges == [("b", "a")]  # not ("a", "b"), which never stood side by side


def test_alphabet_adds_characters() -> None:
    found = train(["ab"], vocab_size=10, pre="none", units="chars", alphabet="cd")
    assert found.tokens == ["a", "b", "c", "d", "ab"]
    with pytest.raises(ValueError, match=r"'e' is not in the learned alphabet"):
        found.encode("e")


def test_end_of_word_that_is_joined() -> None:
    found = train(["an an ant"], vocab_size=7, pre="words", units="chars", end_of_word="</w>")
    assert merged_tokens(found) == ["an", "an</w>", "t</w>"]
    assert found.decode(found.encode("ant an")) == "ant an"


def test_characters_with_spaces_in_tokens() -> None:
    found = train(["a b a b"], vocab_size=6, pre="none", units="chars")
    assert merged_tokens(found)[:2] == [" b", "a b"]
    assert found.decode(found.encode("a b")) == "a b"


ERRORS = [
    ({"vocab_size": 255}, "no room for the 256 tokens"),
    ({"vocab_size": 0}, "vocab_size must be 1 or more, not 0"),
    ({"pre": "gpt2"}, "unknown pre-tokenizer 'gpt2' (near: gpt-2"),
    ({"pre": "gemma4", "units": "bytes"}, "its units are chars"),
    ({"units": "words"}, "units are bytes or chars"),
    ({"ties": "random"}, "ties are lowest-ids, lexicographic, first-seen"),
    ({"errors": "ignore"}, "errors are strict or replace"),
    ({"limit_alphabet": 5}, "an alphabet is for units='chars'"),
    ({"min_frequency": 0}, "min_frequency must be 1 or more, not 0"),
    ({"threads": 0}, "threads must be 1 or more, not 0"),
    ({"special": ["a"]}, "'a' is a unit of the text"),
    ({"special": ["<a>"], "user_defined": ["<a>"]}, "named twice"),
    ({"special": [""]}, "empty"),
    ({"end_of_word": "o"}, "occurs in the texts"),
    ({"word_counts": {"a": -1}}, "has the count -1"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_options_that_make_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        train(["hello"], **{"vocab_size": 300, **options})  # type: ignore[arg-type]
    assert message in str(error.value)


# ---- seeds ----------------------------------------------------------------------------------------------


def test_a_seed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    text = source_text()[:50_000]
    path = tmp_path / "half.gguf"
    train([text], vocab_size=600, special=["<|endoftext|>"]).save(path)
    whole = train([text], vocab_size=900, special=["<|endoftext|>"])
    found = train([text], vocab_size=900, seed_vocab=path)
    assert (found.tokens, found.merges) == (whole.tokens, whole.merges)
    assert found.trace == whole.trace[-300:]


@pytest.mark.filterwarnings("ignore:.*(was not an end-of-generation token|always adds BOS)")  # of opening it
@pytest.mark.filterwarnings("ignore:with the pre-tokenizer gemma4, llama.cpp puts BOS before")
@pytest.mark.parametrize(("pre", "end"), [("gpt-2", "Ā"), ("gemma4", "<0x00>")])
def test_without_special_tokens_no_text_has_what_ends_texts(pre: str, end: str, tmp_path: Path) -> None:
    """llama.cpp would take token 11, a comma, where the file names none."""
    path = tmp_path / "vocab.gguf"
    with pytest.warns(GGUFWarning, match="no special token, .* both are the token of byte 0"):
        train([EVERY_SCRIPT], vocab_size=1000, pre=pre).save(path)
    tok = Tokenizer.from_gguf(path)
    assert tok.token_to_piece(tok.token_to_id(end)) == b"\0"
    assert {tok.bos_id, tok.eos_id, *tok.eog_ids} == {tok.token_to_id(end)}
    with GGUFFile(path) as file:
        assert file["tokenizer.ggml.bos_token_id"] == file["tokenizer.ggml.eos_token_id"] == tok.eos_id


@pytest.mark.slow
def test_a_seed_keeps_its_ids_and_keys(tmp_path: Path) -> None:
    path = tmp_path / "more.gguf"
    found = train([EVERY_SCRIPT], vocab_size=50_300, seed_vocab=GPT2, user_defined=["<tag>"])
    found.save(path)
    old, new = Tokenizer.from_gguf(GPT2), Tokenizer.from_gguf(path)
    assert new.vocabulary.tokens[: old.vocab_size] == old.vocabulary.tokens
    assert (new.vocab_size, new.id_to_token(old.vocab_size)) == (50_300, "<tag>")
    assert (new.pre, new.bos_id, new.eog_ids) == (old.pre, old.bos_id, old.eog_ids)
    assert new.encode(EVERY_SCRIPT) == found.encode(EVERY_SCRIPT)
    assert len(new.encode(EVERY_SCRIPT)) < len(old.encode(EVERY_SCRIPT))


def test_a_merge_to_a_token_that_the_seed_has(tmp_path: Path) -> None:
    """It becomes a merge and no token, and what was learned of that token applies at once."""
    from reference import write_metadata

    seed = tmp_path / "seed.gguf"
    tokens = [*byte_tokens(), "bc", "abc", "abcd", "<|endoftext|>"]
    keys = {
        "general.architecture": "gpt2",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 1) + [3],
        "tokenizer.ggml.merges": ["abc d", "b c"],
        "tokenizer.ggml.bos_token_id": len(tokens) - 1,
        "tokenizer.ggml.eos_token_id": len(tokens) - 1,
        "tokenizer.ggml.suppress_tokens": [3, 4],
        "tokenizer.chat_template": "{{ x }}",
        "llama.block_count": 7,
    }
    write_metadata(seed, keys)
    found = train(["abcd abcd abcx"], vocab_size=len(tokens) + 1, seed_vocab=seed)
    # (abc, d) is joined again by then, so (Ġ, abc) stands once
    assert [step[:3] for step in found.trace] == [("a", "bc", 3), ("Ġ", "abc", 1)]
    assert len(found.tokens) == len(set(found.tokens)) == len(tokens) + 1
    assert found.tokenize("abcd") == ["abcd"]
    found.save(tmp_path / "grown.gguf")
    with GGUFFile(seed) as before, GGUFFile(tmp_path / "grown.gguf") as after:
        same = set(before.keys()) - {f"tokenizer.ggml.{key}" for key in ("tokens", "token_type", "merges")}
        assert {key for key in same if key not in after} == {"llama.block_count"}
        for key in same - {"llama.block_count"}:
            assert (after[key], after.value_type(key)) == (before[key], before.value_type(key))
            assert after.element_type(key) == before.element_type(key)


# ---- llama.cpp ------------------------------------------------------------------------------------------

CARRIED = ["gpt-2", "llama-bpe", "gpt-4o", "deepseek-v3", "superbpe", "gemma4", "sarvam-moe", "whitespace"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*has no token for the newline")  # of `whitespace`, which drops it
@pytest.mark.parametrize("pre", CARRIED)
def test_vocabulary_gives_the_same_ids_in_llama_cpp(pre: str, tmp_path: Path) -> None:
    path = tmp_path / "vocab.gguf"
    text = EVERY_SCRIPT + source_text()[:20_000]
    special = ["<|endoftext|>", "<bos>"]
    found = train([text], vocab_size=1000, pre=pre, special=special, user_defined=["<tag>"], bos="<bos>")
    found.save(path)
    texts = [EVERY_SCRIPT, "", "hello <tag>world<|endoftext|>", "ünseen 猫\0", *text.splitlines()[:200]]
    own = Tokenizer.from_gguf(path)
    ids = [own.encode(each, add_special=False) for each in texts]
    assert ids == [found.encode(each) for each in texts]
    assert own.add_bos
    assert own.encode("a")[0] == found.token_to_id["<bos>"]
    try:
        with Oracle(path) as oracle:
            assert oracle.tokenize([each.encode() for each in texts], False, True) == ids
            with_bos = oracle.tokenize([b"hello"], True, True)
            described = oracle.describe()
    except NotPreparedError as error:
        missing(str(error))
    assert with_bos == [own.encode("hello")]
    assert described.special_ids["bos"] == 1
    assert described.special_ids["eos"] == 0


REFUSED = [
    ({"pre": "none"}, "no pre-tokenizer that splits as 'none' does"),
    ({"pre": "words", "units": "chars"}, "no pre-tokenizer that splits as 'words' does"),
    ({"units": "chars"}, "gpt-2 writes text as bytes"),
    ({"end_of_word": "_"}, "no end-of-word symbol"),
    ({"units": "chars", "pre": "gemma4", "unk": "<unk>"}, "no unknown token"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_llama_cpp_has_no_form_for_is_refused(
    options: dict[str, str], message: str, tmp_path: Path
) -> None:
    found = train(["hello hello"], vocab_size=300, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        found.save(tmp_path / "vocab.gguf")
    assert list(tmp_path.iterdir()) == []
    found.save(tmp_path / "vocab.json")
    saved = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    assert (saved["tokens"], saved["merges"]) == (found.tokens, [list(pair) for pair in found.merges])


def test_merges_txt(tmp_path: Path) -> None:
    train(["low low"], vocab_size=259).save(tmp_path / "merges.txt")
    assert (tmp_path / "merges.txt").read_text(encoding="utf-8") == "#version: 0.2\nl o\nlo w\nĠ low\n"
    with pytest.raises(ValueError, match="spaces or line breaks"):
        train(["a b a b"], vocab_size=9, pre="none", units="chars").save(tmp_path / "merges.txt")


def test_a_vocabulary_without_merges_is_no_gguf(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without merges"):
        train(["a"], vocab_size=300).save(tmp_path / "vocab.gguf")


@pytest.mark.parametrize("corpus", [[], [""], [io.BytesIO(b"")]])
def test_a_corpus_without_a_text_is_told(corpus: list[object], tmp_path: Path) -> None:
    with pytest.warns(GGUFWarning, match="the corpus has no text, so no merge was learned"):
        found = train(corpus, vocab_size=300)
    with pytest.raises(
        ValueError, match="without merges, and none was learned, since the corpus has no text"
    ):
        found.save(tmp_path / "vocab.gguf")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 2**31}, "vocab_size is 2147483648; it must be 2147483647 or less"),
        ({"vocab_size": 10**20}, "vocab_size is 1000"),
        ({"min_frequency": 10**20}, "min_frequency is .* or less"),
        ({"max_token_length": 10**20}, "max_token_length is .* or less"),
        ({"threads": 2**40}, "threads is 1099511627776; it must be 65536 or less"),
        ({"word_counts": {"low": 10**20}}, "'low' has the count 1000"),
        (
            {"limit_alphabet": -1, "units": "chars", "pre": "words"},
            "limit_alphabet must be 0 or more, not -1",
        ),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(["low"], **{"vocab_size": 300, **options})


@pytest.mark.parametrize(
    "options",
    [
        {"vocab_size": None},
        {"vocab_size": 300.0},
        {"min_frequency": "2"},
        {"max_token_length": 1.5},
        {"threads": 1.5},
    ],
)
def test_what_is_no_integer_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"{next(iter(options))} must be an integer, not "):
        train(["low"], **{"vocab_size": 300, **options})


def test_ids_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="token id 300 is out of range"):
        train(["ab"], vocab_size=300).decode([300])


def test_a_synthetic_vocabulary_has_what_training_needs() -> None:
    """The tie between this file and the tokenizer: a trained vocabulary is one that the tokenizer takes."""
    found = train(["low lower"], vocab_size=260)
    merges = [f"{left} {right}" for left, right in found.merges]
    tok = Tokenizer(make_vocabulary(found.tokens, merges=merges))
    assert tok.encode("lower low", add_special=False) == found.encode("lower low")


def test_an_extended_vocabulary_is_no_sign_that_its_seed_is_broken(tmp_path: Path) -> None:
    """And what llama.cpp makes a control token by its text keeps the type that its file has."""
    keys = small_keys("</s>", kind=int(TokenType.NORMAL))
    seed = write_metadata(tmp_path / "seed.gguf", keys)
    train(["low lower lowest"], vocab_size=272, seed_vocab=seed).save(tmp_path / "more.gguf")
    old, new = (Tokenizer.from_gguf(path).vocabulary for path in (seed, tmp_path / "more.gguf"))
    end = old.token_to_id["</s>"]
    assert old.attributes[end] & CONTROL
    assert (new.attributes[end], len(new.tokens)) == (old.attributes[end], 272)
    found = diff(seed, tmp_path / "more.gguf")
    assert (found.suspect, found.fix, found.sections["types"]) == (None, "", [])
    assert found.sections["tokens"]
