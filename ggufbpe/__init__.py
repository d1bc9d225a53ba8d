"""Open any GGUF model's tokenizer without loading the model, and get llama.cpp's ids, exactly.

`Tokenizer.from_gguf(path)` opens a tokenizer. The functions are the commands for Python: docs/python.md has an example
of each.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._util.lazy import IMPORT_LOCK
from ._util.llama_cpp_states import FOLLOWED

if TYPE_CHECKING:
    from ._util.extras import NotInstalledError as NotInstalledError
    from ._util.processors import processors as processors
    from .analysis.diagnose.id_diagnosis import diagnose as diagnose
    from .analysis.doctor.examination import doctor as doctor
    from .analysis.doctor.fix import fix as fix
    from .analysis.doctor.local_models import local_models as local_models
    from .analysis.explain.explain_text import explain as explain
    from .analysis.explain.why_not import why_not as why_not
    from .analysis.oracles.oracle import OracleError as OracleError
    from .analysis.verify.id_comparison import verify as verify
    from .analysis.verify.model_diff import diff as diff
    from .analysis.verify.side_by_side import compare as compare
    from .data.corpora.corpus_encoding import encode_corpus as encode_corpus
    from .data.corpora.encode_stage import EncodeStage as EncodeStage
    from .data.corpora.records import CorpusError as CorpusError
    from .data.corpora.shard_check import check_corpus as check_corpus
    from .data.corpora.shard_reader import decode_corpus as decode_corpus
    from .data.statistics.compare_corpus import stats as stats
    from .data.training.train_vocabulary import train as train
    from .errors import ChatError as ChatError
    from .errors import CorruptMetadataError as CorruptMetadataError
    from .errors import DuplicateKeyError as DuplicateKeyError
    from .errors import GGUFError as GGUFError
    from .errors import InterruptedChangeError as InterruptedChangeError
    from .errors import InvalidUTF8Error as InvalidUTF8Error
    from .errors import MissingKeyError as MissingKeyError
    from .errors import ModelNameError as ModelNameError
    from .errors import NotGGUFError as NotGGUFError
    from .errors import OfflineError as OfflineError
    from .errors import RemoteAccessError as RemoteAccessError
    from .errors import RemoteError as RemoteError
    from .errors import RemoteNotFoundError as RemoteNotFoundError
    from .errors import ShardError as ShardError
    from .errors import StoreError as StoreError
    from .errors import TensorError as TensorError
    from .errors import TruncatedFileError as TruncatedFileError
    from .errors import UnknownPreTokenizerError as UnknownPreTokenizerError
    from .errors import UnsupportedTokenizerError as UnsupportedTokenizerError
    from .errors import UnsupportedVersionError as UnsupportedVersionError
    from .errors import VocabularyError as VocabularyError
    from .errors import WrongTypeError as WrongTypeError
    from .hub.model_location import locate as locate
    from .models.pretokenizers.regex_patterns import patterns as patterns
    from .models.vocabulary import GGUFWarning as GGUFWarning
    from .models.vocabulary import TokenAttribute as TokenAttribute
    from .tokenizer import Tokenizer as Tokenizer

__version__ = "0.1.0"
LLAMA_CPP = FOLLOWED  # the state of llama.cpp that is followed; chats and the server follow `states.CHATS`

_HOMES = {
    "CorpusError": "data.corpora.records",
    "EncodeStage": "data.corpora.encode_stage",
    "GGUFWarning": "models.vocabulary",
    "NotInstalledError": "_util.extras",
    "OracleError": "analysis.oracles.oracle",
    "TokenAttribute": "models.vocabulary",
    "Tokenizer": "tokenizer",
    "check_corpus": "data.corpora.shard_check",
    "compare": "analysis.verify.side_by_side",
    "decode_corpus": "data.corpora.shard_reader",
    "diagnose": "analysis.diagnose.id_diagnosis",
    "diff": "analysis.verify.model_diff",
    "doctor": "analysis.doctor.examination",
    "encode_corpus": "data.corpora.corpus_encoding",
    "explain": "analysis.explain.explain_text",
    "fix": "analysis.doctor.fix",
    "local_models": "analysis.doctor.local_models",
    "locate": "hub.model_location",
    "patterns": "models.pretokenizers.regex_patterns",
    "processors": "_util.processors",
    "stats": "data.statistics.compare_corpus",
    "train": "data.training.train_vocabulary",
    "verify": "analysis.verify.id_comparison",
    "why_not": "analysis.explain.why_not",
}

__all__ = [
    "ChatError",
    "CorpusError",
    "CorruptMetadataError",
    "DuplicateKeyError",
    "EncodeStage",
    "GGUFError",
    "GGUFWarning",
    "InterruptedChangeError",
    "InvalidUTF8Error",
    "MissingKeyError",
    "ModelNameError",
    "NotGGUFError",
    "NotInstalledError",
    "OfflineError",
    "OracleError",
    "RemoteAccessError",
    "RemoteError",
    "RemoteNotFoundError",
    "ShardError",
    "StoreError",
    "TensorError",
    "TokenAttribute",
    "Tokenizer",
    "TruncatedFileError",
    "UnknownPreTokenizerError",
    "UnsupportedTokenizerError",
    "UnsupportedVersionError",
    "VocabularyError",
    "WrongTypeError",
    "check_corpus",
    "compare",
    "decode_corpus",
    "diagnose",
    "diff",
    "doctor",
    "encode_corpus",
    "explain",
    "fix",
    "local_models",
    "locate",
    "patterns",
    "processors",
    "stats",
    "train",
    "verify",
    "why_not",
]


def __getattr__(name: str) -> object:
    """Public names are imported when they are first used, so that a command pays only for what it needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with IMPORT_LOCK:
        value = getattr(import_module(f".{_HOMES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__")), "LLAMA_CPP"})
