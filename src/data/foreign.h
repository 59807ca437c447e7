/* Files that are not UTF-8 text: what they are, and what makes text of them. */
#ifndef QKV_DATA_FOREIGN_H
#define QKV_DATA_FOREIGN_H

#include "base/error.h"

/* QKV_OK for UTF-8 text; else QKV_BAD_FILE with a message that names what it is and the command or
 * step that helps. `path` is for messages. */
qkv_status qkv_text_check(const char *path, const char *data, size_t n);

#endif
