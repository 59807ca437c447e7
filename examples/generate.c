/* Goes on from a prompt and prints the text as it comes.
 *
 *     generate FOLDER PROMPT                     cc generate.c $(pkg-config --cflags --libs qkv)
 */
#include <qkv.h>

#include <stdio.h>
#include <string.h>

/* Gets whole UTF-8 characters; false would end the text here. */
static bool write_out(void *user, const char *text, size_t len) {
    fwrite(text, 1, len, user);
    fflush(user);
    return true;
}

int main(int argc, char **argv) {
    qkv_text_model *model;
    if (argc != 3) {
        fprintf(stderr, "usage: generate FOLDER PROMPT\n");
        return 2;
    }
    qkv_status status = qkv_text_model_open(argv[1], &model);
    if (status != QKV_OK) {
        fprintf(stderr, "generate: %s\n", qkv_error());
        return qkv_status_exit_code(status);
    }
    const qkv_generate_options options = {.tokens = 60,
                                          .temperature = 0.8,
                                          .top_p = 0.95,
                                          .seed = 1,
                                          .write = write_out,
                                          .user = stdout};
    qkv_generated about;
    printf("%s", argv[2]);
    status = qkv_generate(model, argv[2], strlen(argv[2]), &options, NULL, &about);
    if (status == QKV_OK)
        printf("\n(%zu tokens, log-probability %.2f)\n", about.tokens, about.log_prob);
    else
        fprintf(stderr, "generate: %s\n", qkv_error());
    qkv_text_model_close(model);
    return qkv_status_exit_code(status);
}
