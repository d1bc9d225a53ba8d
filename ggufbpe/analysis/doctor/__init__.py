"""What is wrong or suspicious in the metadata of a model file, and how to fix it.

    file.gguf -> facts.py -> checks -> findings

| file | holds |
| --- | --- |
| `examine` | `doctor`, which runs all checks over a file, and the tables of them |
| `tensors` | what is wrong with the list of tensors, such as data that was cut off |
| `finding` | what a check gives: `Finding`, `Where`; all of a file: `Examination` |
| `mend` | a corrected copy, which is examined before it is put in place |
| `facts` | what checks look at: keys, tokens, merges, the opened tokenizer; and the commands of fixes |
| `values` | types of values, and lengths of arrays |
| `models` | what models without a pre-tokenizer need; tokens of another model |
| `pre_tokenizer` | the name of the pre-tokenizer against the tokens; differences from Hugging Face |
| `tokens` | duplicates, empty tokens, padding, control tokens |
| `merges` | merges whose parts are not tokens, tokens that merging never produces |
| `special_ids` | BOS, EOS and the others |
| `rendered` | the prompts that the chat template makes of a few chats |
| `template` | templates that cannot be used, markers, BOS twice, what ends a turn |
| `roles` | chats that the template refuses, messages and tools that it leaves out |
| `known_templates` | the template compared with the one that llama.cpp has for the model |
| `markers` | what looks like a marker |
| `given_template` | a template that `fix` is given |
| `round_trips` | bytes without tokens, texts that encoding and decoding change |
"""
