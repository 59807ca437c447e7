/* The JSON reader and writer: what is accepted, what is refused and where, limits on both sides,
 * numbers to the last bit, walking, typed getters, and agreement with jansson where that is
 * installed. */
#include "harness.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/rng.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

static const qkv_json_limits wide = {.bytes = 1 << 28, .nodes = 1 << 26, .depth = 64};

static qkv_status parse(qkv_json *doc, const char *text, size_t len) {
    return qkv_json_parse(doc, "t.json", text, len, wide);
}

/* ---- accepted and refused ---- */

static const char *const accepted[] = {
    "null",
    "true",
    "false",
    " \t\r\n 1 \n",
    "0",
    "-0",
    "-1",
    "1.5",
    "1e5",
    "1E+5",
    "1e-5",
    "0.1e1",
    "123456789012345678901234567890",
    "\"\"",
    "\"abc\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0041\"",
    "\"\\u0000\"",
    "\"\\uD834\\uDd1e\"",
    "\"\xC3\xA9\"",
    "\"\xF4\x8F\xBF\xBF\"",
    "\"\x7f\"",
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[[]]",
    "[[],[[]]]",
    "{}",
    "{ }",
    "{\"a\":1}",
    "{\"\":0}",
    "{\"a\":{\"a\":{\"a\":[]}}}",
    "[1,\n2\t,\r3]",
    "{\"a\":1,\"b\":[true,false,null]}",
    "[\"\xE2\x82\xAC\",\"\\u20ac\"]",
    "1e-400",
    "[{},{}]",
    "{\"a\":\"\\u0061\"}",
};

/* text, and words that the message must have: the place and the reason */
static const char *const refused[][2] = {
    {"", "t.json:1:1: JSON: the text ends where a value"},
    {" ", "ends where a value"},
    {"nul", "'n' where a value"},
    {"True", "'T' where a value"},
    {"NaN", "'N' where"},
    {"Infinity", "'I'"},
    {"-Infinity", "malformed number"},
    {"-", "malformed number"},
    {"+1", "'+' where a value"},
    {"01", "malformed number"},
    {"-01", "malformed number"},
    {"1.", "malformed number"},
    {".5", "'.' where a value"},
    {"1.e1", "malformed number"},
    {"1e", "malformed number"},
    {"1e+", "malformed number"},
    {"0x1", "'x' where the end"},
    {"1 2", ":1:3:"},
    {"1e999", "too large"},
    {"-1e999999999", "too large"},
    {"[1,]", "']' where a value"},
    {"[,1]", "',' where a value"},
    {"[1 2]", "'2' where ',' or ']'"},
    {"[1", "ends where ',' or ']'"},
    {"[", "ends where a value"},
    {"]", "']' where a value"},
    {"[1}", "'}' where ',' or ']'"},
    {"{\"a\":1]", "']' where ',' or '}'"},
    {"{", "ends where a key"},
    {"{\"a\"", "ends where ':'"},
    {"{\"a\":", "ends where a value"},
    {"{\"a\":1,}", "'}' where a key"},
    {"{a:1}", "'a' where a key"},
    {"{'a':1}", "where a key"},
    {"{1:1}", "'1' where a key"},
    {"{\"a\" 1}", "'1' where ':'"},
    {"{\"a\":1 \"b\":2}", "where ',' or '}'"},
    {"{\"a\":1,\n \"b\":2,\n \"a\":3}", "t.json:3:2: JSON: the key \"a\" is there twice"},
    {"{\"a\":1,\"\\u0061\":2}", "is there twice"},
    {"\"", "never ends"},
    {"\"abc", "never ends"},
    {"\"\\\"", "never ends"},
    {"\"\\", "never ends"},
    {"\"\\x\"", "an escape"},
    {"\"\\u12\"", "an escape"},
    {"\"\\u12g4\"", "an escape"},
    {"\"\\U0041\"", "an escape"},
    {"\"\\ud800\"", "surrogate"},
    {"\"\\ud800\\u0041\"", "surrogate"},
    {"\"\\udc00\"", "surrogate"},
    {"\"\\udc00\\ud800\"", "surrogate"},
    {"\"\\ud800\\ud800\"", "surrogate"},
    {"\"a\nb\"", "control character 0x0a"},
    {"\"\t\"", "control character 0x09"},
    {"\"\xff\"", "0xff is not UTF-8"},
    {"\"\xC0\x80\"", "not UTF-8"},
    {"\"\xED\xA0\x80\"", "not UTF-8"},
    {"\"\xF4\x90\x80\x80\"", "not UTF-8"},
    {"\"\xE2\x82\"", "not UTF-8"},
    {"\"\\\xC3\xA9\"", "an escape"},
    {"\xEF\xBB\xBF{}", "byte order mark"},
    {"[1]//x", "'/' where the end"},
    {"/**/1", "'/' where a value"},
    {"[1]\n\n  x", "t.json:3:3:"},
    {"\"\xC3\xA9\" x", "t.json:1:5:"},
    {"\xff", "byte 0xff where a value"},
    {"[\"a\",\n\"b\n\"]", "t.json:2:3:"},
};

