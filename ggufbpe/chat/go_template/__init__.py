"""Runs the subset of Go's text/template that Ollama's models use: lexer.py -> parser.py -> execution.py -> text."""
