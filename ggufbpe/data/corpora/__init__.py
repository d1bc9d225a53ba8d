"""Corpora: their files and texts, and their ids in the formats that trainers read.

corpus_files.py, records.py -> texts -> count, stats, train, verify
                                -> ids -> shards and a manifest -> decode, check
"""
