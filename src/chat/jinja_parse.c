/* Parsing templates: text and tags. */
#include "chat/jinja_parser.h"
#include "base/mem.h"

#include <string.h>

/* ---- statements ---- */

/* The end of a tag: "%}" (or "}}"), and what it takes of the text behind. */
static qkv_status close_tag(jinja_parser *p, char mark) {
    const qkv_text t = p->next.text;
    if (p->next.kind != T_CLOSE || t.data[t.len - 2] != mark)
        return jinja_refuse(p, "the end of the tag expected before \"%.*s\"", (int)t.len,
                            t.data ? t.data : "");
    if (t.data[0] == '-')
        while (p->at < p->end && strchr(" \t\n\r\f\v", *p->at) && *p->at)
            p->line += *p->at++ == '\n';
    else if (mark == '%' && t.data[0] != '+' && p->at < p->end && *p->at == '\n')
        p->at++, p->line++;
    return QKV_OK;
}

/* The next tag begins here, or p->end. */
static const char *find_tag(const jinja_parser *p) {
    for (const char *s = p->at; s + 1 < p->end; s++)
        if (*s == '{' && (s[1] == '{' || s[1] == '%' || s[1] == '#')) return s;
    return p->end;
}

/* The text before a tag, without what the tag takes of it. */
static qkv_status text_before(jinja_parser *p, const char *tag, jinja_node ***end) {
    const char *from = p->at, *to = tag;
    const bool block = tag < p->end && tag[1] != '{', minus = tag + 2 < p->end && tag[2] == '-',
               plus = tag + 2 < p->end && tag[2] == '+';
    if (tag < p->end && minus)
        while (to > from && strchr(" \t\n\r\f\v", to[-1])) to--;
    if (block && !minus && !plus) { /* lstrip_blocks: blanks alone before it on its line */
        const char *line = to;
        while (line > from && (line[-1] == ' ' || line[-1] == '\t')) line--;
        if (line == p->start || line[-1] == '\n') to = line;
    }
    if (to > from) {
        QKV_TRY(jinja_new_node(p, JINJA_TEXT, *end));
        (**end)->literal = qkv_jinja_text(from, (size_t)(to - from));
        *end = &(**end)->next;
    }
    for (const char *s = from; s < tag; s++) p->line += *s == '\n';
    p->at = tag;
    return QKV_OK;
}

static qkv_status comment(jinja_parser *p) {
    const char *s = p->at + 2;
    while (s + 1 < p->end && (s[0] != '#' || s[1] != '}')) p->line += *s++ == '\n';
    if (s + 1 >= p->end) return jinja_refuse(p, "a comment without its end");
    p->at = s + 2;
    p->next.kind = T_CLOSE; /* what it takes of the text behind is as of a tag */
    p->next.text = s[-1] == '-' ? (qkv_text){"-%}", 3} : (qkv_text){"%}", 2};
    return close_tag(p, '%');
}

static qkv_status statements(jinja_parser *p, const char *const *until, jinja_node **out,
                             qkv_text *ended);

/* Behind the name of a tag: its end, then statements up to one of `until`. */
static qkv_status body(jinja_parser *p, const char *const *until, jinja_node **out,
                       qkv_text *ended) {
    QKV_TRY(close_tag(p, '%'));
    return statements(p, until, out, ended);
}

static qkv_status if_tag(jinja_parser *p, jinja_node *n) {
    static const char *const until[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif",
                                                                                         NULL};
    qkv_text ended;
    QKV_TRY(jinja_expression(p, &n->a));
    QKV_TRY(body(p, until, &n->list, &ended));
    while (jinja_text_is(ended, "elif")) {
        QKV_TRY(jinja_new_node(p, JINJA_IF, &n->otherwise));
        n = n->otherwise;
        n->negated = true; /* an elif, which is run in a loop */
        QKV_TRY(jinja_expression(p, &n->a));
        QKV_TRY(body(p, until, &n->list, &ended));
    }
    return jinja_text_is(ended, "else") ? body(p, last, &n->otherwise, &ended) : QKV_OK;
}

/* "a", "a, b", "space.a" */
static qkv_status targets(jinja_parser *p, bool fields, jinja_node **out) {
    bool more = true;
    while (more) {
        QKV_TRY(jinja_new_node(p, JINJA_NAME, out));
        QKV_TRY(jinja_read_name(p, &(*out)->name));
        bool dot = false;
        if (fields) QKV_TRY(jinja_skip(p, ".", &dot));
        if (dot) {
            jinja_node *space = *out;
            QKV_TRY(jinja_new_node(p, JINJA_FIELD, out));
            (*out)->a = space;
            QKV_TRY(jinja_read_name(p, &(*out)->name));
        }
        out = &(*out)->next;
        QKV_TRY(jinja_skip(p, ",", &more));
    }
    return QKV_OK;
}

