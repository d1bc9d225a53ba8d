// Special ids, end-of-generation tokens, and attributes that follow from texts: ggufbpe/models/special_ids.py for C++.
//
// Source: src/llama-vocab.cpp, llama_vocab::impl::load.

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "vocabulary/loading.h"
#include "vocabulary/registry.h"

namespace ggufbpe {

namespace {

constexpr const char *ARCHITECTURE = "general.architecture", *NAME = "general.name";

template <typename Texts>
bool has_any(const std::string &text, const Texts &parts) {
    return std::any_of(std::begin(parts), std::end(parts), [&](const char *part) { return text.find(part) != std::string::npos; });
}

// By tolower in the C locale: ASCII only.
std::string lowered(std::string name) {
    for (char &c : name) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    }
    return name;
}

// None of the texts that the rules name has a character that is shown otherwise.
std::string quoted(const char *text) { return std::string("'") + text + "'"; }

void correct(Vocabulary &vocabulary, const char *id, const std::string &what, int32_t token = NO_TOKEN) {
    vocabulary.corrections.push_back({id, what, token});
}

void make_control(Vocabulary &vocabulary, int32_t id, const char *text) {
    uint16_t &attributes = vocabulary.attributes[static_cast<size_t>(id)];
    if (attributes & CONTROL_TOKEN) return;
    attributes |= CONTROL_TOKEN;
    correct(vocabulary, "made_control",
            "token " + std::to_string(id) + ", " + quoted(text) + ", looks like a control token and becomes one", id);
}

void set_left_strip(Vocabulary &vocabulary, const char *text) {
    const int32_t id = vocabulary.id_of(text);
    if (id == NO_TOKEN) {
        vocabulary.warnings.push_back("the token " + quoted(text) + " is missing: convert the model again");
    } else {
        vocabulary.attributes[static_cast<size_t>(id)] |= LSTRIP_TOKEN;
    }
}

}  // namespace

void set_special_ids(const Metadata &file, Vocabulary &vocabulary) {
    const uint64_t size = vocabulary.size();
    for (size_t i = 0; i < SPECIAL_ID_COUNT; ++i) {
        const int32_t given_by_default = i == BOS && vocabulary.pre.no_default_bos ? NO_TOKEN : vocabulary.kind->default_ids[i];
        int32_t id = given_by_default;
        if (id != NO_TOKEN && static_cast<uint64_t>(id) >= size) id = NO_TOKEN;
        for (const char *const *key = SPECIAL_KINDS[i].keys; *key; ++key) {
            const std::optional<uint32_t> given = file.unsigned_number(*key);
            if (given && *given >= size) {
                vocabulary.warnings.push_back(std::string(*key) + " = " + std::to_string(*given) + " is out of range; " +
                                              (id == NO_TOKEN ? "none" : std::to_string(id)) + " is used instead");
            } else if (given) {
                id = static_cast<int32_t>(*given);
            }
        }
        if (id == NO_TOKEN && given_by_default != NO_TOKEN) {
            correct(vocabulary, "default_id", std::string("the default ") + SPECIAL_KINDS[i].name + " id " +
                                                  std::to_string(given_by_default) + " is out of range, so there is none");
        }
        vocabulary.special_ids[i] = id;
    }
}

void find_special_tokens(Vocabulary &vocabulary, const Lacking &lacking) {
    for (size_t i = 0; i < SPECIAL_ID_COUNT; ++i) {
        if (vocabulary.special_ids[i] != NO_TOKEN) continue;
        for (const char *const *text = SPECIAL_KINDS[i].texts; *text; ++text) {
            const int32_t id = vocabulary.id_of(*text);
            if (id == NO_TOKEN || lacking.count(*text)) continue;
            vocabulary.special_ids[i] = id;
            make_control(vocabulary, id, *text);
            break;
        }
    }
    for_tokens_with(CONTROL_TOKEN, vocabulary.attributes, [&](size_t i) {
        if ((*vocabulary.tokens)[i].find("unused") != std::string_view::npos) vocabulary.attributes[i] |= UNUSED_TOKEN;
    });
}

