"""Exports and imports with a check: how far the ids of the library that reads the files agree with ours."""