static void test_accepts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        qkv_json doc;
        /* A copy without a NUL behind it, so that the sanitizer sees a byte too many. */
        size_t n = strlen(accepted[i]);
        char *exact = malloc(n);
        memcpy(exact, accepted[i], n);
        if (parse(&doc, exact, n) != QKV_OK) fail_msg("%s: refused: %s", accepted[i], qkv_error());
        qkv_json_free(&doc);
        free(exact);
    }
}

static void test_refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        qkv_json doc;
        size_t n = strlen(refused[i][0]);
        char *exact = malloc(n + !n);
        memcpy(exact, refused[i][0], n);
        qkv_status status = parse(&doc, exact, n);
        if (status != QKV_BAD_FILE) fail_msg("%s: accepted", refused[i][0]);
        if (!strstr(qkv_error(), refused[i][1]))
            fail_msg("%s: message \"%s\" lacks \"%s\"", refused[i][0], qkv_error(), refused[i][1]);
        free(exact);
    }
    qkv_json doc;
    assert_fails(parse(&doc, "[1]\0", 4), QKV_BAD_FILE, "byte 0x00");
    assert_fails(parse(&doc, "\"a\0b\"", 5), QKV_BAD_FILE, "control character 0x00");
}

/* ---- limits ---- */

static char *nested(size_t depth) {
    char *text = malloc(2 * depth + 1);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = 0;
    return text;
}

static void test_limits(void **state) {
    (void)state;
    qkv_json doc;
    char *at = nested(64), *over = nested(65), *deep = nested(200000);
    assert_ok(parse(&doc, at, 128));
    qkv_json_free(&doc);
    assert_fails(parse(&doc, over, 130), QKV_BAD_FILE, "t.json:1:65: JSON: nested deeper than 64");
    /* With a limit that allows it, 200,000 levels need no stack. */
    assert_ok(qkv_json_parse(&doc, "t", deep, 400000, (qkv_json_limits){400000, 200000, 200000}));
    qkv_json_free(&doc);
    free(at), free(over), free(deep);

    qkv_json_limits small = {.bytes = 8, .nodes = 3, .depth = 2};
    assert_ok(qkv_json_parse(&doc, "t", "[10, 20]", 8, small));
    qkv_json_free(&doc);
    assert_fails(qkv_json_parse(&doc, "t", "[10, 200]", 9, small), QKV_BAD_FILE,
                 "9 bytes of JSON, more than the limit of 8");
    assert_fails(qkv_json_parse(&doc, "t", "[1,2,3]", 7, small), QKV_BAD_FILE,
                 "more than 3 values");
    char digits[1026];
    memset(digits, '1', sizeof digits);
    digits[1] = '.';
    assert_ok(parse(&doc, digits, 1024));
    qkv_json_free(&doc);
    assert_fails(parse(&doc, digits, 1025), QKV_BAD_FILE, "longer than 1024");
}

/* Keys beyond the pairwise size: found through the hash table, wherever the second one stands. */
static void test_duplicates_in_large_objects(void **state) {
    (void)state;
    for (int n = 10; n <= 3000; n = n < 20 ? n + 1 : n * 3)
        for (int twice = 0; twice < 2; twice++) {
            qkv_buf text = {0};
            qkv_buf_putc(&text, '{');
            for (int i = 0; i < n; i++) qkv_buf_printf(&text, "\"key%d\":[{\"a\":1}],", i);
            qkv_buf_printf(&text, "\"key%d\":1}", twice ? n / 2 : n);
            qkv_json doc;
            qkv_status status = parse(&doc, text.data, text.len);
            assert_int_equal(status, twice ? QKV_BAD_FILE : QKV_OK);
            if (!twice) {
                assert_int_equal(qkv_json_count(qkv_json_root(&doc)), n + 1);
                qkv_json_free(&doc);
            }
            qkv_buf_free(&text);
        }
}

