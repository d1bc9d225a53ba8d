"""Filters and methods of arrays and objects, as llama.cpp has them.

Source: value_array_t::get_builtins, value_object_t::get_builtins and selectattr in common/jinja/value.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key, partial
from typing import TYPE_CHECKING

from .call_arguments import Arguments, as_int, truth
from .values import Keyword, TemplateError, Undefined, Value, as_string, compared, type_name

if TYPE_CHECKING:
    from .operations import Operations
    from .runtime import Runtime

_NONE = Undefined()
_VISIT = 5  # steps for an item that is looked at,
_TEST = 15  # that is tested,
_COMPARISON = 15  # and that is compared
_LONG = 1000  # characters of a string that costs more to compare than to handle


def member_or(run: Runtime, value: Value, attribute: Value, otherwise: Value) -> Value:
    """A member of an object by name, or an item of an array by number; `otherwise` if there is none."""
    if isinstance(attribute, Undefined):
        return otherwise
    if isinstance(value, (list, tuple)):
        if isinstance(attribute, str):
            digits = attribute.isascii() and attribute.isdigit() and len(attribute) < 19
            attribute = int(attribute) if digits else _NONE
        return item_or(value, attribute, otherwise)
    if isinstance(value, dict):
        if not isinstance(attribute, str):
            run.check_key(attribute, len(value))
        try:
            return value.get(attribute, otherwise)
        except TypeError:
            raise TemplateError(f"Object key of unhashable type: {type_name(attribute)}") from None
    return otherwise


def item_or(array: Value, index: Value, otherwise: Value) -> Value:
    """An item by its index; a negative one counts from the end."""
    if isinstance(index, int) and -len(array) <= index < len(array):
        return array[index]
    return otherwise


def like(array: Value, items: list[Value]) -> Value:
    """The items as a tuple if `array` is one, else as a list."""
    return tuple(items) if isinstance(array, tuple) else items


def _items_where(run: Runtime, arguments: Arguments, keep: bool) -> Value:
    """The items that have an attribute, or pass a test, or whose attribute does; or the others."""
    arguments.need(2, 4)
    arguments.need_kinds(list, str)
    array, attribute = arguments[0], arguments[1]
    run.step(_TEST * len(array))
    run.items(len(array))
    if len(arguments) == 2:
        return [item for item in array if truth(member_or(run, item, attribute, _NONE)) is keep]
    has_attribute = len(arguments) == 4
    name = run.string(arguments[2 if has_attribute else 1])
    test = run.test_named(name)
    if test is None:
        raise TemplateError(f"selectattr: unknown test '{name}'")
    out = []
    for item in array:
        looked_at = member_or(run, item, attribute, _NONE) if has_attribute else item
        run.read((looked_at, arguments[-1]))
        if truth(test(run, Arguments((looked_at, arguments[-1])))) is keep:
            out.append(item)
    return out


# The items that pass, and those that do not.
select = partial(_items_where, keep=True)
reject = partial(_items_where, keep=False)


def as_list(run: Runtime, arguments: Arguments) -> Value:
    """A copy of the array."""
    arguments.need_kinds(list)
    run.items(len(arguments[0]))
    return list(arguments[0])


def first(run: Runtime, arguments: Arguments) -> Value:
    """The first item, or undefined."""
    arguments.need_kinds(list)
    return arguments[0][0] if arguments[0] else Undefined()


def last(run: Runtime, arguments: Arguments) -> Value:
    """The last item, or undefined."""
    arguments.need_kinds(list)
    return arguments[0][-1] if arguments[0] else Undefined()


def join(run: Runtime, arguments: Arguments) -> Value:
    """Strings and numbers joined by a delimiter."""
    arguments.need(1, 3)
    if not isinstance(arguments[0], (list, tuple)):
        raise TemplateError("join() first argument must be an array")
    delimiter = arguments.get("d", 1)
    attribute = arguments.get("attribute", 2)
    between = "" if isinstance(delimiter, Undefined) else run.string(delimiter)
    run.step(_VISIT * len(arguments[0]))
    run.items(len(arguments[0]))
    parts, size = [], 0
    for item in arguments[0]:
        value = item if isinstance(attribute, Undefined) else member_or(run, item, attribute, _NONE)
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            raise TemplateError("join() can only join arrays of strings or numerics")
        parts.append(as_string(value))
        size += len(parts[-1]) + len(between)
        if size > _LONG:
            run.spend(size)
            size = 0
    run.spend(size)
    return run.joined(between, parts)


def mapped(run: Runtime, arguments: Arguments) -> Value:
    """An attribute of each item."""
    arguments.need(2)
    if not isinstance(arguments[0], (list, tuple)):
        raise TemplateError("map: first argument must be an array")
    if not isinstance(arguments[1], Keyword):
        raise TemplateError("NotImplemented: map: filter-mapping not implemented")
    attribute = arguments.get("attribute", 1)
    otherwise = arguments.named("default", _NONE)
    run.step(_VISIT * len(arguments[0]))
    run.items(len(arguments[0]))
    return like(arguments[0], [member_or(run, item, attribute, otherwise) for item in arguments[0]])


def append(run: Runtime, arguments: Arguments) -> Value:
    """Append an item to an array, and return the array."""
    arguments.need(2)
    array = arguments[0]
    if not isinstance(array, (list, tuple)):
        raise TemplateError("append: first argument must be an array")
    _check_mutable(array)
    run.spend(8)
    if isinstance(array, list):
        array.append(arguments[1])
    return array


def _check_mutable(array: Value) -> None:
    if isinstance(array, tuple):
        raise TemplateError("Attempting to modify immutable type")


def pop(run: Runtime, arguments: Arguments) -> Value:
    """Removes and returns an item, the last one by default."""
    arguments.need(1, 2)
    arguments.need_kinds(list)
    index = as_int(arguments[1]) if len(arguments) == 2 else -1
    _check_mutable(arguments[0])
    size = len(arguments[0])
    if not -size <= index < size:
        index += size if index < 0 else 0
        raise TemplateError(f"Index {index} out of bounds for array of size {size}")
    run.step((size - index if index >= 0 else -index) >> 8)
    return arguments[0].pop(index)


def sort(run: Runtime, arguments: Arguments) -> Value:
    """The items sorted."""
    arguments.need(1, 4)
    if not isinstance(arguments[0], (list, tuple)):
        raise TemplateError("sort: first argument must be an array")
    how = "gt" if truth(arguments.get("reverse", 1)) else "lt"
    attribute = arguments.get("attribute", 3)
    run.items(4 * len(arguments[0]))
    keys = arguments[0]
    if not isinstance(attribute, Undefined):
        run.step(_VISIT * len(keys))
        keys = [member_or(run, item, attribute, _NONE) for item in keys]
    return like(arguments[0], [arguments[0][index] for index in _order(run, keys, how)])


def _order(run: Runtime, keys: Sequence[Value], how: str) -> list[int]:
    """Return the places of keys in order; up to 16 are inserted one by one, as std::sort of GCC's library does."""

    def is_before(a: Value, b: Value) -> bool:
        run.step(_COMPARISON)
        run.read((a, b))
        return compared(a, b, how)

    if len(keys) > 16:
        ranked = cmp_to_key(lambda a, b: -1 if is_before(a, b) else int(is_before(b, a)))
        return sorted(range(len(keys)), key=lambda index: ranked(keys[index]))
    order: list[int] = []
    for index, key in enumerate(keys):
        place = 0 if order and is_before(key, keys[order[0]]) else index
        while place and is_before(key, keys[order[place - 1]]):
            place -= 1
        order.insert(place, index)
    return order


