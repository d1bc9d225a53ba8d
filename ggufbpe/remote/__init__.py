"""Remote models, of which only the metadata is read: the hub, Ollama's registry, web addresses, and storages of fsspec.

    reference of names/grammar.py -> opening.py -> a source for gguf/

`stream` decides which ranges are asked for, `http` and `filesystem` ask, `transport` connects, `hub` and `ollama` know
where a file is, `answers` what a refusal means, `cache` keeps what was read. Nothing here is imported for a file of
this machine.
"""

from .opening import files, remote_source
from .places import RemoteFile
from .stream import RemoteProgress

__all__ = ["RemoteFile", "RemoteProgress", "files", "remote_source"]
