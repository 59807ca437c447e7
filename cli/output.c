/* Results that go to a file. */
#include "command.h"

#include <errno.h>
#include <string.h>

bool cli_ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

qkv_show cli_show(const cli_args *a) {
    return cli_flag(a, "json") ? QKV_SHOW_JSON : QKV_SHOW_TABLE;
}

bool cli_ending_is(const char *path, const char *endings) {
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path,
               *dot = path ? strrchr(name, '.') : NULL;
    if (!dot || cli_among(endings, dot)) return true;
    cli_usage_error("%s: cannot write \"%.20s\" files, only %s", path, dot, endings);
    return false;
}

int cli_write_to(const char *path, qkv_status status, char *text) {
    if (status != QKV_OK) return cli_print(status, text);
    FILE *file = fopen(path, "w");
    bool written = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0) written = false;
    qkv_text_free(text);
    if (written) return 0;
    fprintf(stderr, "qkv: cannot write %s: %s\n", path, strerror(errno));
    return qkv_status_exit_code(QKV_FAILED);
}
