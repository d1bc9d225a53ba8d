"""A model by its name: what people call a model -> a file on this machine, or a reference to a remote one.

    name -> name_grammar.py -> [resolve.py, over the stores of stores/] -> path or reference -> bytes of a file

`grammar` parses a name without looking at the machine; `quantization` chooses among the files of a repository as
llama.cpp does. Stores of other programs are read, never written. `ggufbpe.hub.remote` handles remote models.
"""
