"""Forms of other programs, in and out: tokenizer.json, tiktoken, merges.txt, a GGUF of metadata alone."""
