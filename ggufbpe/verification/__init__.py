"""Our ids beside those of others: where they part, and how far they agree.

    verify.py -> comparing.py (texts, a batch at a time) -> examine.py (smallest text, step and cause) -> result.py
                   |-> align.py (two rows of tokens by bytes)    |-> shrink.py

`compare.py` has two vocabularies side by side, `fuzz.py` texts that reach the branches of a model's patterns.
"""
