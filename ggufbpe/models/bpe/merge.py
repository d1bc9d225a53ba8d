"""Merges the symbols of a word and turns them into ids: byte pair encoding in the reference engine.

A word starts as symbols of one character each. The pair of neighbours whose merge has the lowest rank becomes
one symbol, the leftmost first among equal ranks, until no pair has a merge. A symbol that is not a token
falls back to its bytes (src/llama-vocab.cpp: llm_tokenizer_bpe_session).

Nothing is cached here; word_cache.py does that.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ..._util.spelling import BYTE_TOKENS, SPACE
from ...gguf.merges import parts
from ...native.lazy_strings import as_dict, finder, made_once
from ..pretokenizers.registry import PreTokenizer

# GPT-2 writes each byte as one printable character: printable ones stand for themselves, the others follow from
# U+0100 (src/unicode.cpp: unicode_byte_to_utf8_map). BYTE_CHARS[byte] is the character.
_PRINTABLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_CHARS = "".join(chr(b) if b in _PRINTABLE else chr(256 + _OTHERS.index(b)) for b in range(256))
CHAR_BYTES = {char: byte for byte, char in enumerate(BYTE_CHARS)}

NO_MERGE = (1 << 31) - 1  # above every rank
_PAIR_CACHE = 1 << 20  # pairs, about 150 MB of them
_LONGEST_WORD = 1 << 27  # symbols; merging one takes 60 bytes a symbol
_QUEUE_FROM = 64  # symbols; below that, scanning all ranks is faster than a queue


def byte_level(word: str) -> str:
    """`word` in GPT-2's alphabet, one character a byte of its UTF-8.

    >>> byte_level(" é")
    'ĠÃ©'
    """
    if word.isascii():
        return word.translate(BYTE_CHARS)
    return word.encode("utf-8", "surrogatepass").decode("latin-1").translate(BYTE_CHARS)


def results(merges: Sequence[str]) -> list[str]:
    """Return the text that each merge makes.

    >>> results(["a b", "ab c"])
    ['ab', 'abc']
    """
    return ["".join(parts(merge)) for merge in merges]


def texts_made_by(merges: Sequence[str]) -> frozenset[str]:
    """Return the texts that merges make, found once for the merges of a vocabulary."""
    return made_once(merges, _texts_made_by)


def _texts_made_by(merges: Sequence[str]) -> frozenset[str]:
    return frozenset(results(merges))


class PairRanks(dict[tuple[str, str], int]):
    """The rank of a pair of symbols, `NO_MERGE` for pairs without one; the first of two equal merges counts.

    llama.cpp cuts a merge at its first space, not counting one that begins it, and looks pairs up. Cutting all
    of them takes longer than opening the file, so the merges are kept as they are, with their rank, and a
    pair is cached when it is first looked up.

    >>> ranks = PairRanks(["a b", "ab c", "a b"])
    >>> ranks["a", "b"], ranks["ab", "c"], ranks["b", "c"] == NO_MERGE
    (0, 1, True)
    """

    def __init__(self, merges: Sequence[str]) -> None:
        super().__init__()
        self._index = finder(merges)

    def __missing__(self, pair: tuple[str, str]) -> int:
        if len(self) >= _PAIR_CACHE:
            self.clear()
        self[pair] = rank = self.find(*pair)
        return rank

    def find(self, left: str, right: str) -> int:
        """The rank, looked up."""
        # The left part of a merge has a space only at its beginning.
        rank = -1 if " " in left and " " in left[1:] else self._index(f"{left} {right}")
        return NO_MERGE if rank < 0 else rank


class WordEncoder:
    """Encodes single words by a vocabulary's ranks, tokens and the flags of its pre-tokenizer."""

    drops_bytes = True  # bytes without a token are dropped

    def __init__(self, entry: PreTokenizer, token_to_id: Mapping[str, int], merges: Sequence[str]) -> None:
        self._entry = entry
        self._token_to_id = as_dict(token_to_id)
        self.ranks = PairRanks(merges)

    def with_ranks(self, entry: PreTokenizer, ranks: PairRanks) -> WordEncoder:
        """An encoder of the same tokens with other ranks and another pre-tokenizer's flags."""
        other = WordEncoder(entry, self._token_to_id, ())
        other.ranks = ranks
        return other

    def ids(self, word: str) -> tuple[int, ...]:
        """The ids of `word`, as it stands in the text."""
        return tuple(token for token, _, _ in self.ids_with_ends(word))

    def ids_with_ends(self, word: str) -> list[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the UTF-8 of `word`."""
        byte_encode = self._entry.byte_encode
        written = self.written(word)
        _check_length(len(written))
        result: list[tuple[int, int, int]] = []
        start = -self.prepended(word)
        for symbol in [written] if self.is_whole(written) else self.merged(list(written)):
            end = start + (len(symbol) if byte_encode else len(symbol.encode("utf-8", "surrogatepass")))
            token = self._token_to_id.get(symbol)
            if token is None:
                result += [(t, start + at, start + at + 1) for t, at in self.fallback(symbol)]
            else:
                result.append((token, start, end))
            start = end
        return result if word == written or byte_encode else [(t, max(a, 0), max(b, 0)) for t, a, b in result]

    def written(self, word: str) -> str:
        """`word` as in the vocabulary: in GPT-2's alphabet, or with a space in front where it needs one."""
        if self._entry.byte_encode:
            return byte_level(word)
        return SPACE + word if self.prepended(word) else word

    def prepended(self, word: str) -> int:
        """How many bytes of UTF-8 are put before a written word (llm_tokenizer_bpe_session::tokenize)."""
        return 3 if self._entry.prepend_space and not word.startswith((SPACE, "\n")) else 0

    def merged(self, symbols: list[str]) -> list[str]:
        """The symbols after all merges. `symbols` is consumed."""
        merge = _merge_by_search if len(symbols) < _QUEUE_FROM else _merge_by_queue
        return merge(symbols, self.ranks)

    def steps(self, symbols: list[str]) -> Iterator[tuple[int, int, int]]:
        """The merges of a word one by one, for tracing: see `merge_steps`."""
        _check_length(len(symbols))
        return merge_steps(symbols, self.ranks)

    def rank(self, left: str, right: str) -> int | None:
        """The rank of a merge, None if there is none."""
        rank = self.ranks[left, right]
        return None if rank == NO_MERGE else rank

    def score(self, left: str, right: str) -> float | None:
        """The score that the rank of a merge comes from; None if there are only ranks."""
        return None

    def is_whole(self, written: str) -> bool:
        """Whether the word, written for merging, is taken as a token without merging."""
        if self._entry.ignore_merges or (self._entry.newline_runs and not written.strip("\n")):
            return written in self._token_to_id
        return False

    def fallback(self, symbol: str) -> list[tuple[int, int]]:
        """(id, byte offset in the symbol) for a symbol that is not a token; bytes without a token are dropped.

        llama.cpp looks up single bytes of the UTF-8 of a byte-level symbol, so only ASCII ones can be found;
        offsets count the bytes that the characters stand for.
        """
        known = self._token_to_id
        if self._entry.byte_encode:
            return [(known[c], at) for at, c in enumerate(symbol) if c < "\x80" and c in known]
        names = [BYTE_TOKENS[byte] for byte in symbol.encode("utf-8", "surrogatepass")]
        return [(known[name], at) for at, name in enumerate(names) if name in known]


def _check_length(symbols: int) -> None:
    """Raise an error for a word so long that the system would kill the process."""
    if symbols > _LONGEST_WORD:
        raise ValueError(
            f"the pre-tokenizer leaves a word of {symbols} characters, which takes {60 * symbols >> 30} GiB to merge; "
            f"the limit is {_LONGEST_WORD}"
        )


def _merge_by_search(symbols: list[str], pair_ranks: PairRanks) -> list[str]:
    """Merge by searching for the lowest rank each time: short words."""
    ranks = list(map(pair_ranks.__getitem__, pairwise(symbols)))
    while ranks and (lowest := min(ranks)) != NO_MERGE:
        at = ranks.index(lowest)
        symbols[at] = merged = symbols[at] + symbols.pop(at + 1)
        del ranks[at]
        if at:
            ranks[at - 1] = pair_ranks[symbols[at - 1], merged]
        if at < len(ranks):
            ranks[at] = pair_ranks[merged, symbols[at + 1]]
    return symbols


def _merge_by_queue(symbols: list[str], pair_ranks: PairRanks) -> list[str]:
    """Merge with a priority queue: long words."""
    for _ in merge_steps(symbols, pair_ranks):
        pass
    return list(filter(None, symbols))


def merge_steps(symbols: list[str], pair_ranks: PairRanks) -> Iterator[tuple[int, int, int]]:
    """(rank, left, right) of each merge, in order; left and right are places in `symbols`, before the merge.

    A priority queue of pairs over a linked list of symbols: n log n in the length of the word. After a merge the left
    place holds the result and the right one is empty, so a symbol's place is where it began.

    An item of the queue is rank and left position in one integer. It is stale if the pair at its position
    has another rank by then; each pair has its own rank.

    >>> symbols = list("abab")
    >>> [(rank, symbols[a], symbols[b]) for rank, a, b in merge_steps(symbols, PairRanks(["a b", "ab ab"]))]
    [(0, 'a', 'b'), (0, 'a', 'b'), (1, 'ab', 'ab')]
    """
    import heapq  # a file of its own, which the compiled engine never needs

    count = len(symbols)
    following = array("i", range(1, count + 1))
    before = array("i", range(-1, count - 1))
    ranks = array("i", (pair_ranks[pair] for pair in pairwise(symbols)))
    ranks.append(NO_MERGE)
    queue = [rank << 32 | at for at, rank in enumerate(ranks) if rank != NO_MERGE]
    heapq.heapify(queue)

    def update(at: int) -> None:
        right = following[at]
        ranks[at] = pair_ranks[symbols[at], symbols[right]] if right < count else NO_MERGE
        if ranks[at] != NO_MERGE:
            heapq.heappush(queue, ranks[at] << 32 | at)

    while queue:
        item = heapq.heappop(queue)
        at = item & 0xFFFFFFFF
        if ranks[at] != item >> 32:
            continue
        right = following[at]
        yield ranks[at], at, right
        symbols[at] += symbols[right]
        symbols[right] = ""
        ranks[right] = NO_MERGE
        following[at] = following[right]
        if following[at] < count:
            before[following[at]] = at
        update(at)
        if before[at] >= 0:
            update(before[at])
