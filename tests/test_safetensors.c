/* safetensors: what we write we read, hostile headers are refused by name, and no mutation does
 * harm. */
#include "harness.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/half.h"
#include "store/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char path[64];   /* on disk, for what we write */
static char memory[64]; /* in memory, for the many files that are only to be read */
static int memory_fd;

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/qkv-test-st-%ld", (long)getpid());
    memory_fd = memfd_create("st", 0);
    snprintf(memory, sizeof memory, "/proc/self/fd/%d", memory_fd);
    return memory_fd < 0;
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

static void save(const void *data, size_t n) {
    assert_int_equal(ftruncate(memory_fd, 0), 0);
    assert_int_equal(pwrite(memory_fd, data, n, 0), n);
}

/* A file with the given header and n bytes of data. */
static void save_header(const char *header, size_t data_bytes) {
    qkv_buf b = {0};
    uint64_t n = strlen(header);
    qkv_buf_add(&b, &n, 8);
    qkv_buf_puts(&b, header);
    for (size_t i = 0; i < data_bytes; i++) qkv_buf_putc(&b, (char)i);
    save(b.data, b.len);
    qkv_buf_free(&b);
}

/* ---- round trip ---- */

static const float values[6] = {1.5f, -2, 0, 3e38f, 1e-40f, INFINITY};

static void write_good(void) {
    static const uint16_t halves[2] = {0x3c00, 0x7bff}, brains[3] = {0x3f80, 0xc000, 0x7f80};
    static const int64_t longs[2] = {7, -1};
    static const double doubles[1] = {0.1};
    const qkv_to_store tensors[] = {
        {.name = "b", .dtype = QKV_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = values},
        {.name = "a", .dtype = QKV_DTYPE_F16, .rank = 1, .shape = {2}, .data = halves},
        {.name = "brain \xC3\xA9\"",
         .dtype = QKV_DTYPE_BF16,
         .rank = 1,
         .shape = {3},
         .data = brains},
        {.name = "long", .dtype = QKV_DTYPE_I64, .rank = 1, .shape = {2}, .data = longs},
        {.name = "scalar", .dtype = QKV_DTYPE_F64, .rank = 0, .data = doubles},
        {.name = "empty", .dtype = QKV_DTYPE_F32, .rank = 2, .shape = {0, 5}, .data = values},
        {.name = "byte", .dtype = QKV_DTYPE_U8, .rank = 1, .shape = {1}, .data = "x"},
    };
    assert_ok(qkv_safetensors_write(path, tensors, 7, (const char *const[]){"who", "we", NULL}));
}

static void test_round_trip(void **state) {
    (void)state;
    write_good();
    qkv_safetensors s;
    assert_ok(qkv_safetensors_open(path, &s));
    if (getenv("QKV_KEEP")) assert_ok(qkv_file_write(getenv("QKV_KEEP"), s.file.data, s.file.size));
    assert_int_equal(s.n, 7);
    assert_int_equal(s.n_meta, 2);
    assert_string_equal(s.meta_key[0], "who");
    assert_string_equal(s.meta_value[1], "pt");
    const qkv_stored *t = qkv_safetensors_find(&s, "b");
    assert_non_null(t);
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->shape[1], 3);
    float out[6];
    assert_ok(qkv_stored_to_float(t, out));
    assert_memory_equal(out, values, sizeof out);
    assert_ok(qkv_stored_to_float(qkv_safetensors_find(&s, "a"), out));
    assert_true(out[0] == 1 && out[1] == 65504);
    assert_ok(qkv_stored_to_float(qkv_safetensors_find(&s, "brain \xC3\xA9\""), out));
    assert_true(out[0] == 1 && out[1] == -2 && isinf(out[2]));
    assert_ok(qkv_stored_to_float(qkv_safetensors_find(&s, "scalar"), out));
    assert_true(out[0] == 0.1f);
    assert_int_equal(qkv_safetensors_find(&s, "scalar")->elements, 1);
    assert_int_equal(qkv_safetensors_find(&s, "empty")->bytes, 0);
    assert_ok(qkv_stored_to_float(qkv_safetensors_find(&s, "empty"), out));
    assert_fails(qkv_stored_to_float(qkv_safetensors_find(&s, "long"), out), QKV_BAD_FILE,
                 "\"long\"");
    assert_null(qkv_safetensors_find(&s, "c"));
    /* Wide elements first, and the data begins at a multiple of 8. */
    assert_int_equal(((const char *)s.tensors[0].data - s.file.data) % 8, 0);
    qkv_safetensors_close(&s);
}

