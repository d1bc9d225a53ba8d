"""Pre-tokenizers: the registry, its patterns, the splitter, and what tokens reveal about splitting."""
