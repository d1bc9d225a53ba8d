/* The ids of a text: encode MODEL.gguf TEXT */
#include <ggufbpe.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
    ggufbpe_tokenizer *tokenizer;
    ggufbpe_error error;
    if (count != 3) return fprintf(stderr, "usage: encode MODEL.gguf TEXT\n"), 2;
    if (ggufbpe_open_file(arguments[1], NULL, &tokenizer, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    ggufbpe_encoding *encoding = ggufbpe_encoding_new();
    if (!encoding) return 1;
    if (ggufbpe_encode(tokenizer, arguments[2], strlen(arguments[2]), NULL, encoding, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    for (size_t i = 0; i < ggufbpe_encoding_count(encoding); ++i) printf("%d\n", (int)ggufbpe_encoding_ids(encoding)[i]);
    ggufbpe_encoding_free(encoding);
    ggufbpe_close(tokenizer);
    return 0;
}
