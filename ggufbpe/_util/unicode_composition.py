"""The code points that canonical composition (NFC) may change or join to others, by Unicode 15.1.0.

scripts/generate_unicode_composition.py writes them to unicode_composition.txt.
"""

from .unicode_classes import read_tables, rows_of

UNICODE_VERSION, _composing = read_tables("unicode_composition.txt")
# Code points that are not always the same after composition: the first, the last, and their combining class. A text
# without any of them is composed.
COMPOSING = rows_of(_composing)
