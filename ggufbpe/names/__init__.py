"""A model by its name, wherever it is: what people call a model -> a file on this machine, or a reference to a far one.

    name -> grammar.py -> [resolve.py, over the stores of stores/] -> path or reference -> bytes of a file

`grammar` reads a name, without a look at the machine; `quantization` chooses among the files of a repository as
llama.cpp does. Stores of other programs are only read, never written. Far models are `ggufbpe.remote`'s.
"""
