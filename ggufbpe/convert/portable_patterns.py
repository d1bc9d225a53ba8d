r"""Writes a registry's pre-tokenizer as regular expressions for other engines that find the same words in every text.

Hugging Face's `tokenizers` runs a list of regular expressions, each on the pieces left by those before, and keeps
unmatched text as a piece, as llama.cpp does. So each stage is one regular expression (`oniguruma`). The steps of
splitter.py, which for speed are not patterns, can be written as such for an engine that backtracks.

tiktoken runs one regular expression (`one_regex`) and drops what it does not match. Stages that take out runs of code
points become alternatives: each works on its own universe of code points, and takes any other for the end of the
text.

An engine may still give up on a run of hundreds of thousands of characters; each has its limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..models.pretokenizers.pattern import Chars, Node, Repeat, always_matches, char_sets, options, parse
from ..models.pretokenizers.registry import PreTokenizer, Stage
from ..models.pretokenizers.splitter import splitter
from .code_points import ALL, Ranges, bracket, difference, emit, intersection, ranges


class NotExpressibleError(ValueError):
    """A format cannot express what a vocabulary does; the message says why, and what to do."""


def oniguruma(entry: PreTokenizer) -> list[str]:
    """A regular expression in Oniguruma's syntax for each stage, to be run in order.

    Both matches and the text between them are pieces; an empty match cuts.
    """
    return [_stage(stage) for stage in entry.stages if stage.step != "blocks_of_white_space"]


def _stage(stage: Stage) -> str:
    if stage.step is None or stage.step == "letters_joined_by_spaces":
        return _written(parse(stage_pattern(stage)))
    run = parse(stage.rule)
    members = bracket(ranges(next(char_sets(run))))
    if stage.step == "digit_groups":  # a cut after each group, where the groups are counted from the end
        return f"(?<={members})(?=(?:{members}{{3}})*(?!{members}))"
    if stage.step == "thousands":
        return f"(?=(?:{members}{{3}})+(?!{members}))"
    assert stage.step == "trailing_white_space", stage.step
    return rf"(?<!{members}){members}+\z"


def stage_pattern(stage: Stage) -> str:
    """The pattern of a stage, including the rule of a step that a backtracking engine does not need."""
    return stage.pattern if stage.step == "letters_joined_by_spaces" else stage.rule


def _written(node: Node) -> str:
    return "|".join(text for option in options(node) if (text := emit(option)) is not None)


# ---- all stages in one ----------------------------------------------------------------------------------


def one_regex(entry: PreTokenizer) -> str:
    """One regular expression, for Rust's fancy-regex, whose matches are the words of every text.

    Raises `NotExpressibleError` if the stages cannot be combined into one.
    """
    stages = [stage for stage in entry.stages if stage.step != "blocks_of_white_space"]
    if any(stage.step not in (None, "letters_joined_by_spaces") for stage in stages):
        raise _not_one(entry, "one of them groups digits or cuts off white space by its place in a run")
    return "|".join(_tiling(entry, [parse(stage_pattern(stage)) for stage in stages], ALL))


def _tiling(entry: PreTokenizer, rules: list[Node], universe: Ranges) -> Iterator[str]:
    """Alternatives whose matches are the pieces of every text of code points in `universe`."""
    first, *rest = rules
    if rest:
        for members, most in _runs(entry, first):
            part = intersection(members, universe)
            universe = difference(universe, part)
            if part and most is None:
                yield from _tiling(entry, rest, part)
            elif part:
                _require_whole(entry, rest, part, most or 1)
                yield bracket(part) + ("" if most == 1 else f"{{1,{most}}}")
        if universe:
            yield from _tiling(entry, rest, universe)
        return
    texts = [text for option in options(first) if (text := emit(option, universe)) is not None]
    yield from texts
    if not texts:
        yield bracket(universe) + "+"
    elif not always_matches(first):
        yield f"(?:(?!{'|'.join(texts)}){bracket(universe)})+"


def _runs(entry: PreTokenizer, rule: Node) -> list[tuple[Ranges, int | None]]:
    """The sets of a stage that only takes out runs of code points, each with the longest run taken."""
    runs: list[tuple[Ranges, int | None]] = []
    taken: Ranges = ()
    for option in options(rule):
        most: int | None = 1
        if isinstance(option, Repeat) and option.least == 1:
            most = option.most
            option = option.item
        if not isinstance(option, Chars):
            raise _not_one(entry, "an early one takes more than runs of certain characters")
        members = ranges(option.set)
        if intersection(members, taken):
            raise _not_one(entry, "the runs of an early one can begin in different ways")
        taken = tuple(sorted(taken + members))
        runs.append((members, most))
    return runs


def _require_whole(entry: PreTokenizer, rest: list[Node], part: Ranges, most: int) -> None:
    """Refuse if a later stage cuts what an earlier one took; tried with a character of each kind."""
    sets = [ranges(chars) for rule in rest for chars in char_sets(rule)]
    kinds: list[Ranges] = [part]
    for members in sets:
        kinds = [
            kind
            for whole in kinds
            for kind in (intersection(whole, members), difference(whole, members))
            if kind
        ]
    some = [chr(kind[0][0]) for kind in kinds]
    words = splitter(entry).words
    for count in range(1, most + 1):
        if any(len(words("".join(chars))) > 1 for chars in product(some, repeat=count)):
            raise _not_one(entry, "a later one cuts what an earlier one took")


def _not_one(entry: PreTokenizer, why: str) -> NotExpressibleError:
    return NotExpressibleError(
        f"the pre-tokenizer {entry.name} splits in {len(entry.stages)} stages that no single regular expression "
        f"can do ({why}), and tiktoken has only one"
    )
