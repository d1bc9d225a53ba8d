"""The merges: whether they fit the tokens, produce all of them, and in the order of their ids."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, compress, islice, pairwise, repeat
from operator import contains, gt

from ..._util.wording import counted, listed
from ...gguf.constants import TokenizerKey, TokenType
from ...gguf.merges import parts
from ...models.bpe.bpe_model import merging_alone
from ...models.bpe.merge import WordEncoder, results
from ...tokenizer import Tokenizer
from .facts import Facts
from .finding import Finding, Where
from .token_checks import bracketed, is_name

_K = TokenizerKey

_SHARE_UNREACHABLE = 0.01  # of all tokens; more than this is more than leftovers of training
_SHARE_OF_WHOLE_WORDS = 0.1  # likewise, where words that are tokens are taken whole; Llama 3 has 0.5 %
_AT_ONCE = 256  # tokens that are merged in one call; a call for each takes three times as long
_FEW = 256  # tokens
_LEAST_ORDERED = 1000  # tokens that merges make: fewer do not show that an order is meant
_MOST_EXCHANGED = 8  # tokens; more have an order of their own
_LEAST_CACHE = 1 << 20  # bytes, of a tokenizer that encodes each word once


def merge_parts(model: Facts) -> Iterator[Finding]:
    """Merges with a part or a result that is not a token, and duplicate merges."""
    made = model.shared_result(_made)
    bad = [index for index, token in enumerate(made) if token < 0] if -1 in made else []
    if bad and model.tokens:
        shown = model.quoted_text
        left, right = parts(model.merges[bad[0]])
        missing = next(text for text in (left, right, left + right) if text not in model.ids)
        first = f"{shown(left)} + {shown(right)}, where {shown(missing)} is not one"
        yield Finding(
            "warning",
            "merges_not_in_vocabulary",
            "Tokens and merges are not from the same model."
            if len(bad) > _SHARE_UNREACHABLE * len(model.merges)
            else "Some merges join or make texts that are no tokens.",
            "What such a merge produces has no id, so it is encoded as bytes.",
            "convert the model again",
            Where(_K.MERGES, None, model.file.element_offset(_K.MERGES, bad[0])),
            {"count": len(bad), "of": len(model.merges), "merges": bad[:100]},
            f"{len(bad)} of {counted(len(model.merges), 'merge')} {'has' if len(bad) == 1 else 'have'} a part or a "
            f"result that is not a token: the first is merge {bad[0]}, {first}.",
        )
    if count := model.shared_result(_duplicate_merges):
        what = "Some merges are listed twice."
        why = "llama.cpp uses the first of each. Harmless, but a sign of a faulty conversion."
        yield Finding(
            "note",
            "duplicate_merges",
            what,
            why,
            "convert the model again",
            model.key(_K.MERGES),
            {"count": count},
            f"{counted(count, 'merge is a duplicate', 'merges are duplicates')}.",
        )


def _made(model: Facts) -> Sequence[int]:
    """Return the token that each merge makes; -1 where that, or a part, is not a token."""
    tokens, merges = model.compiled(_K.LIST), model.compiled(_K.MERGES)
    if tokens is not None and merges is not None:
        tokens.strings.index()
        return array("i", merges.strings.made_tokens(tokens.strings))
    ids = model.ids
    sides = map(parts, model.merges)
    return [ids.get(left + right, -1) if left in ids and right in ids else -1 for left, right in sides]


def _duplicate_merges(model: Facts) -> int:
    """Return how many merges repeat an earlier one."""
    if len(model.merged) == len(model.merges):  # equal merges have equal results
        return 0
    return len(model.merges) - len(set(model.merges))


def exchanged_tokens(model: Facts) -> Iterator[Finding]:
    """A few tokens whose ids do not ascend with the merges that make them, as those of all other tokens do."""
    found = model.shared_result(_out_of_order)
    if not found:
        return
    shown = listed([f"{index} ({model.quoted(index)})" for index in found], len(found), shown=str)
    yield Finding(
        "warning",
        "exchanged_tokens",
        "Some tokens seem to have exchanged their ids.",
        "If they have, the model is given other words than those that the text has, and writes others than it means.",
        "compare the tokens with those of the original model (`ggufbpe diff`), and convert it again",
        model.token(found[0]),
        {"ids": found},
        f"The ids of tokens ascend with the merges that make them, except around {shown}.",
    )


def _out_of_order(model: Facts) -> list[int]:
    """Return the tokens that are out of order, and those that have their ids, ascending; none if there are many.

    In 14 of the 15 vocabularies with merges in llama.cpp's repository, the ids ascend without exception. Those of
    Gemma 4 have another order.
    """
    order = [token for token in dict.fromkeys(model.shared_result(_made)) if token >= 0]
    falls = sum(map(gt, order, islice(order, 1, None)))
    if len(order) < _LEAST_ORDERED or not 0 < falls <= _MOST_EXCHANGED:
        return []
    kept = longest_ascending(order)
    if len(order) - len(kept) > _MOST_EXCHANGED:
        return []
    found: set[int] = set()
    for before, after in pairwise([-1, *kept, len(order)]):
        if before + 1 < after:
            found.update(order[before + 1 : after])
            found.update(_places(order, before, after))
    return sorted(index for index in found if index < len(model.tokens))


def _places(order: Sequence[int], before: int, after: int) -> range:
    """Return the ids that the tokens between two places in `order` would have if all ascended one by one."""
    count = after - before - 1
    if before >= 0:
        return range(order[before] + 1, order[before] + 1 + count)
    return range(order[after] - count, order[after])


def longest_ascending(numbers: Sequence[int]) -> list[int]:
    """Return the places of the longest ascending part of different numbers that leaves out as few as possible.

    >>> longest_ascending([1, 7, 2, 3])
    [0, 2, 3]
    """
    least: list[int] = []  # the least last number of ascending parts of each length
    places: list[int] = []  # where that is
    before: list[int] = []  # for each place, the one before it in the longest part that it ends
    for place, number in enumerate(numbers):
        length = bisect_left(least, number) if least and number <= least[-1] else len(least)
        before.append(places[length - 1] if length else -1)
        if length == len(least):
            least.append(number)
            places.append(place)
        else:
            least[length], places[length] = number, place
    found = []
    at = places[-1] if places else -1
    while at >= 0:
        found.append(at)
        at = before[at]
    return found[::-1]


def unreachable(model: Facts) -> Iterator[Finding]:
    """Tokens that merging the characters of their text does not produce."""
    if not (model.merges or model.kind.algorithm == "merges") or not model.kind.is_supported:
        return
    found = _unmerged(model)
    if not found:
        return
    whole = model.entry.ignore_merges
    many = len(found) > (_SHARE_OF_WHOLE_WORDS if whole else _SHARE_UNREACHABLE) * len(model.tokens)
    texts = [model.tokens[index] for index in found]
    yield Finding(
        "warning" if many else "note",
        "unreachable_tokens",
        f"{'Many' if many else 'Some'} tokens only come out of a text as whole words"
        f"{', as if merges were missing' * many}."
        if whole
        else f"{'Many' if many else 'A few'} tokens never come out of a text{', as if merges were missing' * many}.",
        f"{model.pre} takes a word that is a token whole, without merging, so they occur as whole words, but not "
        f"as parts of words.{' Many such tokens mean that tokens and merges are not from the same model.' * many}"
        if whole
        else "Encoding never gives them. A few may be left over from training or were added later; many mean that "
        "tokens and merges are not from the same model, or that the model needs a pre-tokenizer that ignores merges "
        "for whole words, as llama-bpe does.",
        "convert the model again" if many else "nothing to do",
        model.token(found[0]),
        {"count": len(found), "ids": found[:100], "texts": texts[:100]},
        f"Merging does not produce {counted(len(found), 'token')}: {listed(found, len(found), shown=model.quoted)}.",
    )


def _unmerged(model: Facts) -> list[int]:
    """The normal tokens that merging does not produce."""
    normal = int(TokenType.NORMAL)
    return [index for index in model.shared_result(_unmerged_of_any_type) if model.type_of(index) == normal]


def _unmerged_of_any_type(model: Facts) -> list[int]:
    """The tokens that merging does not produce; by the compiled engine if there is one."""
    names = {index for index in bracketed(model) if is_name(model.tokens[index])}
    tokens = [index for index, size in enumerate(map(len, model.tokens)) if size > 1 and index not in names]
    if model.tokenizer is None or model.tokenizer.engine != "native":
        return _unmerged_in_python(model, tokens)
    # which that tokenizer does not take whole
    lines = set(compress(range(len(model.tokens)), map(contains, model.tokens, repeat("\n"))))
    cut = [index for index in tokens if index in lines] if lines else []
    tokens = [index for index in tokens if index not in lines] if cut else tokens
    merging = Tokenizer(merging_alone(model.tokenizer.vocabulary), cache_bytes=_LEAST_CACHE)
    between = merging.encode("\n", add_special=False)
    found: list[int] = []
    for start in range(0, len(tokens), _AT_ONCE):
        some = tokens[start : start + _AT_ONCE]
        texts = [model.tokens[index] for index in some]
        # the ids of all lines are those of the tokens only if each line is one token
        together = merging.encode("\n".join([*texts, ""]), add_special=False)
        if together != list(chain.from_iterable(zip(some, *map(repeat, between)))):
            merged = merging.encode_batch(texts, add_special=False)
            found += [index for index, ids in zip(some, merged) if ids != [index]]
    return sorted([*found, *_unmerged_in_python(model, cut)])


def _unmerged_in_python(model: Facts, tokens: list[int]) -> list[int]:
    """Those of `tokens` that merging does not produce."""
    if not tokens:
        return []
    merges = model.merges
    if len(tokens) < _FEW:  # then only those merges are looked up of which something is in these tokens
        texts = [model.tokens[index] for index in tokens]
        within = {text[a:b] for text in texts for a, b in combinations(range(len(text) + 1), 2)}
        merges = [merge for merge, result in zip(merges, results(merges)) if result in within]
    encoder = WordEncoder(model.entry, model.ids, merges)
    return [index for index in tokens if encoder.merged(list(model.tokens[index])) != [model.tokens[index]]]