static qkv_status for_tag(jinja_parser *p, jinja_node *n) {
    static const char *const until[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    qkv_text ended;
    bool condition;
    QKV_TRY(targets(p, false, &n->targets));
    QKV_TRY(jinja_expect(p, "in"));
    QKV_TRY(jinja_deeper(p));
    QKV_TRY(jinja_condition(p, &n->a)); /* "if" behind it is the loop's */
    p->depth--;
    QKV_TRY(jinja_skip(p, "if", &condition));
    if (condition) QKV_TRY(jinja_expression(p, &n->b));
    if (jinja_sees(p, "recursive")) return jinja_refuse(p, "\"recursive\" is not implemented");
    p->loops++;
    QKV_TRY(body(p, until, &n->list, &ended));
    p->loops--;
    return jinja_text_is(ended, "else") ? body(p, last, &n->otherwise, &ended) : QKV_OK;
}

static qkv_status set_tag(jinja_parser *p, jinja_node *n) {
    static const char *const until[] = {"endset", NULL};
    qkv_text ended;
    bool value;
    QKV_TRY(targets(p, true, &n->targets));
    QKV_TRY(jinja_skip(p, "=", &value));
    if (!value) {
        if (n->targets->next) return jinja_refuse(p, "\"=\" expected");
        return body(p, until, &n->list, &ended);
    }
    QKV_TRY(jinja_expression(p, &n->a));
    if (!jinja_sees(p, ",")) return QKV_OK;
    jinja_node *list = NULL, **end = &n->a->next; /* a, b = 1, 2 */
    for (bool more = true; more;) {
        QKV_TRY(jinja_advance(p));
        QKV_TRY(jinja_expression(p, end));
        end = &(*end)->next;
        more = jinja_sees(p, ",");
    }
    QKV_TRY(jinja_new_node(p, JINJA_LIST_OF, &list));
    list->list = n->a;
    n->a = list;
    return QKV_OK;
}

static qkv_status generation_tag(jinja_parser *p, jinja_node *n) {
    static const char *const until[] = {"endgeneration", NULL};
    qkv_text ended;
    return body(p, until, &n->list, &ended);
}

static qkv_status loop_tag(jinja_parser *p, jinja_node *n) {
    (void)n;
    return p->loops ? QKV_OK : jinja_refuse(p, "outside of a loop");
}

static const struct {
    const char *name;
    jinja_kind kind;
    qkv_status (*parse)(jinja_parser *p, jinja_node *n);
} tags[] = {{"if", JINJA_IF, if_tag},
            {"for", JINJA_FOR, for_tag},
            {"set", JINJA_SET, set_tag},
            {"break", JINJA_BREAK, loop_tag},
            {"continue", JINJA_CONTINUE, loop_tag},
            {"generation", JINJA_BLOCK, generation_tag}};

static qkv_status tag(jinja_parser *p, qkv_text word, jinja_node **out) {
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (jinja_text_is(word, tags[i].name)) {
            QKV_TRY(jinja_new_node(p, tags[i].kind, out));
            QKV_TRY(jinja_deeper(p));
            QKV_TRY(tags[i].parse(p, *out));
            p->depth--;
            return close_tag(p, '%');
        }
    return jinja_refuse(p, "the tag \"%.*s\" is not implemented", (int)word.len, word.data);
}

/* Begins a tag: its mark and sign. */
static qkv_status open_tag(jinja_parser *p) {
    p->at += 2;
    if (p->at < p->end && (*p->at == '-' || *p->at == '+')) p->at++;
    return jinja_advance(p);
}

/* Statements up to the end of the template, or (until not NULL) to a tag of one of those names, of
 * which the name is read. */
static qkv_status statements(jinja_parser *p, const char *const *until, jinja_node **out,
                             qkv_text *ended) {
    *out = NULL;
    for (;;) {
        const char *at = find_tag(p);
        QKV_TRY(text_before(p, at, &out));
        if (at == p->end)
            return until ? jinja_refuse(p, "the template ends before \"%s\"",
                                        until[1] ? until[1] : until[0])
                         : QKV_OK;
        if (at[1] == '#') {
            QKV_TRY(comment(p));
            continue;
        }
        const bool value = at[1] == '{';
        QKV_TRY(open_tag(p));
        if (value) {
            QKV_TRY(jinja_new_node(p, JINJA_WRITE, out));
            QKV_TRY(jinja_expression(p, &(*out)->a));
            QKV_TRY(close_tag(p, '}'));
        } else {
            qkv_text word;
            QKV_TRY(jinja_read_name(p, &word));
            for (int i = 0; until && until[i]; i++)
                if (jinja_text_is(word, until[i])) {
                    *ended = word;
                    return QKV_OK;
                }
            QKV_TRY(tag(p, word, out));
        }
        out = &(*out)->next;
    }
}

/* ---- the whole ---- */

/* A copy with \n for \r\n, without the last line end, as Jinja reads a source. */
static qkv_status copy_text(qkv_jinja *t, const char *text, size_t len, size_t *n) {
    QKV_TRY_ALLOC(t->text = qkv_alloc(len + 1));
    *n = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] != '\r' || i + 1 == len || text[i + 1] != '\n') t->text[(*n)++] = text[i];
    if (*n && t->text[*n - 1] == '\n') --*n;
    t->text[*n] = 0;
    return QKV_OK;
}

qkv_status qkv_jinja_parse(const char *text, size_t len, qkv_jinja **out) {
    *out = NULL;
    if (len > JINJA_BYTES)
        return qkv_fail(QKV_BAD_FILE, "chat template: longer than %u bytes", JINJA_BYTES);
    qkv_jinja *t = qkv_zalloc(1, sizeof *t);
    if (!t) return QKV_FAILED;
    qkv_arena_init(&t->arena);
    size_t n = 0;
    qkv_status status = copy_text(t, text, len, &n);
    if (status == QKV_OK) {
        jinja_parser p = {.arena = &t->arena, .start = t->text, .at = t->text, .line = 1};
        p.end = t->text + n;
        status = statements(&p, NULL, &t->body, NULL);
    }
    if (status != QKV_OK) {
        qkv_jinja_free(t);
        return status;
    }
    *out = t;
    return QKV_OK;
}

void qkv_jinja_free(qkv_jinja *t) {
    if (!t) return;
    qkv_arena_free(&t->arena);
    qkv_free(t->text);
    qkv_free(t);
}
