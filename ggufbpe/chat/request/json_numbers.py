"""The text of a float in JSON as nlohmann::json writes it, by the algorithm Grisu2.

Of a thousand floats, one has other digits than in Python: Grisu2 gives digits that read as the float, but not always
the fewest or nearest. From 1e15 on, and not from 1e16, there is an exponent.

Source: dtoa_impl in nlohmann/json.hpp.
"""

from __future__ import annotations

import math


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
    low, middle, high = (value * power + (1 << 63) >> 64 for value in (low, middle, high))
    rest, width, distance = high - 1, high - low - 2, high - 1 - middle
    point = -(exponent + power_exponent + 64)  # bits behind the point
    count = len(str(rest >> point))
    unit = 10**count << point
    digits = 0
    while not digits or rest > width:
        count -= 1
        if count >= 0:
            unit //= 10
        else:
            rest, width, distance = 10 * rest, 10 * width, 10 * distance
        digit, rest = divmod(rest, unit)
        digits = 10 * digits + digit
    while (
        rest < distance
        and width - rest >= unit
        and (rest + unit < distance or distance - rest > rest + unit - distance)
    ):
        digits, rest = digits - 1, rest + unit
    return str(digits), count - decimal


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