def reverse(run: Runtime, arguments: Arguments) -> Value:
    """The items from last to first."""
    arguments.need_kinds(list)
    run.items(len(arguments[0]))
    return arguments[0][::-1]


def _extreme(run: Runtime, arguments: Arguments, how: str) -> Value:
    """The smallest or greatest item, the first among equals; undefined for an empty array."""
    arguments.need(1, 4)
    arguments.need_kinds(list)
    attribute = arguments.get("attribute", 2)
    if not arguments[0]:
        return Undefined()
    run.step(_COMPARISON * len(arguments[0]))
    result = arguments[0][0]
    for item in arguments[0]:
        a, b = item, result
        if not isinstance(attribute, Undefined):
            a, b = member_or(run, item, attribute, _NONE), member_or(run, result, attribute, _NONE)
        run.read((a, b))
        if compared(a, b, how):
            result = item
    return result


# The smallest and the greatest item.
least = partial(_extreme, how="lt")
greatest = partial(_extreme, how="gt")


# ---- objects ------------------------------------------------------------------------------------


def get(run: Runtime, arguments: Arguments) -> Value:
    """A member by its name, or the default, or none."""
    arguments.need(2, 3)
    if not isinstance(arguments[0], dict):
        raise TemplateError("get: first argument must be an object")
    if not isinstance(arguments[1], str):
        raise TemplateError("get: second argument must be a string (key)")
    return arguments[0].get(arguments[1], arguments[2] if len(arguments) == 3 else None)


