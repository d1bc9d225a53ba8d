"""Why ids from elsewhere are not those of a model.

id_diagnosis.py -> cause_search.py (which changes together give the ids), nearest.py (where none do)
                 |-> changes.py (what is tried), id_evidence.py (what the ids alone tell)
                 |-> variants.py (encoding with hundreds of slightly different models)
"""