/* ---- numbers ---- */

static void test_numbers(void **state) {
    (void)state;
    static const char *const hard[] = {
        "0",
        "-0",
        "1",
        "0.1",
        "0.3",
        "9007199254740993",
        "9007199254740992.5",
        "1e22",
        "1e23",
        "8.98846567431158e307",
        "1.7976931348623157e308",
        "2.2250738585072011e-308",
        "4.9e-324",
        "2e-324",
        "1e-400",
        "5e-324",
        "123456789012345678",
        "0.000001",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "3.14159265358979323846264338327950288",
        "179769313486231580793e288",
        "1e0000000000000000001",
        "0.00000000000000000000000000000001e32",
    };
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        double got = 1, want = strtod(hard[i], NULL);
        assert_true(qkv_number_parse(hard[i], strlen(hard[i]), &got));
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("%s: %.17g, wanted %.17g", hard[i], got, want);
    }
    for (uint64_t i = 0; i < 200000; i++) {
        uint32_t words[4];
        qkv_rng_block((qkv_rng){7, 7}, i, words);
        char text[64];
        double value, back;
        memcpy(&value, words, sizeof value);
        if (!isfinite(value)) continue;
        snprintf(text, sizeof text, "%.*g", (int)(words[2] % 20) + 1, value);
        double want = strtod(text, NULL);
        if (!isfinite(want)) continue;
        assert_true(qkv_number_parse(text, strlen(text), &back));
        if (memcmp(&back, &want, sizeof back) != 0)
            fail_msg("%s: %.17g, wanted %.17g", text, back, want);
        if (i % 10) continue;
        char shortest[QKV_NUMBER_TEXT];
        qkv_number_print(value, 0, shortest);
        assert_true(qkv_number_parse(shortest, strlen(shortest), &back));
        if (memcmp(&back, &value, sizeof back) != 0) fail_msg("%s is not %.17g", shortest, value);
    }
    static const char *const bad[] = {"",   "-",   ".",   "-.",   "1e",  "e5",  "1.2.3", "1 ",
                                      " 1", "inf", "nan", "0x10", "1e+", "--1", "1,5"};
    double ignored;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (qkv_number_parse(bad[i], strlen(bad[i]), &ignored))
            fail_msg("\"%s\" was accepted", bad[i]);
    assert_true(qkv_number_parse(".5", 2, &ignored) && ignored == 0.5);
}

/* A program that set a locale with a decimal comma reads and writes the same numbers. */
static void test_locale(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "tr_TR.UTF-8"};
    bool set = false;
    for (size_t i = 0; i < 4 && !set; i++) set = setlocale(LC_ALL, names[i]) != NULL;
    if (!set) print_message("no locale with a decimal comma here: only the C locale was tried\n");
    double value;
    char text[QKV_NUMBER_TEXT];
    assert_true(qkv_number_parse("1234567.125", 11, &value) && value == 1234567.125);
    assert_true(qkv_number_parse("0.1000000000000000055511151231257827", 36, &value) &&
                value == 0.1);
    assert_false(qkv_number_parse("1,5", 3, &value));
    qkv_number_print(0.125, 0, text);
    assert_string_equal(text, "0.125");
    setlocale(LC_ALL, "C");
}

/* ---- walking ---- */

