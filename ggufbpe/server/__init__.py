"""Tokenization over HTTP from metadata alone: the APIs of llama-server, vLLM and Ollama, and one of its own.

    bytes of a request -> app.py -> guard.py -> endpoints.py -> the package's public functions -> JSON

`app` is an ASGI application and `run` serves it. The room knows nothing about how ids are made, and only `run`,
`protocol` and `app` deal with connections. It needs the packages of the extra `serve`.
"""
