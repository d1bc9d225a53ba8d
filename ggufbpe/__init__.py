"""Open any GGUF model's tokenizer without loading the model, and get llama.cpp's ids, exactly.

`Tokenizer.from_gguf(path)` opens a tokenizer. Every command is also a function: docs/python.md has an example of each.
"""

from importlib import import_module

from ._util.lazy import IMPORT_LOCK
from ._util.llama_cpp_states import FOLLOWED

__version__ = "0.1.0"
# the state of llama.cpp that is followed; chats and the server follow `llama_cpp_states.CHATS`
LLAMA_CPP = FOLLOWED

# The public names of each module; __init__.pyi imports the same names for type checkers and editors.
_PUBLIC = {
    "_util.errors": (
        "ChatError",
        "ChatTooLongError",
        "CorruptMetadataError",
        "DuplicateKeyError",
        "GGUFError",
        "InterruptedChangeError",
        "InvalidUTF8Error",
        "MissingKeyError",
        "ModelNameError",
        "NotGGUFError",
        "OfflineError",
        "RemoteAccessError",
        "RemoteError",
        "RemoteNotFoundError",
        "ShardError",
        "StoreError",
        "TensorError",
        "TruncatedFileError",
        "UnknownPreTokenizerError",
        "UnsupportedTokenizerError",
        "UnsupportedVersionError",
        "VocabularyError",
        "WrongTypeError",
    ),
    "_util.extras": ("NotInstalledError",),
    "_util.processors": ("processors",),
    "_util.progress": ("Progress",),
    "analysis.conversion.export_vocabulary": ("Exported", "export"),
    "analysis.conversion.import_vocabulary": ("ImportedVocabulary", "import_vocabulary"),
    "analysis.conversion.parity": ("Agreement", "DifferingText"),
    "analysis.diagnose.cause": ("Cause",),
    "analysis.diagnose.explanation": ("Diagnosis", "Explanation"),
    "analysis.diagnose.id_diagnosis": ("diagnose",),
    "analysis.doctor.drafts": ("DraftCheck", "DraftDifference", "LocalDraft", "check_draft", "local_drafts"),
    "analysis.doctor.examination": ("doctor",),
    "analysis.doctor.finding": ("Examination", "Finding", "Where"),
    "analysis.doctor.fix": ("Fixed", "KeyChange", "fix"),
    "analysis.doctor.local_models": ("LocalModel", "local_models"),
    "analysis.doctor.model_info": ("ModelInfo", "info"),
    "analysis.doctor.proposal": ("Proposal",),
    "analysis.doctor.security.audit": ("audit",),
    "analysis.explain.explain_text": ("explain",),
    "analysis.explain.reasons": ("Place", "WhyNot"),
    "analysis.explain.why_not": ("why_not",),
    "analysis.oracles.chat_answers": ("Prompt", "Refused"),
    "analysis.oracles.oracle": ("Failure", "OracleError"),
    "analysis.verify.chat_comparison": ("ChatDifference", "ChatExample", "ChatResult", "ComparedChat"),
    "analysis.verify.id_comparison": ("verify",),
    "analysis.verify.model_diff": ("Differences", "diff"),
    "analysis.verify.result": (
        "ComparedText",
        "Difference",
        "DifferenceExample",
        "FailureGroup",
        "ShownToken",
        "Verification",
    ),
    "analysis.verify.side_by_side": ("Comparison", "compare"),
    "analysis.verify.stretches": ("Stretch", "Stretches"),
    "analysis.verify.vocabulary_diff": ("VocabularyDifference",),
    "analysis.views.answers": ("json_schema",),
    "chat.chats": ("Chats",),
    "chat.fitting": ("FitPolicy", "FittedChat"),
    "chat.media.chat_media": ("ChatCount",),
    "chat.media.mmproj": ("AudioTokens", "ImageTokens", "Mmproj"),
    "chat.ollama_prompt": ("OllamaTemplate",),
    "chat.origins": ("Origin", "PromptInParts", "PromptPart"),
    "chat.token_origins": ("ChatTokens", "Injected", "Share"),
    "convert.imported": ("NotImportableError",),
    "convert.incompatibilities": ("Incompatibility",),
    "convert.portable_patterns": ("NotExpressibleError",),
    "data.corpora.chunks": ("CorpusPlace",),
    "data.corpora.corpus_encoding": ("encode_corpus",),
    "data.corpora.document_notes": ("DocumentFacts",),
    "data.corpora.encode_stage": ("EncodeStage",),
    "data.corpora.hashed_files": ("FileFacts",),
    "data.corpora.manifest": ("Shard",),
    "data.corpora.records": ("CorpusError",),
    "data.corpora.shard_check": ("Checked", "check_corpus"),
    "data.corpora.shard_reader": ("DecodedRow", "EncodedCorpus", "MaskedRun", "decode_corpus"),
    "data.statistics.compare_corpus": ("stats",),
    "data.statistics.file_counts": ("FileCounts", "TextCounts", "count_files"),
    "data.statistics.measure": ("Measures", "Stats", "Usage"),
    "data.training.train_vocabulary": ("train",),
    "data.training.trained_vocabulary": ("LearnedStep", "TrainedVocabulary"),
    "gguf.change": ("Change",),
    "gguf.constants": ("GGUFValueType",),
    "gguf.edit": ("Edit",),
    "hub.model_location": ("ModelLocation", "locate"),
    "models.pretokenizers.regex_patterns": ("Patterns", "patterns"),
    "models.token_attribute": ("TokenAttribute",),
    "models.tracers.trace_types": (
        "Cut",
        "Fragment",
        "LatticeEdge",
        "LatticePath",
        "Merge",
        "RewrittenText",
        "Symbol",
        "TokenMatch",
        "TracedStage",
        "TriedToken",
        "Word",
        "WordLattice",
    ),
    "models.vocabulary": ("Correction", "GGUFWarning", "Vocabulary"),
    "tokenizer": ("Tokenizer",),
    "tokenizer.boundaries": ("BoundaryLevel",),
    "tokenizer.common_prefix": ("CommonPrefix",),
    "tokenizer.detokenization": ("DecodeStream",),
    "tokenizer.incremental": ("Checkpoint", "IdsChange", "IncrementalEncoding"),
    "tokenizer.trace": ("Token", "Trace"),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that a command pays only for what it needs."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with IMPORT_LOCK:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__")), "LLAMA_CPP"})
