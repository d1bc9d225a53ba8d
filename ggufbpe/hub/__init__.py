"""Resolves the name of a model to a file on this machine or a reference to a remote one.

    name -> name_grammar.py -> resolve.py, over stores/ -> path or reference -> model_location.py, which opens it

`name_grammar` parses a name without looking at the machine; `quantization` chooses among the files of a repository as
llama.cpp does. The stores of other programs are read, never written. `ggufbpe.hub.remote` reads remote models.
"""
