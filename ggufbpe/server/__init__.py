"""Ids over HTTP, from metadata alone: as llama-server answers, as vLLM and Ollama, and with answers of its own.

    bytes of a request -> app -> guard -> endpoints -> the package's public face -> JSON

`app` is an ASGI application and `run` serves it. Nothing here knows how ids are made, and nothing but `run` and `app`
what a socket is.

But: all of it takes the packages of the extra `serve`.
"""
