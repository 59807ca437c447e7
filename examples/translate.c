/* Translates one line with the three best of a beam, and shows what each token cost.
 *
 *     translate FOLDER TEXT                      cc translate.c $(pkg-config --cflags --libs qkv)
 */
#include <qkv.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    qkv_text_model *model;
    qkv_translations found;
    if (argc != 3) {
        fprintf(stderr, "usage: translate FOLDER TEXT\n");
        return 2;
    }
    qkv_status status = qkv_text_model_open(argv[1], &model);
    if (status != QKV_OK) {
        fprintf(stderr, "translate: %s\n", qkv_error());
        return qkv_status_exit_code(status);
    }
    const qkv_text source = {argv[2], strlen(argv[2])};
    const qkv_translate_options options = {.beam = 4, .nbest = 3};
    status = qkv_translate(model, &source, 1, &options, &found);
    if (status == QKV_OK) {
        for (size_t i = 0; i < found.nbest && found.at[i].text; i++)
            printf("%s\t%.3f in %zu tokens\n", found.at[i].text, found.at[i].log_prob,
                   found.at[i].n);
        qkv_translations_free(&found);
    } else {
        fprintf(stderr, "translate: %s\n", qkv_error());
    }
    qkv_text_model_close(model);
    return qkv_status_exit_code(status);
}
