"""Training: a corpus in, a vocabulary out."""
