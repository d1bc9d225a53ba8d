"""Compares our ids with those of other tokenizers: where they differ, and why.

    id_comparison.py -> text_comparison.py (texts, a batch at a time) -> difference_causes.py (smallest text,
        step and cause) -> result.py
                   |-> align.py (two rows of tokens by bytes)    |-> shrink.py

`given_texts.py` reads the texts, `fuzz.py` makes random ones for a model.
`model_diff.py` compares two models and their vocabularies (`vocabulary_diff.py`); `side_by_side.py` shows how several
models tokenize a text.
"""
