"""Statistics of how tokenizers split a corpus."""
