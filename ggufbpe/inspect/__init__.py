"""Tools that look at a tokenizer: explain, verify, diagnose, doctor, and the oracles they ask."""
