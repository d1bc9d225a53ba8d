"""The tracers of the tokenizer models other than byte pair encoding; imported when steps are asked for."""
