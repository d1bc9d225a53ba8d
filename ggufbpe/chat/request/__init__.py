"""A request to llama-server: checked messages and schemas, and the abilities of a template."""
