"""Who else can be asked for the ids of a text: llama.cpp in its several forms, other libraries, recorded ids.

`oracle.py` is the interface, `oracles.py` has each by the name that `--against` gives it, and each is a file.
"""