static void test_walk(void **state) {
    (void)state;
    const char *text = "{\"n\": 3,\n \"list\": [1, [2, {\"x\": 5}], \"s\\u00e9\"],\n \"o\": {}, "
                       "\"t\": true,\n \"big\": 9223372036854775807, \"neg\": "
                       "-9223372036854775808,\n \"f\": 1.0, \"null\": null}";
    qkv_json doc;
    assert_ok(parse(&doc, text, strlen(text)));
    qkv_json_at root = qkv_json_root(&doc), at, child;
    assert_int_equal(qkv_json_kind_of(root), QKV_JSON_OBJECT);
    assert_int_equal(qkv_json_count(root), 8);
    assert_true(qkv_json_member(root, "list", &at));
    assert_int_equal(qkv_json_count(at), 3);
    assert_true(qkv_json_first(at, &child));
    assert_true(qkv_json_number(child) == 1);
    assert_true(qkv_json_next(at, &child));
    assert_int_equal(qkv_json_count(child), 2);
    assert_true(qkv_json_next(at, &child));
    const char *s;
    size_t n;
    qkv_json_string(child, &s, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(s, "s\xC3\xA9", 3);
    assert_int_equal(qkv_json_line(child), 2);
    assert_false(qkv_json_next(at, &child));
    assert_true(qkv_json_member(root, "o", &at));
    assert_false(qkv_json_first(at, &child));
    assert_int_equal(qkv_json_line(at), 3);
    int64_t i = 0;
    assert_true(qkv_json_member(root, "big", &at) && qkv_json_integer(at, 0, INT64_MAX, &i) &&
                i == INT64_MAX);
    assert_true(qkv_json_member(root, "neg", &at) && qkv_json_integer(at, INT64_MIN, 0, &i) &&
                i == INT64_MIN);
    assert_false(qkv_json_integer(at, INT64_MIN + 1, 0, &i));
    assert_true(qkv_json_member(root, "f", &at) && !qkv_json_integer(at, 0, 9, &i));
    static const char *const keys[] = {"n", "list", "o", "t", "big", "neg", "f", "null"};
    size_t k = 0;
    for (bool more = qkv_json_first(root, &at); more; more = qkv_json_next(root, &at), k++) {
        qkv_json_key(at, &s, &n);
        assert_int_equal(n, strlen(keys[k]));
        assert_memory_equal(s, keys[k], n);
    }
    assert_int_equal(k, 8);
    qkv_json_free(&doc);
}

static void test_getters(void **state) {
    (void)state;
    const char *text = "{\"i\": 5, \"r\": 0.5, \"b\": true, \"s\": \"x\",\n\"null\": null}";
    qkv_json doc;
    assert_ok(parse(&doc, text, strlen(text)));
    qkv_json_at root = qkv_json_root(&doc);
    int64_t i = 42;
    double r = 42;
    bool b = false;
    const char *s = "old";
    size_t n = 3;
    assert_ok(qkv_json_get_int(root, "i", true, 0, 5, &i));
    assert_int_equal(i, 5);
    assert_ok(qkv_json_get_real(root, "r", true, 0, 1, &r));
    assert_true(r == 0.5);
    assert_ok(qkv_json_get_bool(root, "b", true, &b));
    assert_true(b);
    assert_ok(qkv_json_get_string(root, "s", true, &s, &n));
    assert_int_equal(n, 1);
    assert_ok(qkv_json_get_int(root, "missing", false, 0, 5, &i));
    assert_ok(qkv_json_get_int(root, "null", false, 0, 5, &i));
    assert_int_equal(i, 5);
    assert_fails(qkv_json_get_int(root, "missing", true, 0, 5, &i), QKV_BAD_FILE,
                 "t.json:1: \"missing\" is missing");
    assert_fails(qkv_json_get_int(root, "i", true, 0, 4, &i), QKV_BAD_FILE, "between 0 and 4");
    assert_fails(qkv_json_get_int(root, "r", true, 0, 4, &i), QKV_BAD_FILE, "whole number");
    assert_fails(qkv_json_get_int(root, "s", true, 0, 4, &i), QKV_BAD_FILE, "not a string");
    assert_fails(qkv_json_get_real(root, "b", true, 0, 4, &r), QKV_BAD_FILE, "not true");
    assert_fails(qkv_json_get_bool(root, "i", true, &b), QKV_BAD_FILE, "true or false");
    assert_fails(qkv_json_get_string(root, "null", true, &s, &n), QKV_BAD_FILE,
                 "t.json:2: \"null\" must be a string, not null");
    qkv_json_free(&doc);
}

/* ---- writing ---- */

static void test_writer(void **state) {
    (void)state;
    qkv_buf b = {0};
    qkv_json_out j = qkv_json_begin(&b, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "a\"b");
    qkv_json_put_int(&j, -7);
    qkv_json_put_key(&j, "list");
    qkv_json_open(&j, '[');
    qkv_json_put_real(&j, 0.1, 0);
    qkv_json_put_real(&j, NAN, 0);
    qkv_json_put_bool(&j, true);
    qkv_json_put_null(&j);
    qkv_json_put_string(&j, "a\n\x01\xFF\xC3\xA9\0z", 8);
    qkv_json_close(&j, ']');
    qkv_json_put_key(&j, "e");
    qkv_json_open(&j, '{');
    qkv_json_close(&j, '}');
    qkv_json_close(&j, '}');
    assert_string_equal(b.data, "{\"a\\\"b\":-7,\"list\":[0.1,null,true,null,"
                                "\"a\\n\\u0001\xEF\xBF\xBD\xC3\xA9\\u0000z\"],\"e\":{}}");
    qkv_buf_clear(&b);
    j = qkv_json_begin(&b, 2);
    qkv_json_open(&j, '[');
    qkv_json_put_text(&j, "x");
    qkv_json_open(&j, '[');
    qkv_json_put_int(&j, 1);
    qkv_json_close(&j, ']');
    qkv_json_close(&j, ']');
    assert_string_equal(b.data, "[\n  \"x\",\n  [\n    1\n  ]\n]");
    qkv_buf_free(&b);
}

/* ---- memory ---- */

static qkv_status parse_once(const void *text) {
    const qkv_buf *b = text;
    qkv_json doc;
    const qkv_status status = parse(&doc, b->data, b->len);
    if (status == QKV_OK) qkv_json_free(&doc);
    return status;
}

static void test_out_of_memory(void **state) {
    (void)state;
    qkv_buf text = {0};
    qkv_buf_putc(&text, '{');
    for (int i = 0; i < 300; i++) qkv_buf_printf(&text, "\"k\\n%d\":[%d],", i, i);
    qkv_buf_puts(&text, "\"z\":0}");
    assert_fails_cleanly(parse_once, &text, 0);
    qkv_buf_free(&text);
}

/* ---- the size of a large tokenizer.json, and mutations of a small text ---- */

static void make_tokenizer(qkv_buf *b, int vocab) {
    qkv_buf_puts(b, "{\"version\":\"1.0\",\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i < vocab; i++) qkv_buf_printf(b, "%s\"\xC4\xA0t%dok\":%d", i ? "," : "", i, i);
    qkv_buf_puts(b, "},\"merges\":[");
    for (int i = 0; i < vocab; i++) qkv_buf_printf(b, "%s\"\xC4\xA0t%d ok\"", i ? "," : "", i);
    qkv_buf_puts(b, "]}}");
}

static void test_large(void **state) {
    (void)state;
    qkv_buf b = {0};
    make_tokenizer(&b, 250000);
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        qkv_json doc;
        double start = qkv_now();
        assert_ok(parse(&doc, b.data, b.len));
        double seconds = qkv_now() - start;
        if (seconds < best) best = seconds;
        assert_int_equal(doc.n_nodes, 1 + 2 * 5 + 250000 * 2 + 250000);
        qkv_json_free(&doc);
    }
    print_message("%.1f MB with 250,000 keys and 250,000 strings: %.1f ms\n", (double)b.len / 1e6,
                  best * 1e3);
    qkv_buf_free(&b);
}

