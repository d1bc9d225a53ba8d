"""Exports to and imports from other programs' formats: tokenizer.json, tiktoken, merges.txt, a GGUF without tensors."""
