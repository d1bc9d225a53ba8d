"""Corpora: their files and texts, and their ids in the formats that trainers read.

corpus_files.py, readers.py -> texts -> count, stats, train, verify
corpus_files.py, chunks.py -> corpus_encoding.py or distributed.py -> shards and a manifest -> decode, check
"""
