"""Open any GGUF model's tokenizer without loading the model, and get llama.cpp's ids, exactly."""

from .errors import (
    CorruptMetadataError,
    DuplicateKeyError,
    GGUFError,
    InvalidUTF8Error,
    MissingKeyError,
    NotGGUFError,
    ShardError,
    TruncatedFileError,
    UnknownPreTokenizerError,
    UnsupportedTokenizerError,
    UnsupportedVersionError,
    VocabularyError,
    WrongTypeError,
)
from .tokenizer import Tokenizer
from .vocab import GGUFWarning, TokenAttribute

__version__ = "0.1.0"

__all__ = [
    "CorruptMetadataError",
    "DuplicateKeyError",
    "GGUFError",
    "GGUFWarning",
    "InvalidUTF8Error",
    "MissingKeyError",
    "NotGGUFError",
    "ShardError",
    "TokenAttribute",
    "Tokenizer",
    "TruncatedFileError",
    "UnknownPreTokenizerError",
    "UnsupportedTokenizerError",
    "UnsupportedVersionError",
    "VocabularyError",
    "WrongTypeError",
]
