"""What is wrong or suspicious in the metadata of a model file, and how to fix it.

    file.gguf -> facts.py -> checks -> findings -> advice.py -> one command -> fix.py

`examination` runs the checks that `checks` lists, each in the file of its group; `proposal` and `advice` try their
fixes in memory, and `fix` writes them.
"""
