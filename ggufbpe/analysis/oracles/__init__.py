"""Other sources of ids to compare with: llama.cpp in its several forms, other libraries, recorded ids.

`oracle.py` is the interface, `open_oracle.py` lists the oracles by their `--against` names, and each has its own file.
"""
