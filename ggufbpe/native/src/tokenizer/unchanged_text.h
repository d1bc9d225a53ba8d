// How much of a text keeps its bytes in the words of a model that drops the white space between them (WordPiece): there, the
// lengths of tokens tell where they begin.

#pragma once

#include <cstddef>
#include <cstdint>

#include "poll.h"
#include "text_model.h"

namespace ggufbpe {

class UnchangedText {
public:
    // The model must outlive the object.
    explicit UnchangedText(const TextModel &model) : model_(model) {}

    // How many bytes of a text, from its beginning on, have only white space and characters that are tokens as they are.
    size_t length(const unsigned char *text, size_t size, Pace &pace);

private:
    bool is_changed(const unsigned char *text, const unsigned char *end, unsigned &length);

    const TextModel &model_;
    struct {
        uint32_t code_point;  // 0 for none
        bool is_unchanged;
    } known_[512]{};  // characters beyond ASCII, by their lowest bits
};

}  // namespace ggufbpe
