/* Chat templates: what Jinja makes of them (golden/chat_golden.json), what is refused by name, and
 * the bounds of a template from a file. */
#include "harness.h"

#include <stdlib.h>

#include "base/file.h"
#include "chat/jinja.h"

static const qkv_json_limits no_limits = {.bytes = SIZE_MAX, .nodes = 1 << 22, .depth = 64};

static qkv_status run(const char *text, size_t len, const qkv_jinja_dict *context, qkv_buf *out) {
    qkv_jinja *t;
    qkv_buf_clear(out);
    QKV_TRY(qkv_jinja_parse(text, len, &t));
    const qkv_status status = qkv_jinja_run(t, context, out);
    qkv_jinja_free(t);
    return status == QKV_OK ? out->status : status;
}

static void check_case(qkv_json_at at, qkv_buf *out) {
    const char *name, *template, *want;
    size_t len, template_len, want_len;
    qkv_json_at context;
    qkv_arena arena;
    qkv_jinja_value value;
    qkv_arena_init(&arena);
    assert_ok(qkv_json_get_string(at, "name", true, &name, &len));
    assert_ok(qkv_json_get_string(at, "template", true, &template, &template_len));
    assert_true(qkv_json_member(at, "context", &context));
    assert_ok(qkv_jinja_of_json(&arena, context, &value));
    assert_int_equal(value.type, QKV_JINJA_DICT);
    const qkv_status status = run(template, template_len, value.dict, out);
    qkv_json_at error;
    if (qkv_json_member(at, "error", &error)) {
        qkv_json_string(error, &want, &want_len);
        if (status == QKV_OK || !memmem(qkv_error(), strlen(qkv_error()), want, want_len))
            fail_msg("%.*s: wanted the error \"%.*s\"", (int)len, name, (int)want_len, want);
    } else {
        assert_ok(qkv_json_get_string(at, "text", true, &want, &want_len));
        if (status != QKV_OK) fail_msg("%.*s: %s", (int)len, name, qkv_error());
        qkv_buf_puts(out, "");
        if (out->len != want_len || memcmp(out->data, want, want_len))
            fail_msg("%.*s: \"%.*s\"\nwanted \"%.*s\"", (int)len, name, (int)out->len, out->data,
                     (int)want_len, want);
    }
    qkv_arena_free(&arena);
}

static void golden(void **state) {
    (void)state;
    qkv_file file;
    qkv_json doc;
    qkv_json_at at;
    qkv_buf out = {0};
    size_t n = 0;
    assert_ok(qkv_file_open(SOURCE_DIR "/tests/golden/chat_golden.json", SIZE_MAX, &file));
    assert_ok(qkv_json_parse(&doc, "golden", file.data, file.size, no_limits));
    const qkv_json_at root = qkv_json_root(&doc);
    for (bool more = qkv_json_first(root, &at); more; more = qkv_json_next(root, &at), n++)
        check_case(at, &out);
    assert_true(n >= 60);
    qkv_buf_free(&out);
    qkv_json_free(&doc);
    qkv_file_close(&file);
}

static void expect(const char *template, qkv_status code, const char *words) {
    static const qkv_jinja_dict nothing;
    qkv_buf out = {0};
    assert_fails(run(template, strlen(template), &nothing, &out), code, words);
    qkv_buf_free(&out);
}