def keys(run: Runtime, arguments: Arguments) -> Value:
    """The names of the members."""
    arguments.need_kinds(dict)
    run.items(len(arguments[0]))
    return list(arguments[0])


def values(run: Runtime, arguments: Arguments) -> Value:
    """The members."""
    arguments.need_kinds(dict)
    run.items(len(arguments[0]))
    return list(arguments[0].values())


def items(run: Runtime, arguments: Arguments) -> Value:
    """Pairs of names and members."""
    arguments.need_kinds(dict)
    run.items(8 * len(arguments[0]))
    return list(arguments[0].items())


def dictsort(run: Runtime, arguments: Arguments) -> Value:
    """The object with its members sorted by name or by value."""
    by = arguments.get("by", 2)
    how = "gt" if truth(arguments.get("reverse", 3)) else "lt"
    run.step(_VISIT * len(arguments[0]))
    run.items(8 * len(arguments[0]))
    for name in arguments[0]:
        if not isinstance(name, str):
            run.check_key(name, len(arguments[0]))
    position = 1 if isinstance(by, str) and by == "value" else 0
    pairs = list(arguments[0].items())
    order = _order(run, [pair[position] for pair in pairs], how)
    return dict(pairs[index] for index in order)


def namespace(run: Runtime, arguments: Arguments) -> Value:
    """An object made of pairs, another object or named arguments: the functions dict and namespace."""
    out: dict[Value, Value] = {}
    start: Value = arguments[0] if arguments else _NONE
    skip = isinstance(start, (list, tuple, dict))
    if isinstance(start, dict):
        run.items(8 * len(start))
        for name in start:
            if not isinstance(name, str):
                run.check_key(name, len(start))
        out.update(start)
    elif skip:
        run.step(_VISIT * len(start))
        for pair in start:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise TemplateError(
                    f"namespace/dict() iterable argument must consist of tuples, not {type_name(pair)}"
                )
            run.insert(out, pair[0], pair[1])
    for value in arguments:
        if isinstance(value, Keyword):
            out[value.name] = value.value
        elif not skip:
            raise TemplateError(
                f"namespace/dict() arguments must be kwargs, dict and/or iterable of tuples, not {type_name(value)}"
            )
        skip = False
    return out


def is_in(run: Operations, needle: Value, haystack: Value) -> bool:
    """Whether `needle in haystack`. Source: test_is_in."""
    if isinstance(haystack, Undefined):
        return False
    if isinstance(haystack, (list, tuple)):
        if type(needle) is str and len(needle) < _LONG:  # whose comparison costs nothing
            run.step(1 + len(haystack) >> 1)
            return needle in haystack
        run.step(_VISIT * len(haystack))
        return any(run.equal(needle, item) for item in haystack)
    if isinstance(haystack, str):
        if not isinstance(needle, str):
            raise TemplateError(
                "'in' test expects args[1] as string when args[0] is string, got args[1] as "
                + type_name(needle)
            )
        run.search(haystack, needle)
        return needle in haystack
    if isinstance(haystack, dict):
        run.check_key(needle, len(haystack))
        return needle in haystack
    raise TemplateError(f"'in' test expects iterable as first argument, got {type_name(haystack)}")
