#include <algorithm>
#include <string_view>

#include "library/handles.h"
#include "vocabulary/pieces.h"

using namespace ggufbpe;

size_t ggufbpe_vocabulary_size(const ggufbpe_tokenizer *tokenizer) { return tokenizer ? tokenizer->vocabulary.size() : 0; }

const char *ggufbpe_model_name(const ggufbpe_tokenizer *tokenizer) { return tokenizer ? tokenizer->vocabulary.kind->name : ""; }

const char *ggufbpe_pre_tokenizer_name(const ggufbpe_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->vocabulary.pre.name : "";
}

ggufbpe_status ggufbpe_token_text(const ggufbpe_tokenizer *tokenizer, int32_t id, const char **text, size_t *size,
                                  ggufbpe_error *error) {
    return answer(error, [&] {
        require(tokenizer && text && size, "a NULL that must not be one");
        check_id(tokenizer->vocabulary, id);
        const std::string_view found = (*tokenizer->vocabulary.tokens)[static_cast<size_t>(id)];
        *text = found.data();
        *size = found.size();
    });
}

int32_t ggufbpe_find_token(const ggufbpe_tokenizer *tokenizer, const char *text, size_t size) {
    if (!tokenizer || (!text && size) || size > LARGEST_SIZE) return -1;
    return static_cast<int32_t>(tokenizer->vocabulary.names->find({text ? text : "", size}));
}

ggufbpe_status ggufbpe_token_piece(const ggufbpe_tokenizer *tokenizer, int32_t id, int32_t special, char *piece, size_t capacity,
                                   size_t *size, ggufbpe_error *error) {
    return answer(error, [&] {
        require(tokenizer && size && (piece || !capacity), "a NULL that must not be one");
        check_id(tokenizer->vocabulary, id);
        write_bytes(piece_of(tokenizer->vocabulary, id, special != 0), piece, capacity, size);
    });
}

int32_t ggufbpe_token_attributes(const ggufbpe_tokenizer *tokenizer, int32_t id) {
    if (!tokenizer || id < 0 || static_cast<size_t>(id) >= tokenizer->vocabulary.size()) return 0;
    return tokenizer->vocabulary.attributes[static_cast<size_t>(id)];
}

int32_t ggufbpe_special_id(const ggufbpe_tokenizer *tokenizer, int32_t which) {
    if (!tokenizer || which < 0 || static_cast<size_t>(which) >= SPECIAL_ID_COUNT) return -1;
    return tokenizer->vocabulary.special_ids[static_cast<size_t>(which)];
}

int32_t ggufbpe_is_end_of_generation(const ggufbpe_tokenizer *tokenizer, int32_t id) {
    if (!tokenizer) return 0;
    const auto &ends = tokenizer->vocabulary.end_of_generation;
    return std::binary_search(ends.begin(), ends.end(), id);
}

int32_t ggufbpe_adds_bos(const ggufbpe_tokenizer *tokenizer) { return tokenizer && tokenizer->vocabulary.add_bos; }

int32_t ggufbpe_adds_eos(const ggufbpe_tokenizer *tokenizer) { return tokenizer && tokenizer->vocabulary.add_eos; }

size_t ggufbpe_warning_count(const ggufbpe_tokenizer *tokenizer) { return tokenizer ? tokenizer->vocabulary.warnings.size() : 0; }

const char *ggufbpe_warning(const ggufbpe_tokenizer *tokenizer, size_t index) {
    return index < ggufbpe_warning_count(tokenizer) ? tokenizer->vocabulary.warnings[index].c_str() : nullptr;
}
