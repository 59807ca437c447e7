/* Settings: a plain struct described by a table, one row a field.
 *
 * The table is an X-macro file whose rows are INT, REAL, BOOL, CHOICE and TEXT; it is expanded
 * twice, into the struct's fields and into the rows below. Defaults, bounds, `key=value`, JSON both
 * ways, "did you mean" and the help all come from the rows, so a new setting is one line. Dashes
 * and underscores in a key are the same.
 *
 *     typedef struct engine {
 *     #include "base/settings_fields.h"
 *     #include "engine.def"
 *     #include "base/settings_end.h"
 *     } engine;
 *     static const qkv_setting rows[] = {
 *     #define SETTINGS_OWNER engine
 *     #include "base/settings_rows.h"
 *     #include "engine.def"
 *     #include "base/settings_end.h"
 *     };
 */
#ifndef QKV_BASE_SETTINGS_H
#define QKV_BASE_SETTINGS_H

#include "base/json.h"

#define QKV_SETTING_TEXT_MAX 256 /* bytes of a TEXT field, NUL included */

typedef enum qkv_setting_type {
    QKV_SETTING_INT,    /* int64_t */
    QKV_SETTING_REAL,   /* double */
    QKV_SETTING_BOOL,   /* bool */
    QKV_SETTING_CHOICE, /* int: index into a NULL-terminated list of names */
    QKV_SETTING_TEXT    /* char[QKV_SETTING_TEXT_MAX] */
} qkv_setting_type;

typedef struct qkv_setting {
    const char *name;
    qkv_setting_type type;
    size_t offset;
    double standard, min, max; /* integers are exact up to 2^53 */
    const char *const *choices;
    const char *text; /* the default of a TEXT */
    const char *help;
} qkv_setting;

/* A table and the struct that it describes. Functions take several, so that one command line, one
 * file and one "did you mean" can cover a model's and a training run's settings together. */
typedef struct qkv_settings {
    const qkv_setting *rows;
    size_t n;
    void *values;
    /* Of the field from which on settings are seldom used: those are written only where they are not
     * the default; 0: none. */
    size_t seldom;
    bool *given; /* n: which keys somebody has set; or NULL, where nobody asks */
} qkv_settings;

enum { QKV_SETTINGS_MAX = 128 }; /* rows of a table, for arrays of `given` */

void qkv_settings_default(const qkv_settings *s);

/* Sets one field from text; the message of a failure names key, value and what is allowed. */
qkv_status qkv_settings_set(const qkv_settings *groups, size_t n, const char *key,
                            const char *value);
/* The same from "key=value", or several separated by blanks; a text may have blanks in it. */
qkv_status qkv_settings_assign(const qkv_settings *groups, size_t n, const char *assignments);

/* The row named `key` (NULL: none) and, in *group, where it was found. */
const qkv_setting *qkv_settings_find(const qkv_settings *groups, size_t n, const char *key,
                                     size_t *group);

/* Whether somebody has set `key`: a wish, even where it is what the default would be. */
bool qkv_settings_given(const qkv_settings *s, const char *key);

/* Reads the members of a JSON object. A key that no table has is refused unless it is in `foreign`
 * (NULL-terminated, or NULL: none), which are other programs' keys. */
qkv_status qkv_settings_read(const qkv_settings *groups, size_t n, qkv_json_at object,
                             const char *const *foreign);
/* The same from the file at `path`. */
qkv_status qkv_settings_load(const qkv_settings *groups, size_t n, const char *path,
                             const char *const *foreign);
/* Writes every field as "key": value into an open object. */
void qkv_settings_write(const qkv_settings *s, qkv_json_out *j);

/* One field as in qkv_description_value: *number, and *text of a CHOICE or TEXT, else NULL. */
void qkv_setting_value(const qkv_settings *s, const qkv_setting *row, double *number,
                       const char **text);

#endif
