"""A vocabulary carried to other programs: tokenizer.json, tiktoken, merges.txt, a GGUF of metadata alone."""
