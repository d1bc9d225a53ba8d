"""Why ids from elsewhere are not those of a model.

diagnose.py -> search.py (which changes together give the ids), nearest.py (where none do)
                 |-> changes.py (what is tried), evidence.py (what the ids say of themselves)
                 |-> variants.py (encoding by hundreds of models that differ by little)
"""
