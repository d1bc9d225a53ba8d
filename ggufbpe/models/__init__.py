"""The tokenizer models, one room each: what `tokenizer.ggml.model` names."""
