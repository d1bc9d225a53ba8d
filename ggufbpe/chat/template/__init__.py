"""The template language as llama.cpp runs it: lexer, parser, compiler and runtime."""
