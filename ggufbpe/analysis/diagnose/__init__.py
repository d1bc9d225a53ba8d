"""Why ids or prompts from elsewhere are not those of a model.

id_diagnosis.py -> nearest.py, cause_search.py (one text: the fewest changes that give all ids, or what comes nearest)
                |   |-> changes.py (what is tried), id_evidence.py (what the ids alone tell)
                |-> several.py (any number of texts: change by change, as long as more ids agree)
                |   |-> search_steps.py (what is tried next)
                |-> encoding_changes.py (what both change), variants.py (encoding with hundreds of changed models)
prompt_diagnosis.py -> chat_search.py (the fewest changes of a chat), chat_changes.py (what is tried)
"""
