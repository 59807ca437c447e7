/* The class of each line on standard input, with its probability, by a model that qkv trained.
 *
 *     classify FOLDER < lines                    cc classify.c $(pkg-config --cflags --libs qkv)
 */
#include <qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    qkv_text_model *model;
    char line[4096];
    size_t classes = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: classify FOLDER < lines\n");
        return 2;
    }
    qkv_status status = qkv_text_model_open(argv[1], &model);
    if (status != QKV_OK) {
        fprintf(stderr, "classify: %s\n", qkv_error());
        return qkv_status_exit_code(status);
    }
    while (qkv_text_model_label(model, classes)) classes++;
    float *p = calloc(classes, sizeof *p);
    while (p && status == QKV_OK && fgets(line, sizeof line, stdin)) {
        const qkv_text text = {line, strcspn(line, "\n")};
        size_t best = 0;
        /* One text at a time is simple; many in one call are faster. */
        if ((status = qkv_classify(model, &text, 1, p)) != QKV_OK) break;
        for (size_t i = 1; i < classes; i++)
            if (p[i] > p[best]) best = i;
        printf("%s\t%.3f\n", qkv_text_model_label(model, best), (double)p[best]);
    }
    if (status != QKV_OK) fprintf(stderr, "classify: %s\n", qkv_error());
    free(p);
    qkv_text_model_close(model);
    return qkv_status_exit_code(status);
}
