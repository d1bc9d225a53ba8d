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
| `special_ids` | BOS, EOS and the others |
| `rendered` | what the chat template makes of a few chats |
| `template` | templates that cannot be used, markers, BOS twice, what ends a turn |
| `roles` | chats that the template refuses, messages and tools that it leaves out |
| `known_templates` | the template beside the one that llama.cpp has for the model |
| `markers` | what looks like a marker |
| `given_template` | a template that `fix` is given |
| `round_trips` | bytes without tokens, texts that do not come back |
"""
