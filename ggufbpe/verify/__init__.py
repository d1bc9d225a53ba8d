"""Our ids beside those of others: where they part, and how far they agree."""
