"""Our ids beside those of others: where they part, and how far they agree.

    verify.py -> comparing.py (texts, a batch at a time) -> examine.py (smallest text, step and cause) -> result.py
                   |-> align.py (two rows of tokens by bytes)    |-> shrink.py

`texts.py` reads the texts, `fuzz.py` makes such as reach the branches of a model's patterns. `diff.py` has two models
side by side, with their vocabularies (`vocabulary_diff.py`); `side_by_side.py` has a text as several models cut it.
"""
