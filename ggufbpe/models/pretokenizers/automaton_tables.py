"""Encodes a registry entry as the numbers from which the compiled splitter builds its automata (NFA, then DFA).

The formats are those of `src/split/automaton.h` (programs) and `src/bind_split.cpp` (sets).
"""

from __future__ import annotations

from .pattern import CLASS_LETTERS, Ahead, Chars, CharSet, Choice, Node, Sequence, char_sets, options, parse
from .registry import PreTokenizer, Stage

_CHARS, _SEQUENCE, _CHOICE, _REPEAT, _AHEAD = range(5)

Rule = tuple[list[int], str, list[int], list[int]]


def tables(entry: PreTokenizer) -> tuple[list[list[int]], list[Rule]]:
    """The sets of an entry, and for each stage: its program, its step, and the sets and the program the step needs."""
    sets: dict[CharSet, int] = {}
    stages = [_stage(stage, sets) for stage in entry.stages]
    return [_numbers(chars) for chars in sets], stages


def _stage(stage: Stage, sets: dict[CharSet, int]) -> Rule:
    tree = parse(stage.rule)
    program = _program(tree, sets)
    if stage.step is None:
        return program, "", [], []
    if stage.step == "letters_joined_by_spaces":
        needed = [*char_sets(parse(r"\p{L}")), *char_sets(parse(" "))]
        contraction = options(tree)[0]
        return program, stage.step, [_index(s, sets) for s in needed], _program(contraction, sets)
    return program, stage.step, [_index(s, sets) for option in options(tree) for s in char_sets(option)], []


def _index(chars: CharSet, sets: dict[CharSet, int]) -> int:
    return sets.setdefault(chars, len(sets))


def _program(node: Node, sets: dict[CharSet, int]) -> list[int]:
    if isinstance(node, Chars):
        return [_CHARS, _index(node.set, sets)]
    if isinstance(node, (Sequence, Choice)):
        code, parts = (_SEQUENCE, node.items) if isinstance(node, Sequence) else (_CHOICE, node.options)
        return [code, len(parts), *(number for part in parts for number in _program(part, sets))]
    if isinstance(node, Ahead):
        if not isinstance(node.item, Chars):
            raise ValueError("only a single code point can be looked ahead at")
        return [_AHEAD, int(node.negated), _index(node.item.set, sets)]
    most = -1 if node.most is None else node.most
    return [_REPEAT, node.least, most, *_program(node.item, sets)]


def _numbers(chars: CharSet) -> list[int]:
    numbers = [len(chars.terms)]
    for term in chars.terms:
        classes = sum(1 << CLASS_LETTERS.index(letter) for letter in term.classes)
        numbers += [int(term.negated), classes, len(term.ranges)]
        numbers += [point for ends in term.ranges for point in ends]
    return numbers
