"""Reads and changes the metadata of a GGUF file, and knows the types of its keys; models/ knows what tokens mean."""
