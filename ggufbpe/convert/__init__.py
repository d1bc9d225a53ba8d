"""Other programs' file formats, in and out: tokenizer.json, tiktoken, merges.txt, a GGUF of metadata alone."""
