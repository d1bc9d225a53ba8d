"""Writers of other programs' tokenizer files, one module per format."""