static void refused_by_name(void **state) {
    (void)state;
    expect("a\n{% macro f() %}{% endmacro %}", QKV_BAD_FILE, "line 2: the tag \"macro\"");
    expect("{% include 'x' %}", QKV_BAD_FILE, "the tag \"include\"");
    expect("{{ x | attr('y') }}", QKV_BAD_FILE, "the filter \"attr\"");
    expect("{{ x is callable }}", QKV_BAD_FILE, "the test \"callable\"");
    expect("{{ open('x') }}", QKV_BAD_FILE, "the function \"open\"");
    expect("{{ x.__class__() }}", QKV_BAD_FILE, "the method \"__class__\"");
    expect("{{ 2 ** 3 }}", QKV_BAD_FILE, "\"**\"");
    expect("{{ 1 < 2 < 3 }}", QKV_BAD_FILE, "in a row");
    expect("{{ x.y.z }}", QKV_BAD_FILE, "\"y\" of something undefined");
    expect("{{ 'a' + 1 }}", QKV_BAD_FILE, "a text + an integer");
    expect("{{ [1] }}", QKV_BAD_FILE, "a list cannot be written");
    expect("{{ 'x' | trim('a', 'b') }}", QKV_BAD_FILE, "too many arguments of \"trim\"");
    expect("{{ [] | tojson(sort_keys=true) }}", QKV_BAD_FILE, "\"sort_keys\"");
    expect("{{ raise_exception('no, thanks') }}", QKV_USAGE, "says: no, thanks");
}

static void broken(void **state) {
    (void)state;
    static const char *const ends[] = {"{{ x",      "{{ 'x }}",    "{% if x %}",  "{# x",
                                       "{{ }}",     "{% %}",       "{{ x | }}",   "{{ (x }}",
                                       "{{ [1 }}",  "{% else %}",  "{{ 1 / 0 }}", "{{ x. }}",
                                       "{% for %}", "{% break %}", "{{ $ }}"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) expect(ends[i], QKV_BAD_FILE, "line 1");
    /* a good template cut anywhere is read or refused */
    static const char whole[] = "{% for m in [{'a': 'b'}] if m.a is string %}{{ m['a'] | trim ~ "
                                "(1 if loop.last else -2) }}{%- else -%}{# c #}{% endfor %}";
    static const qkv_jinja_dict nothing;
    qkv_buf out = {0};
    for (size_t n = 0; n < sizeof whole; n++) run(whole, n, &nothing, &out);
    qkv_buf_free(&out);
}

static void repeat(qkv_buf *b, const char *what, size_t n) {
    for (size_t i = 0; i < n; i++) qkv_buf_puts(b, what);
}

/* Nothing in a template decides how deep, how long or how large we go. */
static void bounds(void **state) {
    (void)state;
    static const struct {
        const char *before, *each, *after;
        size_t n;
        const char *words;
    } cases[] = {
        {"{{ ", "(", "", 100000, "nested deeper"},
        {"{{ ", "not ", "x }}", 100000, "nested deeper"},
        {"{{ ", "-", "1 }}", 100000, "nested deeper"},
        {"{{ 1", " + 1", " }}", 100000, "parts"},
        {"{{ x", ".y", " }}", 100000, "parts"},
        {"{{ 'x'", " | trim", " }}", 100000, "parts"},
        {"", "{% if x %}", "", 1000, "nested deeper"},
        {"{% set x = 'abcdefgh' %}", "{% set x = x + x %}", "", 60, "bytes"},
        {"", "x", "", (1 << 20) + 1, "longer than"},
        {"{% for a in range(9999) %}{% for b in range(9999) %}", "", "{% endfor %}{% endfor %}", 0,
         "chat template"},
        {"", "{{ x }}", "", 140000, "parts"},
    };
    static const qkv_jinja_dict nothing;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_buf t = {0}, out = {0};
        qkv_buf_puts(&t, cases[i].before);
        repeat(&t, cases[i].each, cases[i].n);
        qkv_buf_puts(&t, cases[i].after);
        assert_fails(run(t.data, t.len, &nothing, &out), QKV_BAD_FILE, cases[i].words);
        qkv_buf_free(&t);
        qkv_buf_free(&out);
    }
    /* long, and fine: elif after elif is no nesting */
    qkv_buf t = {0}, out = {0};
    qkv_buf_puts(&t, "{% if x %}");
    repeat(&t, "{% elif x %}", 20000);
    qkv_buf_puts(&t, "{% else %}yes{% endif %}");
    assert_ok(run(t.data, t.len, &nothing, &out));
    assert_int_equal(out.len, 3);
    qkv_buf_free(&t);
    qkv_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(refused_by_name),
        cmocka_unit_test(broken),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