void find_end_of_generation(Vocabulary &vocabulary, const Lacking &lacking) {
    std::set<int32_t> ends;
    const auto id_of = [&](const char *text) { return vocabulary.id_of(text); };
    const auto end_of = [&](const char *text) {
        return std::find_if(ends.begin(), ends.end(), [&](int32_t id) { return (*vocabulary.tokens)[static_cast<size_t>(id)] == text; });
    };
    const auto is_end = [&](const char *text) { return end_of(text) != ends.end(); };
    const auto no_end = [&](const char *text, uint16_t attribute, const char *what_it_is) {
        const auto found = end_of(text);
        vocabulary.attributes[static_cast<size_t>(*found)] = attribute;
        correct(vocabulary, "not_end_of_generation",
                quoted(text) + what_it_is + " here, so it is not an end-of-generation token", *found);
        ends.erase(found);
    };
    for (const SpecialId each : {FIM_PAD, FIM_REP, FIM_SEP}) {
        if (vocabulary.special_ids[each] != NO_TOKEN) ends.insert(vocabulary.special_ids[each]);
    }
    for (const char *text : END_OF_GENERATION) {
        const int32_t id = id_of(text);
        if (id == NO_TOKEN || lacking.count(text)) continue;
        ends.insert(id);
        make_control(vocabulary, id, text);
    }
    for (const char *text : ALWAYS_SHOWN) {
        const int32_t id = id_of(text);
        if (id == NO_TOKEN) continue;
        vocabulary.attributes[static_cast<size_t>(id)] = USER_DEFINED_TOKEN;
        correct(vocabulary, "always_shown", quoted(text) + " becomes a user-defined token, which is always shown", id);
    }
    for (const SpecialId each : {EOS, EOT, EOM}) {
        const int32_t id = vocabulary.special_ids[each];
        if (id == NO_TOKEN || !ends.insert(id).second) continue;
        correct(vocabulary, "end_of_generation",
                std::string("the ") + SPECIAL_KINDS[each].name + " token " + std::to_string(id) +
                    " was not an end-of-generation token, and becomes one",
                id);
    }
    // o200k_harmony and solar-open: <|end|> ends a message, not the generation.
    const bool calls = is_end("<|call|>") || is_end("<|calls|>"), returns = is_end("<|return|>") || is_end("<|flush|>");
    const bool has_rfl = id_of(RFL_PARAMETER) != NO_TOKEN && !lacking.count(RFL_PARAMETER);
    const bool keeps = is_end("</s>") && (is_end("<|tool_response>") || is_end("<|plamo:eos|>") || has_rfl);
    if (is_end("<|end|>") && calls && returns) no_end("<|end|>", USER_DEFINED_TOKEN, " ends a message");
    if (keeps) no_end("</s>", NORMAL_TOKEN, " is a normal token");
    vocabulary.end_of_generation.assign(ends.begin(), ends.end());
}

void set_strip_attributes(const Metadata &file, const std::string &named_pre, Vocabulary &vocabulary) {
    const std::string architecture = file.string(ARCHITECTURE, ""), name = lowered(file.string(NAME, ""));
    if (has_any(named_pre, PRE_TOKENIZERS_THAT_STRIP_MASK) || has_any(architecture, ARCHITECTURES_THAT_STRIP_MASK)) {
        set_left_strip(vocabulary, "<mask>");
    } else if (has_any(name, PHI_3)) {
        for (const char *text : {"</s>", "<unk>", "<s>", "<|endoftext|>"}) {
            if (vocabulary.id_of(text) != NO_TOKEN) continue;
            throw file.error(NAME, std::string("the model's name says Phi-3, but it has no token ") + text + "; llama.cpp refuses it");
        }
        for (const int32_t id : vocabulary.special_tokens) vocabulary.attributes[static_cast<size_t>(id)] |= RSTRIP_TOKEN;
        vocabulary.attributes[static_cast<size_t>(vocabulary.id_of("</s>"))] |= RSTRIP_TOKEN;
        for (const char *text : KEEPING_SPACE) {
            uint16_t &attribute = vocabulary.attributes[static_cast<size_t>(vocabulary.id_of(text))];
            attribute = static_cast<uint16_t>(attribute & ~RSTRIP_TOKEN);
        }
    } else if (name.find(MODERN_BERT) != std::string::npos) {
        set_left_strip(vocabulary, "[MASK]");
    }
}

}  // namespace ggufbpe
