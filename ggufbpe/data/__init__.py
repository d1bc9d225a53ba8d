"""Corpora: reading them, encoding them to shards, statistics of them, and training on them."""
