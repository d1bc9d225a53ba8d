"""The text of a float in JSON as nlohmann::json writes it, by the algorithm Grisu2.

Of a thousand floats, one has other digits than in Python: Grisu2 gives digits that read as the float, but not always
the fewest or nearest. From 1e15 on, and not from 1e16, there is an exponent.

Source: dtoa_impl in nlohmann/json.hpp.
"""

from __future__ import annotations

import math
from functools import cache


def dumped_float(number: float) -> str:
    """Return a finite float as nlohmann::json dumps it.

    >>> dumped_float(4463.09348), dumped_float(1e15)
    ('4463.0934800000005', '1e+15')
    """
    if number.is_integer() and abs(number) < 1e15:
        return repr(number)  # the only integer that reads as this float
    sign = "-" if number < 0 else ""
    digits, exponent = _digits(abs(number))
    point = len(digits) + exponent
    if 0 < point <= 15:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -4 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1:+03d}"


def _digits(number: float) -> tuple[str, int]:
    """The decimal digits of a positive float, and the power of ten of the last one."""
    exponent = math.frexp(number)[1]
    exponent = max(exponent - 53, -1074)
    whole = int(math.ldexp(number, -exponent))  # number == whole * 2**exponent
    is_nearer_below = whole == 1 << 52 and exponent > -1074
    shift = 64 - (2 * whole + 1).bit_length()
    exponent -= shift + 1
    power, power_exponent, decimal = _power(exponent)
    low = (4 * whole - 1 << shift - 1) if is_nearer_below else 2 * whole - 1 << shift
    middle, high = 2 * whole << shift, 2 * whole + 1 << shift
    low, middle, high = [value * power + (1 << 63) >> 64 for value in (low, middle, high)]
    rest, width, distance = (high - 1) * _SCALE, (high - low - 2) * _SCALE, (high - 1 - middle) * _SCALE
    point = -(exponent + power_exponent + 64)  # bits behind the point
    count = len(str(width >> point)) - 1
    unit = 10**count << point  # at most `width`, and so is what is left of `rest`
    while (more := 10 * unit) <= rest and rest % more <= width:
        unit, count = more, count + 1
    digits, rest = divmod(rest, unit)
    while (
        rest < distance
        and width - rest >= unit
        and (rest + unit < distance or distance - rest > rest + unit - distance)
    ):
        digits, rest = digits - 1, rest + unit
    return str(digits), count - _PLACES - decimal


_PLACES = 19  # behind the decimal point: more than the digits of any float
_SCALE = 10**_PLACES


@cache
def _power(exponent: int) -> tuple[int, int, int]:
    """A power of ten for a float with this exponent of two: 64 bits, the exponent of their unit, and that of ten."""
    scale = -61 - exponent
    decimal = int(scale * 78913 / (1 << 18)) + (scale > 0)  # at least; they are 8 apart from -300 on
    decimal = (307 + decimal) // 8 * 8 - 300
    power = 10 ** abs(decimal)
    size = power.bit_length()
    if decimal < 0:
        return (1 << size + 64) // power + 1 >> 1, -size - 63, decimal
    return (power << 65 >> size) + 1 >> 1, size - 64, decimal
