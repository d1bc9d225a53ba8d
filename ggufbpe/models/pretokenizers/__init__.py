"""Pre-tokenizers: the patterns and flags of each name (registry.py), the splitter, and what tokens reveal."""
