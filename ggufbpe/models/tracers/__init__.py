"""What tells the steps of each tokenizer model that is no byte pair encoding; imported when steps are asked for."""
