/* The file, and the mark of a request: see outcome.h. */
#include "run/outcome.h"
#include "base/sys.h"
#include "base/file.h"
#include "folder/folder.h"
#include "qkv.h"

#include <stddef.h>
#include <string.h>

static const qkv_setting rows[] = {
#define SETTINGS_OWNER qkv_outcome
#include "base/settings_rows.h"
#include "run/outcome.def"
#include "base/settings_end.h"
};

static qkv_settings settings_of(qkv_outcome *o) {
    return (qkv_settings){.rows = rows, .n = sizeof rows / sizeof *rows, .values = o};
}

qkv_status qkv_outcome_read(const char *folder, qkv_outcome *out, bool *found) {
    const qkv_settings s = settings_of(out);
    qkv_buf path = {0};
    *found = false;
    qkv_settings_default(&s);
    QKV_TRY(qkv_folder_part(folder, QKV_PART_RESULT, &path));
    *found = qkv_file_exists(path.data) && qkv_settings_load(&s, 1, path.data, NULL) == QKV_OK;
    qkv_buf_free(&path);
    return QKV_OK;
}

qkv_status qkv_outcome_write(const char *folder, qkv_outcome *o) {
    const qkv_settings s = settings_of(o);
    qkv_buf text = {0}, path = {0};
    qkv_json_out j = qkv_json_begin(&text, 2);
    qkv_json_open(&j, '{');
    qkv_settings_write(&s, &j);
    qkv_json_close(&j, '}');
    qkv_buf_putc(&text, '\n');
    qkv_status status = text.status;
    if (status == QKV_OK) status = qkv_folder_part(folder, QKV_PART_RESULT, &path);
    if (status == QKV_OK) status = qkv_file_write(path.data, text.data, text.len);
    qkv_buf_free(&text);
    qkv_buf_free(&path);
    return status;
}

/* ---- the mark ---- */

static void put_text(qkv_buf *b, const char *text) {
    qkv_buf_puts(b, text ? text : "");
    qkv_buf_putc(b, 0);
}

/* A file is what it was if it has its size and was not written since; a folder of files is too much
 * to look through. */
static bool put_file(qkv_buf *b, const char *path) {
    struct stat s;
    if (!path) return true;
    if (strcmp(path, "-") == 0 || qkv_sys.stat(path, &s) != 0 || !S_ISREG(s.st_mode)) return false;
    const long long known[] = {(long long)s.st_size, (long long)s.st_mtim.tv_sec,
                               (long long)s.st_mtim.tv_nsec, (long long)s.st_ino};
    put_text(b, path);
    qkv_buf_add(b, known, sizeof known);
    return true;
}

qkv_status qkv_request_mark(const qkv_train_request *q, char mark[33]) {
    qkv_buf b = {0};
    bool known = !q->rows && put_file(&b, q->config);
    mark[0] = 0;
    put_text(&b, q->task);
    put_text(&b, q->preset);
    put_text(&b, q->init);
    for (int k = 0; k < 2; k++) {
        for (const char *const *p = k ? q->valid : q->train; p && *p && known; p++)
            known = put_file(&b, *p);
        put_text(&b, NULL);
    }
    for (const char *const *pair = q->set; pair && *pair; pair++) put_text(&b, *pair);
    const qkv_status status = b.status;
    if (status == QKV_OK && known) qkv_hash_hex(b.data, b.len, mark);
    qkv_buf_free(&b);
    return status;
}
