"""What is wrong or suspicious in the metadata of a model file, and how to mend it.

    file.gguf -> facts.py -> checks -> findings

| file | holds |
| --- | --- |
| `examine` | `doctor`, which runs all checks over a file, and the tables of them |
| `finding` | what a check gives: `Finding`, `Where`; all of a file: `Examination` |
| `mend` | a corrected copy that is examined before it takes its place |
| `facts` | what a check looks at: keys, tokens, merges, the opened tokenizer; commands that mend |
| `values` | types of values, and lengths of arrays |
| `models` | what models without a pre-tokenizer need; tokens of another model |
| `pre_tokenizer` | the name of the pre-tokenizer against the tokens; differences from Hugging Face |
| `tokens` | duplicates, empty tokens, padding, control tokens |
| `merges` | merges of no tokens, tokens that no merges lead to |
| `special_ids` | BOS, EOS and the others; what ends a generation |
| `template` | markers of the chat template, BOS twice |
| `round_trips` | bytes without tokens, texts that do not come back |
"""