/* A file made by the reference library (peer_safetensors.py --golden). */
static void test_reference(void **state) {
    (void)state;
    qkv_safetensors s;
    assert_ok(qkv_safetensors_open(SOURCE_DIR "/tests/golden/reference.safetensors", &s));
    assert_int_equal(s.n, 5);
    assert_string_equal(s.meta_value[0], "reference");
    float out[6];
    assert_ok(qkv_stored_to_float(qkv_safetensors_find(&s, "weight"), out));
    for (int i = 0; i < 6; i++) assert_true(out[i] == (float)i / 4);
    assert_ok(qkv_stored_to_float(qkv_safetensors_find(&s, "half"), out));
    assert_true(out[0] == 0.5f && out[1] == -65504);
    assert_ok(qkv_stored_to_float(qkv_safetensors_find(&s, "one"), out));
    assert_true(out[0] == 2.5f);
    int64_t ids[2];
    memcpy(ids, qkv_safetensors_find(&s, "ids")->data, sizeof ids);
    assert_true(ids[0] == 1 && ids[1] == -2);
    qkv_safetensors_close(&s);
}

static void test_write_refuses(void **state) {
    (void)state;
    qkv_to_store two[2] = {{.name = "x", .dtype = QKV_DTYPE_F32, .data = values},
                           {.name = "x", .dtype = QKV_DTYPE_F16, .data = values}};
    assert_fails(qkv_safetensors_write(path, two, 2, NULL), QKV_USAGE, "twice");
    two[0] = (qkv_to_store){.name = "x",
                            .dtype = QKV_DTYPE_F32,
                            .rank = 3,
                            .shape = {1ll << 31, 1ll << 31, 1ll << 31},
                            .data = values};
    assert_fails(qkv_safetensors_write(path, two, 1, NULL), QKV_USAGE, "too large");
    two[0] = (qkv_to_store){.name = "x", .dtype = QKV_DTYPE_OTHER, .data = values};
    assert_fails(qkv_safetensors_write(path, two, 1, NULL), QKV_USAGE, "dtype");
    two[0] = (qkv_to_store){
        .name = "x", .dtype = QKV_DTYPE_F32, .rank = 1, .shape = {-1}, .data = values};
    assert_fails(qkv_safetensors_write(path, two, 1, NULL), QKV_USAGE, "dimension 0 is -1");
}

/* ---- hostile headers: header, bytes of data, words of the message ("" = accepted) ---- */

static const struct hostile {
    const char *header;
    size_t data;
    const char *words;
} hostile[] = {
    {"{}", 0, ""},
    {"  {}  ", 0, ""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, ""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, ""},
    {"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},\"a\":{\"dtype\":\"U8\","
     "\"shape\":[1],\"data_offsets\":[0,1]}}",
     2, ""},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, ""},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, ""},
    {"{\"__metadata__\":{\"a\":\"b\"}}", 0, ""},
    {"[]", 0, "must be a JSON object"},
    {"{", 0, "JSON"},
    {"", 0, "JSON"},
    {"{}x", 0, "where the end"},
    {"{\"a\":1}", 0, "\"a\" must be an object"},
    {"{\"a\":{}}", 0, "\"dtype\" is missing"},
    {"{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "must be a string"},
    {"{\"a\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "unknown dtype \"F99\""},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "\"shape\" must be a list"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4,
     "\"shape\" must be a list"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "a dimension"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "a dimension"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4, "a dimension"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[281474976710656],\"data_offsets\":[0,4]}}", 4,
     "a dimension"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[0,4]}}", 4,
     "a dimension"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, ""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
     "9 dimensions"},
    /* products that wrap at 2³¹, 2³², 2⁶³, 2⁶⁴, and in bits */
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[65536,32769],\"data_offsets\":[0,4]}}", 4, "asks for"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[65536,65537],\"data_offsets\":[0,4]}}", 4, "asks for"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,2147483648],\"data_offsets\":[0,0]}}", 0,
     "more elements than"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
     "more elements than"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,67108865],\"data_offsets\":[0,8]}}", 8,
     "more elements than"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[281474976710655,281474976710655,0],\"data_offsets\":[0,"
     "0]}}",
     0, "more elements than"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1,
     "do not fill whole bytes"},
    {"{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2,
     "do not fill whole bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "\"data_offsets\" must be [begin, end]"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "must be [begin, end]"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4,
     "must be [begin, end]"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "bytes 4 to 0"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "an offset"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "cut short"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[281474976710651,281474976710655]}}",
     4, "cut short"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
     "asks for 8 bytes, its offsets give 4"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "a hole"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\","
     "\"shape\":[1],\"data_offsets\":[8,12]}}",
     12, "\"b\" leaves a hole"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\","
     "\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, "overlaps"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\","
     "\"shape\":[1],\"data_offsets\":[0,4]}}",
     4, "overlaps"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5,
     "1 bytes behind the last tensor"},
    {"{}", 3, "3 bytes behind the last tensor"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\","
     "\"shape\":[1],\"data_offsets\":[1,2]}}",
     2, "twice"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "twice"},
    {"{\"__metadata__\":[]}", 0, "must be an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "metadata \"a\" must be a string"},
    {"{\"__metadata__\":{\"a\":{\"b\":1}}}", 0, "must be a string"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[[1]],\"data_offsets\":[0,4]}}", 4, "nested deeper"},
    {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "NUL"},
    {"{\"\xFF\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "not UTF-8"},
};

