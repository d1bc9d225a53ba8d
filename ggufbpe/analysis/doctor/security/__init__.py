"""What a chat template and the metadata of a downloaded file can do to their user.

    file.gguf -> audit.py -> template_source.py -> checks of the source: accesses, conditions, texts, characters
                          -> probes.py (prompts of a few chats) -> prompt_checks.py
                          -> metadata_checks.py

Nothing of a template is run but by `chat.template`, whose limits apply; an audit of a template takes 2 seconds at most.
"""
