"""Helpers that know nothing of models, and that every room may use."""