#ifdef HAVE_JANSSON
/* Are the two documents the same, node by node? */
static bool same(qkv_json_at at, json_t *other) {
    const char *s;
    size_t n;
    qkv_json_at child;
    switch (qkv_json_kind_of(at)) {
    case QKV_JSON_NULL:
        return json_is_null(other);
    case QKV_JSON_FALSE:
        return json_is_false(other);
    case QKV_JSON_TRUE:
        return json_is_true(other);
    case QKV_JSON_NUMBER:
        return json_is_number(other) && json_number_value(other) == qkv_json_number(at);
    case QKV_JSON_STRING:
        qkv_json_string(at, &s, &n);
        return json_is_string(other) && json_string_length(other) == n &&
               memcmp(json_string_value(other), s, n) == 0;
    case QKV_JSON_ARRAY: {
        size_t i = 0;
        if (!json_is_array(other) || json_array_size(other) != qkv_json_count(at)) return false;
        for (bool more = qkv_json_first(at, &child); more; more = qkv_json_next(at, &child))
            if (!same(child, json_array_get(other, i++))) return false;
        return true;
    }
    case QKV_JSON_OBJECT:
        if (!json_is_object(other) || json_object_size(other) != qkv_json_count(at)) return false;
        for (bool more = qkv_json_first(at, &child); more; more = qkv_json_next(at, &child)) {
            char key[64] = "";
            qkv_json_key(child, &s, &n);
            if (n > 63 || memchr(s, 0, n)) return true; /* jansson 2.13 has no keys with NUL */
            memcpy(key, s, n);
            if (!json_object_get(other, key) || !same(child, json_object_get(other, key)))
                return false;
        }
        return true;
    }
    return false;
}
#endif

