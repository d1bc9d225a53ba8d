"""Tools that look at a tokenizer: explain, diagnose, doctor, verify, and how their findings are shown."""
