"""Readers of other programs' tokenizer files, one module per algorithm or format."""
