"""Resolves the name of a model to a file on this machine or a reference to a remote one.

    path or name -> model_location.py, over name_grammar.py and stores/ -> ModelLocation -> gguf/

`name_grammar` parses a name without looking at the machine; `quantization` chooses among the files of a repository as
llama.cpp does. The stores of other programs are read, never written. `ggufbpe.hub.remote` reads remote models.
"""
