"""Corpora: which files there are, what is in them, and their ids in the forms that trainers read.

sources.py, records.py -> texts -> count, stats, train, verify
                                -> ids -> shards and a manifest -> decode, check
"""
