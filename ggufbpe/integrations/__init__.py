"""Adapters that give a `Tokenizer` the form that other Python libraries want; docs/integrations.md shows each.

There is one module for each library. A module is imported by its name, `ggufbpe.integrations.tiktoken`, and imports
its library only then. If the library is missing, it raises `NotInstalledError` with the command that installs it.
"""
