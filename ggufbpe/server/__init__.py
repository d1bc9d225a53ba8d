"""Tokenization over HTTP from metadata alone: the APIs of llama-server, vLLM and Ollama, and an API of its own.

    bytes of a request -> app -> guard -> endpoints -> the package's public face -> JSON

`app` is an ASGI application and `run` serves it. Nothing here knows how ids are made, and only `run`, `protocol` and
`app` deal with connections.

But: all of it needs the packages of the extra `serve`.
"""
