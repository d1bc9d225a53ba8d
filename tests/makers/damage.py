"""Random damage to sound files, for tests/gguf/test_malformed.py and scripts/attack_files.py."""

from __future__ import annotations

import random

# Lengths, counts, types and offsets at which a reader may overflow, wrap around or allocate too much.
NUMBERS = (0, 1, 2, 4, 5, 7, 8, 9, 12, 13, 31, 32, 63, 64, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1)
NUMBERS += (2**60, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def damaged(data: bytes, dice: random.Random) -> bytes:
    """A copy with one to eight changes: bits flipped, numbers put in, bytes cut out, put in, doubled or cut off."""
    copy = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        place, kind = dice.randrange(len(copy) or 1), dice.randrange(7)
        if kind == 0 and copy:
            copy[place] ^= 1 << dice.randrange(8)
        elif kind == 1 and copy:
            copy[place] = dice.randrange(256)
        elif kind == 2:
            width = dice.choice((1, 2, 4, 8))
            number = dice.choice(NUMBERS) % 2 ** (8 * width)
            copy[place : place + width] = number.to_bytes(width, dice.choice(("little", "big")))
        elif kind == 3:
            del copy[place : place + dice.randrange(1, 40)]
        elif kind == 4:
            copy[place:place] = dice.randbytes(dice.randrange(1, 12))
        elif kind == 5:
            other = dice.randrange(len(copy) or 1)
            copy[place:place] = copy[other : other + dice.randrange(1, 60)]
        else:
            del copy[max(place, len(copy) - dice.choice((1, 20, 400, 4000))) :]
    return bytes(copy)
