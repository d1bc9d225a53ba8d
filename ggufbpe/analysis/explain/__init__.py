"""What happens to a text on its way to ids, as plain data, and in sentences (explain_words.py, why_not_words.py)."""
