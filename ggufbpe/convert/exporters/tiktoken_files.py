r"""Exports a vocabulary to tiktoken: a file of ranks, and a JSON file with the other arguments of `tiktoken.Encoding`.

tiktoken has no merges. It joins the two neighbours whose joined bytes are the token of lowest rank, and its ranks are
its ids. So a vocabulary is expressible if its ids follow the order of its merges, as they do when both come from one
training run; otherwise `renumber` assigns new ids, with a table from them to the model's.

The ids are then the same for every text if, for each two tokens that can come to stand side by side and make a third,
there is a merge. That holds

- where every way of cutting a token into two tokens is a merge (Llama 3, whose merges were made from ranks), or -
where each token comes from older ones, and merging its own text gives the token (any training run): before a
token's turn, a stretch of its text between two borders is split as it is when it stands alone.

Where neither holds, the export reports an incompatibility, and analysis/conversion/parity.py measures its effect.

The caller adds BOS and EOS, and says which special tokens are allowed in a text.

Source: tiktoken/load.py (load_tiktoken_bpe) and src/lib.rs (byte_pair_encode) of openai/tiktoken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise

from ..._util.errors import printable
from ...models.bpe.merge import BYTE_CHARS, CHAR_BYTES, WordEncoder
from ...models.pieces import quoted_token
from ...models.vocabulary import CONTROL, UNKNOWN, Vocabulary
from .. import incompatibilities
from ..export_formats import Export, json_file, require_expressible
from ..incompatibilities import Incompatibility
from ..portable_patterns import NotExpressibleError, one_regex

RANKS, SIDE = "ranks.tiktoken", "ranks.tiktoken.json"

Pairs = list[tuple[str, str]]


def to_tiktoken(vocabulary: Vocabulary, name: str, *, renumber: bool = False) -> Export:
    """The files "ranks.tiktoken" and "ranks.tiktoken.json" of an encoding called `name`.

    The second has `pat_str` and `special_tokens` for `tiktoken.Encoding`; `always_special`, the tokens that are
    special even in text that is not trusted; `bos_id` and `eos_id`, to be added where they are not null; and
    `model_ids`, the model's id for each of tiktoken's, null where they are the same.

    Raises `NotExpressibleError` if tiktoken cannot do what the vocabulary says and, without `renumber`, if its ids
    are in another order than its merges.
    """
    require_expressible(vocabulary, "tiktoken")
    return _Ranks(incompatibilities.listed_out(vocabulary), renumber).export(name)


def mergeable_by_rank(vocabulary: Vocabulary, renumber: bool = False) -> tuple[str, incompatibilities.Merges]:
    """The one pattern and the merges of a vocabulary that tiktoken can run; `NotExpressibleError` if it cannot."""
    if vocabulary.tokenizer_model.drops_white_space:
        raise NotExpressibleError(f"the model {vocabulary.model} drops white space, and tiktoken keeps it")
    if not vocabulary.pre_tokenizer.byte_encode:
        raise NotExpressibleError(
            f"the tokens of {vocabulary.pre} are characters, with byte fallback, and "
            "tiktoken merges only bytes"
        )
    pattern = one_regex(vocabulary.pre_tokenizer)
    merges = incompatibilities.usable_merges(vocabulary)
    results = [vocabulary.token_to_id[left + right] for left, right in merges.pairs]
    falls = sum(before > after for before, after in pairwise(results))
    if falls and not renumber:
        raise NotExpressibleError(
            f"the ids of the tokens are not in the order of their merges ({falls} times a merge makes a token "
            "of a lower id than the one before), and tiktoken merges by id; renumber=True gives them other ids, "
            "with a table back to the model's"
        )
    return pattern, merges


class _Ranks:
    """The tokens that tiktoken gets, in the order of their ranks."""

    def __init__(self, vocabulary: Vocabulary, renumber: bool) -> None:
        self._vocabulary = vocabulary
        self._pattern, self._merges = mergeable_by_rank(vocabulary, renumber)
        self._encoder = WordEncoder(
            vocabulary.pre_tokenizer, vocabulary.token_to_id, [f"{a} {b}" for a, b in self._merges.pairs]
        )
        self._renumbered = renumber
        self._unmade: dict[
            int, list[str]
        ] = {}  # tokens that only whole words become: how merging splits them
        order = self._by_merges() if renumber else sorted(self._taken)
        self.ranks = {token: rank for rank, token in enumerate(order)} if renumber else {t: t for t in order}

    @cached_property
    def _taken(self) -> set[int]:
        """The tokens that merging or, with `ignore_merges`, whole words can give; control tokens only the first."""
        vocabulary = self._vocabulary
        special = set(vocabulary.special_token_ids)
        taken = set()
        for text, token in vocabulary.token_to_id.items():
            if not CHAR_BYTES.keys() >= set(text) or vocabulary.tokens[token] != text:
                continue
            parts = self._encoder.merged(list(text))
            whole = vocabulary.pre_tokenizer.ignore_merges and token not in special
            if whole or len(parts) == 1:
                taken.add(token)
            if whole and len(parts) > 1:
                self._unmade[token] = parts
        return taken

    def _by_merges(self) -> list[int]:
        known = self._vocabulary.token_to_id
        results = [known[left + right] for left, right in self._merges.pairs]
        single = sorted(known[char] for char in BYTE_CHARS if char in known)
        merged = dict.fromkeys([*single, *results, *sorted(self._taken)])
        return [token for token in merged if token in self._taken]

    # ---- files ----------------------------------------------------------------------------------

    def export(self, name: str) -> Export:
        """The files, and what they cannot do."""
        vocabulary, attributes = self._vocabulary, self._vocabulary.attributes
        new_ids = dict(self.ranks)
        for token in vocabulary.special_token_ids:
            new_ids.setdefault(token, len(new_ids) if self._renumbered else token)
        bos = vocabulary.special_ids["bos"] if vocabulary.add_bos else None
        eos = vocabulary.special_ids["eos"] if vocabulary.add_eos else None
        special = {vocabulary.tokens[token]: new_ids[token] for token in vocabulary.special_token_ids}
        always = [
            vocabulary.tokens[t]
            for t in vocabulary.special_token_ids
            if not attributes[t] & (CONTROL | UNKNOWN)
        ]
        side = {
            "name": name,
            "pat_str": self._pattern,
            "special_tokens": special,
            "always_special": always,
            "bos_id": None if bos is None else new_ids.get(bos),
            "eos_id": None if eos is None else new_ids.get(eos),
            "model_ids": sorted(new_ids, key=new_ids.__getitem__) if self._renumbered else None,
        }
        lines = b"".join(self._lines())
        limits = tuple(self._limits())
        return Export({RANKS: lines, SIDE: json_file(side)}, limits)

    def _lines(self) -> Iterator[bytes]:
        from base64 import b64encode

        for token, rank in self.ranks.items():
            data = bytes(map(CHAR_BYTES.__getitem__, self._vocabulary.tokens[token]))
            yield b"%s %d\n" % (b64encode(data), rank)

    # ---- limits ---------------------------------------------------------------------------------

    def _limits(self) -> Iterator[Incompatibility]:
        vocabulary = self._vocabulary
        yield from incompatibilities.dropped_merges(self._merges)
        yield from incompatibilities.missing_bytes(vocabulary, "tiktoken cannot encode a text that has one")
        yield from self._missing_merges()
        yield from self._ties()
        yield from incompatibilities.overlapping_tokens(vocabulary)
        yield from _prefixes([vocabulary.tokens[token] for token in vocabulary.special_token_ids])
        yield from incompatibilities.kept_spaces(vocabulary, "tiktoken")
        if vocabulary.tokenizer_model.has_sequences:
            yield Incompatibility("dna", "sequences between <dna> and </dna> are encoded like any other text")

    def _missing_merges(self) -> Iterator[Incompatibility]:
        """Tokens that tiktoken may make from two others for which there is no merge."""
        known, ranks, pairs = self._vocabulary.token_to_id, self.ranks, set(self._merges.pairs)
        results = [ranks.get(known[a + b], -1) for a, b in self._merges.pairs]
        older = all(
            max(ranks.get(known[part], result) if len(part) > 1 else -1 for part in pair) < result
            for pair, result in zip(self._merges.pairs, results)
            if result >= 0
        )
        ordered = older and all(a <= b for a, b in pairwise(results))
        if ordered:
            cuts = {token: [(parts[0], parts[1])] for token, parts in self._unmade.items() if len(parts) == 2}
        else:
            texts = {token: self._vocabulary.tokens[token] for token in ranks}
            cuts = {t: [(x[:at], x[at:]) for at in range(1, len(x))] for t, x in texts.items()}
        missing = [
            token
            for token, ways in cuts.items()
            if any(known.get(a) in ranks and known.get(b) in ranks and (a, b) not in pairs for a, b in ways)
        ]
        if missing:
            yield Incompatibility(
                "pairs_without_merges",
                f"{len(missing)} tokens that tiktoken can also make from two tokens for which the model has no merge, "
                f"such as {quoted_token(self._vocabulary, missing[0])}",
                len(missing),
            )

    def _ties(self) -> Iterator[Incompatibility]:
        """Tokens with several merges, of which llama.cpp may apply one that is not the first in the text."""
        by_result: defaultdict[str, Pairs] = defaultdict(list)
        for pair in self._merges.pairs:
            by_result["".join(pair)].append(pair)
        ties = [
            text
            for text, pairs in by_result.items()
            if len(pairs) > 1
            and any(
                first[1] == second[0] for number, second in enumerate(pairs) for first in pairs[number + 1 :]
            )
        ]
        if ties:
            token = self._vocabulary.token_to_id[ties[0]]
            yield Incompatibility(
                "order_of_equal_tokens",
                f"{len(ties)} tokens that overlap themselves and have several merges, such as "
                f"{quoted_token(self._vocabulary, token)}: in a repetitive text, llama.cpp may join another pair first "
                "than tiktoken",
                len(ties),
            )


def _prefixes(texts: Iterable[str]) -> Iterator[Incompatibility]:
    """Special tokens that begin with another one; which of the two tiktoken takes is random."""
    known = set(texts)
    prefixed = [text for text in known if any(text[:length] in known for length in range(1, len(text)))]
    if prefixed:
        yield Incompatibility(
            "special_tokens_that_begin_alike",
            f"{len(prefixed)} special tokens, such as {printable(min(prefixed), 40)}, begin with the text of another; "
            "tiktoken takes either, llama.cpp the longer",
            len(prefixed),
        )
