"""From messages to the prompt and the ids that `llama-server --jinja` makes of them."""
