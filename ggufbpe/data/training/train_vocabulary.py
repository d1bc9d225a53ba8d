"""Trains a vocabulary on a corpus.

    training_texts.py -> texts -> word_counts.py -> {word: count} -> learn_merges.py -> merges
        -> trained_vocabulary.py -> save_vocabulary.py -> vocab.gguf

`train` runs the steps. The module is not called `train`, since that is the public name of the function.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from ..._util.arguments import integer
from ..._util.caller import frames_to_caller
from ..._util.errors import printable
from ..._util.lazy import IMPORT_LOCK
from ..._util.progress import OnProgress, Progress
from ...gguf.metadata import Overrides
from ...hub.model_location import ModelName, locate
from ...models.bpe.merge import BYTE_CHARS, WordEncoder
from ...models.loading import load
from ...models.vocabulary import NORMAL, GGUFWarning, Vocabulary, emit_warnings
from ...native import warn_if_slow
from ..corpora.records import CorpusError as CorpusError
from .draft_vocabulary import Added, Draft, base, cutter, seeded
from .learn_merges import TIES, Learner, Rules
from .native_counting import CompiledLearner, add_counts, count_natively, is_there
from .trained_vocabulary import Form, LearnedStep, Seed, token_bytes
from .trained_vocabulary import TrainedVocabulary as TrainedVocabulary
from .training_steps import Recorder, TrainingStep
from .training_texts import CorpusOptions, read_training_texts
from .word_counts import Splitting, count_words, splitting

_ERRORS = ("strict", "replace")
_MOST_TOKENS = 2**31 - 1  # ids have 32 bits
_MOST_COUNTED = 2**63 - 1  # what the compiled engine counts with
_MOST_THREADS = 1 << 16  # each has a table of words


def train(
    corpus: Iterable[object] = (),
    *,
    vocab_size: int,
    pre: str | None = None,
    units: str | None = None,
    special: Sequence[str] = (),
    user_defined: Sequence[str] = (),
    bos: str | None = None,
    eos: str | None = None,
    unk: str | None = None,
    end_of_word: str | None = None,
    merge_end_of_word: bool = True,
    min_frequency: int = 1,
    max_token_length: int | None = None,
    limit_alphabet: int | None = None,
    alphabet: Iterable[str] = (),
    ties: str = "lowest-ids",
    seed_vocab: ModelName | None = None,
    seed_overrides: Overrides | None = None,
    word_counts: Mapping[str, int] | None = None,
    field: str | None = None,
    errors: str = "strict",
    threads: int | None = None,
    ray: str | None = None,
    progress: OnProgress | None = None,
    skipped: Counter[str] | None = None,
    record: int = 0,
) -> TrainedVocabulary:
    """Learn a vocabulary of `vocab_size` tokens from a corpus, by byte pair encoding.

    `corpus` is a list of texts (`str`: always a text, never a path), files and directories (`pathlib.Path`), and binary
    streams; JSON lines and compressed files are recognized by their names, and `field` is the field of JSON lines that
    is read. With errors="replace", bytes that are not UTF-8 are read as U+FFFD. `word_counts` maps words that are
    already split to how often they occur. Texts are split by `pre`, a name in `tokenizer.ggml.pre` ("gpt-2" by
    default), "none" (each line is a word) or "words"; `units`, "bytes" or "chars", are what merging begins with.

    `special` become control tokens, `user_defined` tokens that are always shown; both are cut out of the texts. `bos`
    and `eos` name control tokens, by default the first of `special`; a named `bos` begins each text. Without any, a
    GGUF has the token of byte 0 for both: see `TrainedVocabulary.save`. `unk` is the token for what has no other, and
    `vocab_size` counts all tokens but that.

    `end_of_word` is a symbol after each word, merged with others unless `merge_end_of_word` is False. Pairs rarer than
    `min_frequency` and tokens of more than `max_token_length` units are not made. Of characters, the `limit_alphabet`
    most frequent and those of `alphabet` are kept; the others are unknown. `seed_vocab` is a GGUF, by path or name,
    whose tokens and merges come first, with `seed_overrides` in place of some of its keys, as in `Tokenizer.from_gguf`.

    `progress` is called with a `Progress` whose step is "read", in bytes of files, or "merge", in merges. `skipped`
    counts, by kind, files left out of directories. The first `record` merges are explained in `steps` of the result:
    the words as they were cut, the runners-up, and how ties fell.

    The result depends only on the texts and options; of equally frequent pairs, `ties` says which is merged first,
    "lowest-ids", "lexicographic" or "first-seen", and only with the last, the order of the texts matters. The compiled
    engine counts words on `threads` threads, by default one for each processor. With `ray`, the address of a cluster or
    "local", so many of its processes count them, which must all find the files at the same paths.

    Raises `ValueError` for options that do not go together, `CorpusError` for texts that cannot be read. Warns
    (`GGUFWarning`) if the corpus has no text.

    >>> train(["low lower lowest"], vocab_size=258).merges
    [('l', 'o'), ('lo', 'w')]
    """
    _check((special, user_defined), vocab_size, ties, errors, min_frequency, max_token_length, threads)
    warn_if_slow()
    seed = None if seed_vocab is None else Seed(locate(seed_vocab), seed_overrides or {})
    vocabulary = None if seed is None else _opened(seed)
    split = _splitting(vocabulary, pre, units)
    certain = frozenset(alphabet)
    _check_alphabet(split, certain, limit_alphabet)
    _check_seed(seed, unk, end_of_word, certain)
    named = (*special, *(token for token in (bos, eos) if token is not None))
    added = Added(list(dict.fromkeys(named)), list(user_defined), unk)
    form = _form(split, added, bos, eos, end_of_word, vocabulary)
    report = None if progress is None else lambda done, total: progress(Progress("read", done, total))
    reading = CorpusOptions(field, errors, report, skipped)
    texts, counts = _sources(corpus, ray, reading, (split, added, vocabulary), threads, word_counts or {})
    words = _counted(texts, form, cutter(added, vocabulary), counts, seed is None and not record, threads)
    if vocabulary is None:
        draft = base(form, added, words.counts, limit_alphabet, certain)
    else:
        draft = seeded(vocabulary, added)
    size = vocab_size + (unk is not None)
    if len(draft.tokens) > size:
        raise ValueError(
            f"a vocabulary of {vocab_size} has no room for the {len(draft.tokens) - (unk is not None)} tokens that "
            f"come before all merges{'' if split.units == 'bytes' else '; limit_alphabet=N makes them fewer'}"
        )
    rules = Rules(size, ties, min_frequency, max_token_length)
    learned = _learn(draft, form, words, rules, merge_end_of_word, seed, progress, record)
    if not learned.word_count:
        warnings.warn(
            "the corpus has no text, so no merge was learned", GGUFWarning, stacklevel=frames_to_caller()
        )
    return learned


def _opened(seed: Seed) -> Vocabulary:
    vocabulary = load(seed.model.opened(), seed.overrides)[0]
    emit_warnings(vocabulary)
    return vocabulary


def _form(
    split: Splitting,
    added: Added,
    bos: str | None,
    eos: str | None,
    end_of_word: str | None,
    seed: Vocabulary | None,
) -> Form:
    with IMPORT_LOCK:
        from ...models import model_with_pre

    first = next(iter(added.special), None)
    return Form(
        split,
        end_of_word=end_of_word,
        unk=added.unk,
        bos=first if bos is None else bos,
        eos=first if eos is None else eos,
        adds_bos=bos is not None,
        model=model_with_pre(split.pre).name if seed is None else seed.model,
    )


class _Words(NamedTuple):
    """Words with their counts: in Python, or in the compiled engine if all of them are bytes."""

    counts: Mapping[str, int]
    counter: Any = None  # a native.WordCounter; `counts` is empty then


def _sources(
    corpus: Iterable[object],
    ray: str | None,
    reading: CorpusOptions,
    counting: tuple[Splitting, Added, Vocabulary | None],
    workers: int | None,
    word_counts: Mapping[str, int],
) -> tuple[Iterator[str], Iterable[Mapping[str, int]]]:
    """Texts whose words are counted here, and the counts of others, which come behind them."""
    for word, count in word_counts.items():
        if not 0 <= count <= _MOST_COUNTED or not word:
            raise ValueError(f"word_counts: {printable(word)} has the count {count}")
    if ray is None:
        return read_training_texts(corpus, reading), [word_counts]
    from .ray_counting import counted_on_ray

    every = list(corpus)
    here = [item for item in every if not isinstance(item, os.PathLike)]
    paths = [os.fsdecode(item) for item in every if isinstance(item, os.PathLike)]
    counts = counted_on_ray(ray, paths, reading, counting, workers)
    return read_training_texts(here, reading._replace(skipped=None)), chain(counts, [word_counts])


def _counted(
    texts: Iterable[str],
    form: Form,
    cut: Callable[[str], Iterable[str]] | None,
    more: Iterable[Mapping[str, int]],
    is_new: bool,
    threads: int | None,
) -> _Words:
    split = form.splitting
    if split.listed is None or not is_there():
        counts = count_words(texts, split, cut)
        for some in more:
            for word, count in some.items():
                counts[word] = counts.get(word, 0) + count
    else:
        counter = count_natively(texts, split, cut, threads)
        for some in more:
            add_counts(counter, some)
        if split.units == "bytes" and is_new and form.end_of_word is None and split.entry is not None:
            return _Words({}, counter)
        counts = {word: count for word, count in counter.words() if not split.drops(word)}
    if form.end_of_word is not None and any(form.end_of_word in word for word in counts):
        raise ValueError(
            f"the end-of-word symbol {printable(form.end_of_word)} occurs in the texts; choose another one"
        )
    return _Words(counts)


def _check(
    added: tuple[Sequence[str], Sequence[str]],
    vocab_size: int,
    ties: str,
    errors: str,
    min_frequency: int,
    max_token_length: int | None,
    threads: int | None,
) -> None:
    for name, given in zip(("special", "user_defined"), added):
        if isinstance(given, (str, bytes)):
            raise TypeError(f"{name} must be a list of texts, such as [{given!r}]")
    if ties not in TIES:
        raise ValueError(f"ties are {', '.join(TIES)}, not {printable(ties)}")
    if errors not in _ERRORS:
        raise ValueError(f"errors are {' or '.join(_ERRORS)}, not {printable(errors)}")
    for name, value, most in (
        ("vocab_size", vocab_size, _MOST_TOKENS),
        ("min_frequency", min_frequency, _MOST_COUNTED),
        ("max_token_length", 1 if max_token_length is None else max_token_length, _MOST_COUNTED),
        ("threads", 1 if threads is None else threads, _MOST_THREADS),
    ):
        if integer(name, value, least=1) > most:
            raise ValueError(f"{name} is {value}; it must be {most} or less")


def _check_seed(
    seed: Seed | None, unk: str | None, end_of_word: str | None, alphabet: frozenset[str]
) -> None:
    if seed is not None and (unk is not None or end_of_word is not None or alphabet):
        raise ValueError(
            "a seed vocabulary keeps its form: unk, end_of_word and alphabet cannot be given with it"
        )


def _check_alphabet(split: Splitting, certain: frozenset[str], limit: int | None) -> None:
    if limit is not None:
        integer("limit_alphabet", limit, least=0)
    if (limit is not None or certain) and split.units == "bytes":
        raise ValueError("an alphabet is for units='chars'; with bytes, all 256 are kept")
    if any(len(char) != 1 for char in certain):
        raise ValueError("the alphabet must be single characters")


def _splitting(seed: Vocabulary | None, pre: str | None, units: str | None) -> Splitting:
    if seed is None:
        return splitting("gpt-2" if pre is None else pre, units)
    if not seed.tokenizer_model.has_pre_tokenizer:
        raise ValueError(
            f"{seed.path} is {seed.model} ({seed.tokenizer_model.description}); only byte pair encoding is trained"
        )
    if seed.tokenizer_model.has_sequences:
        raise ValueError(f"{seed.path}: vocabularies of DNA models cannot be continued")
    if pre is not None and pre != seed.pre:
        raise ValueError(f"{seed.path} has the pre-tokenizer {seed.pre}; its merges do not fit {pre}")
    return splitting(seed.pre, units)


def _learn(
    draft: Draft,
    form: Form,
    words: _Words,
    rules: Rules,
    merge_end_of_word: bool,
    seed: Seed | None,
    progress: OnProgress | None,
    record: int,
) -> TrainedVocabulary:
    """The whole vocabulary, learned in the compiled engine if it is there."""
    tokens, attributes, merges, vocabulary = draft
    first = len(tokens)
    forbidden = frozenset(
        {token for token, attribute in zip(tokens, attributes) if not attribute & NORMAL}
        | {form.end_of_word or ""}
    )
    ids = {token: index for index, token in enumerate(tokens) if token not in forbidden}
    if form.end_of_word is not None:
        ids[form.end_of_word] = tokens.index(form.end_of_word)
    raw = [token_bytes(token, attribute, form) for token, attribute in zip(tokens, attributes)]
    known = [(ids[a], ids[b], ids[a + b]) for a, b in merges if a in ids and b in ids and a + b in ids]
    rules = rules._replace(forbidden=forbidden)
    make = CompiledLearner if is_there() else Learner
    learner = make(tokens, list(raw), list(map(len, tokens)), known, rules)
    steps: list[TrainingStep] = []
    if isinstance(learner, CompiledLearner) and words.counter is not None:
        word_count = learner.add_counted(words.counter, [ids[char] for char in BYTE_CHARS])
    else:
        word_count = len(words.counts)
        ending = form.end_of_word if merge_end_of_word else None
        parts = list(_parts(words.counts, form, ending, ids, vocabulary))
        if record:
            watched = list(tokens)
            second = Learner(watched, list(raw), list(map(len, tokens)), known, rules)
            second.add_words([list(part) for part, _ in parts], [count for _, count in parts])
            steps = Recorder(second, watched, rules.ties, record).record()
        learner.add_words([part for part, _ in parts], [count for _, count in parts])
    most = rules.vocab_size - first
    learned = learner.learn(
        None if progress is None else lambda done: progress(Progress("merge", done, most, "merges"))
    )
    trace = [
        LearnedStep(tokens[left], tokens[right], count, tokens[token])
        for left, right, count, token in learned
    ]
    return TrainedVocabulary(
        tokens,
        attributes + [NORMAL] * (len(tokens) - first),
        merges + [(step.left, step.right) for step in trace],
        trace,
        form,
        word_count,
        seed,
        steps,
    )


def _parts(
    counts: Mapping[str, int], form: Form, ending: str | None, ids: Mapping[str, int], seed: Vocabulary | None
) -> Iterator[tuple[list[int], int]]:
    """Words as ids of symbols, with their counts; cut at symbols that are not tokens, since no pair crosses them."""
    encoder = WordEncoder(seed.pre_tokenizer, seed.token_to_id, seed.merges) if seed is not None else None
    for word, count in counts.items():
        symbols = form.splitting.symbols(word)
        if encoder is not None:
            written = "".join(symbols)
            symbols = [written] if encoder.is_whole(written) else encoder.merged(symbols)
        if ending is not None:
            symbols.append(ending)
        part: list[int] = []
        for symbol in symbols:
            token = ids.get(symbol)
            if token is not None:
                part.append(token)
                continue
            yield part, count
            part = []
        yield part, count