static const char seed_text[] = "{\"a\":[1,-2.5e3,0.25],\"b\\u00e9\":{\"c\":\"x\\n\\ud83d\\ude00\","
                                "\"d\":null},\"e\":[true,false,{}],\"\xC3\xA9\":\"\xE2\x82\xAC\"}";

/* Mutated texts: both readers accept or refuse alike, and see the same values. Without jansson the
 * run still shows that nothing crashes and that refusals carry a place. */
static void test_mutations(void **state) {
    (void)state;
    size_t len = sizeof seed_text - 1, good = 0;
    for (uint64_t i = 0; i < 60000; i++) {
        qkv_rng key = {i, 3};
        char *text = malloc(len);
        memcpy(text, seed_text, len);
        size_t n = i % 7 == 0 ? qkv_rng_below(key, 0, len + 1) : len;
        static const char likely[] = "{}[],:\"\\0123456789.eE+-truefalsn \n\xC3\xA9\xF0\x80u";
        for (uint64_t m = 0; m < 1 + qkv_rng_below(key, 1, 3); m++) {
            uint64_t where = qkv_rng_below(key, 10 + m, len);
            text[where] = i % 3 ? likely[qkv_rng_below(key, 20 + m, sizeof likely - 1)]
                                : (char)qkv_rng_below(key, 30 + m, 256);
        }
        qkv_json doc;
        qkv_status status = parse(&doc, text, n);
        if (status != QKV_OK)
            assert_true(status == QKV_BAD_FILE && strncmp(qkv_error(), "t.json:", 7) == 0);
#ifdef HAVE_JANSSON
        json_error_t error;
        json_t *other = json_loadb(text, n,
                                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL |
                                       JSON_DECODE_INT_AS_REAL,
                                   &error);
        /* A key with NUL is refused by jansson alone. */
        bool differ =
            (other != NULL) != (status == QKV_OK) && !strstr(error.text, "NUL byte in object key");
        if (differ || (other && status == QKV_OK && !same(qkv_json_root(&doc), other)))
            fail_msg("%.*s: ours %s, jansson %s", (int)n, text, status ? qkv_error() : "accepts",
                     other ? "accepts" : error.text);
        json_decref(other);
#endif
        if (status == QKV_OK) {
            good++;
            qkv_json_free(&doc);
        }
        free(text);
    }
    assert_true(good > 1000);
}

static void test_hash(void **state) {
    (void)state;
    char a[200], b[200];
    for (int i = 0; i < 200; i++) a[i] = (char)(i * 7);
    /* Every length and every single bit changes it. */
    for (size_t n = 0; n < 200; n++) {
        memcpy(b, a, sizeof a);
        uint64_t h = qkv_hash64(a, n, 5);
        assert_true(h == qkv_hash64(b, n, 5));
        assert_true(h != qkv_hash64(a, n, 6));
        if (n + 1 < 200) assert_true(h != qkv_hash64(a, n + 1, 5));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            b[bit / 8] ^= (char)(1 << bit % 8);
            assert_true(h != qkv_hash64(b, n, 5));
            b[bit / 8] ^= (char)(1 << bit % 8);
        }
    }
    assert_true(qkv_hash64("\0", 1, 0) != qkv_hash64("\0\0", 2, 0));
    /* Manifests on disk rely on these. */
    char hex[33];
    qkv_hash_hex("qkv", 3, hex);
    assert_string_equal(hex, "af3f501f8e74a645c48e3e36bf47a007");
    qkv_hash_hex(a, 200, hex);
    assert_string_equal(hex, "c078031d84e9735b89767146e55222e6");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts), cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_limits),  cmocka_unit_test(test_duplicates_in_large_objects),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_locale),
        cmocka_unit_test(test_walk),    cmocka_unit_test(test_getters),
        cmocka_unit_test(test_writer),  cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_large),   cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
