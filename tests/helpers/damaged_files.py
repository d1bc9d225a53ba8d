"""Files whose bytes are wrong somewhere, as disks and programs leave them."""

from __future__ import annotations

import random


def damaged(data: bytes, dice: random.Random) -> bytes:
    """`data` with some bytes changed, removed or doubled."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        at = dice.randrange(len(changed))
        kind = dice.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            changed[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            changed[at : at + 8] = dice.choice(
                (0, 1, 255, 1 << 29, 1 << 32, 1 << 62, (1 << 64) - 1)
            ).to_bytes(8, "little")
        elif kind == 3:
            del changed[at : at + dice.randrange(1, 9)]
        else:
            del changed[at:]
        if not changed:
            break
    return bytes(changed)