static void test_hostile(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        save_header(hostile[i].header, hostile[i].data);
        qkv_safetensors s;
        qkv_status status = qkv_safetensors_open(memory, &s);
        if (!*hostile[i].words) {
            if (status != QKV_OK) fail_msg("%s: refused: %s", hostile[i].header, qkv_error());
            qkv_safetensors_close(&s);
            continue;
        }
        if (status != QKV_BAD_FILE) fail_msg("%s: status %d", hostile[i].header, status);
        if (!strstr(qkv_error(), hostile[i].words))
            fail_msg("%s: \"%s\" lacks \"%s\"", hostile[i].header, qkv_error(), hostile[i].words);
    }
}

static void test_lengths(void **state) {
    (void)state;
    qkv_safetensors s;
    static const struct {
        uint64_t length;
        const char *words;
    } cases[] = {
        {100000001, "more than 100000000"}, {100000000, "cut short"}, {UINT64_MAX, "more than"},
        {1ull << 63, "more than"},          {3, "cut short"},         {0, "JSON"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bytes[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
        memcpy(bytes, &cases[i].length, 8);
        save(bytes, sizeof bytes);
        assert_fails(qkv_safetensors_open(memory, &s), QKV_BAD_FILE, cases[i].words);
    }
    for (size_t n = 0; n < 8; n++) {
        save("\2\0\0\0\0\0\0\0", n);
        assert_fails(qkv_safetensors_open(memory, &s), QKV_BAD_FILE, "too few");
    }
    assert_fails(qkv_safetensors_open("/tmp", &s), QKV_FAILED, "a folder");
}

/* Caps, on both sides. */
static void test_caps(void **state) {
    (void)state;
    qkv_safetensors s;
    for (int over = 0; over < 2; over++) {
        qkv_buf b = {0};
        qkv_buf_puts(&b, "{\"");
        for (int i = 0; i < 4096 + over; i++) qkv_buf_putc(&b, 'n');
        qkv_buf_puts(&b, "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
        save_header(b.data, 0);
        if (over)
            assert_fails(qkv_safetensors_open(memory, &s), QKV_BAD_FILE, "name of 4097 bytes");
        else
            assert_ok(qkv_safetensors_open(memory, &s));
        if (!over) qkv_safetensors_close(&s);
        qkv_buf_clear(&b);
        qkv_buf_puts(&b, "{\"__metadata__\":{");
        for (int i = 0; i < 10000 + over; i++) qkv_buf_printf(&b, "%s\"%d\":\"\"", i ? "," : "", i);
        qkv_buf_puts(&b, "}}");
        save_header(b.data, 0);
        if (over)
            assert_fails(qkv_safetensors_open(memory, &s), QKV_BAD_FILE,
                         "10001 entries of metadata");
        else
            assert_ok(qkv_safetensors_open(memory, &s));
        if (!over) qkv_safetensors_close(&s);
        qkv_buf_free(&b);
    }
}

static qkv_buf read_good(void) {
    qkv_buf b = {0};
    qkv_file f;
    write_good();
    assert_ok(qkv_file_open(path, 1 << 20, &f));
    qkv_buf_add(&b, f.data, f.size);
    qkv_file_close(&f);
    return b;
}

/* Cut at every byte: always refused, never read beyond the end. */
static void test_truncation(void **state) {
    (void)state;
    qkv_buf good = read_good();
    for (size_t n = 0; n < good.len; n++) {
        qkv_safetensors s;
        save(good.data, n);
        if (qkv_safetensors_open(memory, &s) != QKV_BAD_FILE)
            fail_msg("cut at %zu of %zu: accepted", n, good.len);
    }
    qkv_buf_free(&good);
}

/* Seeded mutations: accepted or refused with one line; what is accepted can be read to its last
 * byte. */
static void test_mutations(void **state) {
    (void)state;
    qkv_buf good = read_good();
    size_t accepted = 0;
    char *text = malloc(good.len);
    double slowest = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        qkv_rng key = {i, 9};
        memcpy(text, good.data, good.len);
        for (uint64_t m = 0; m < 1 + qkv_rng_below(key, 0, 3); m++) {
            uint64_t where = qkv_rng_below(key, 1 + m, i % 5 ? good.len : 16);
            static const char likely[] = "0123456789[]{}:,\"F3BU861I";
            text[where] = i % 2 ? likely[qkv_rng_below(key, 10 + m, sizeof likely - 1)]
                                : (char)qkv_rng_below(key, 20 + m, 256);
        }
        save(text, good.len);
        qkv_safetensors s;
        double start = qkv_now();
        qkv_status status = qkv_safetensors_open(memory, &s);
        if (qkv_now() - start > slowest) slowest = qkv_now() - start;
        if (status == QKV_OK) {
            accepted++;
            for (size_t t = 0; t < s.n; t++) {
                char hex[33];
                qkv_hash_hex(s.tensors[t].data, s.tensors[t].bytes, hex);
            }
            qkv_safetensors_close(&s);
        } else {
            assert_int_equal(status, QKV_BAD_FILE);
            assert_null(strchr(qkv_error(), '\n'));
        }
    }
    assert_true(accepted > 100 && accepted < 19000);
    assert_true(slowest < 2);
    free(text);
    qkv_buf_free(&good);
}

static void test_out_of_memory(void **state) {
    (void)state;
    write_good();
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        uint64_t live = qkv_mem_count().live;
        qkv_safetensors s;
        qkv_mem_fail(n, false);
        failed = qkv_safetensors_open(path, &s) != QKV_OK;
        qkv_mem_fail(0, false);
        if (!failed) qkv_safetensors_close(&s);
        assert_int_equal(qkv_mem_count().live, live);
        assert_true(n < 200);
    }
}

/* ---- halves ---- */

static void test_halves(void **state) {
    (void)state;
    for (uint32_t b = 0; b < 65536; b++) {
        float f = qkv_f16_value((uint16_t)b), g = qkv_bf16_value((uint16_t)b);
        if (isnan(f))
            assert_true(isnan(qkv_f16_value(qkv_f16_of(f))));
        else
            assert_int_equal(qkv_f16_of(f), b);
        if (isnan(g))
            assert_true(isnan(qkv_bf16_value(qkv_bf16_of(g))));
        else
            assert_int_equal(qkv_bf16_of(g), b);
    }
    /* Rounding: a value between two neighbours goes to the nearer, a tie to the even one. */
    for (uint32_t b = 0; b < 0x7bff; b++) {
        float low = qkv_f16_value((uint16_t)b), high = qkv_f16_value((uint16_t)(b + 1)),
              middle = (low + high) / 2;
        assert_int_equal(qkv_f16_of(middle), b + (b & 1));
        assert_int_equal(qkv_f16_of(nextafterf(middle, 0)), b);
        assert_int_equal(qkv_f16_of(nextafterf(middle, INFINITY)), b + 1);
        assert_int_equal(qkv_f16_of(-middle), 0x8000 | (b + (b & 1)));
    }
    for (uint32_t b = 0; b < 0x7f7f; b++) {
        double low = qkv_bf16_value((uint16_t)b), high = qkv_bf16_value((uint16_t)(b + 1));
        float middle = (float)((low + high) / 2);
        assert_int_equal(qkv_bf16_of(middle), b + (b & 1));
        assert_int_equal(qkv_bf16_of(nextafterf(middle, 0)), b);
        assert_int_equal(qkv_bf16_of(nextafterf(middle, INFINITY)), b + 1);
    }
    assert_int_equal(qkv_f16_of(65519.99f), 0x7bff);
    assert_int_equal(qkv_f16_of(65520.f), 0x7c00);
    assert_int_equal(qkv_f16_of(INFINITY), 0x7c00);
    assert_int_equal(qkv_bf16_of(3.4e38f), 0x7f80);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_reference),
        cmocka_unit_test(test_write_refuses), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_lengths),       cmocka_unit_test(test_caps),
        cmocka_unit_test(test_truncation),    cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
