"""Byte pair encoding: the registry of pre-tokenizers, splitting, merging, and what tokens reveal about splitting."""
