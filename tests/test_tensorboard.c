/* TensorBoard files: read back by the rules of the format,
 * checksums by the published test value of CRC-32C. */
#include "harness.h"
#include "base/file.h"
#include "store/tensorboard.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

/* CRC-32C by its definition, apart from the code under test. */
static uint32_t masked(const unsigned char *p, size_t n) {
    uint32_t crc = ~0u;
    while (n--)
        for (unsigned bits = *p++, k = 0; k < 8; k++, bits >>= 1)
            crc = (crc >> 1) ^ ((crc ^ bits) & 1 ? 0x82F63B78u : 0);
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void test_file(void **state) {
    (void)state;
    uint32_t known = masked((const unsigned char *)"123456789", 9) - 0xa282ead8u;
    assert_int_equal((known << 15 | known >> 17), 0xE3069283u); /* the value of the standard */
    char folder[] = "/tmp/qkv-test-tb-XXXXXX";
    assert_non_null(mkdtemp(folder));
    qkv_tensorboard t;
    assert_ok(qkv_tensorboard_open(&t, folder));
    assert_ok(qkv_tensorboard_scalar(&t, "loss", 300, 1.5));
    assert_ok(qkv_tensorboard_scalar(&t, "a longer name/than most", 70000, -0.25));
    qkv_tensorboard_close(&t);
    DIR *dir = opendir(folder);
    const struct dirent *e;
    while ((e = readdir(dir)) && strncmp(e->d_name, "events.out.tfevents.", 20) != 0) continue;
    assert_non_null(e);
    qkv_buf path = {0};
    qkv_file f;
    assert_ok(qkv_path_join(&path, folder, e->d_name));
    assert_ok(qkv_file_open(path.data, 1 << 20, &f));
    closedir(dir);
    size_t at = 0, records = 0;
    const unsigned char *second = NULL;
    while (at < f.size) {
        uint64_t length;
        uint32_t crc;
        assert_true(at + 16 <= f.size);
        memcpy(&length, f.data + at, 8);
        memcpy(&crc, f.data + at + 8, 4);
        assert_int_equal(crc, masked((const unsigned char *)f.data + at, 8));
        assert_true(length <= f.size - at - 16);
        memcpy(&crc, f.data + at + 12 + length, 4);
        assert_int_equal(crc, masked((const unsigned char *)f.data + at + 12, length));
        if (records++ == 1) second = (const unsigned char *)f.data + at + 12;
        at += 16 + length;
    }
    assert_int_equal(records, 3);
    /* Event: wall time (9 bytes), step 300, summary{value{tag "loss", 1.5}} */
    static const unsigned char wanted[] = {0x10, 0xAC, 0x02, 0x2A, 0x0D, 0x0A, 0x0B, 0x0A, 0x04,
                                           'l',  'o',  's',  's',  0x15, 0,    0,    0xC0, 0x3F};
    assert_memory_equal(second + 9, wanted, sizeof wanted);
    qkv_file_close(&f);
    unlink(path.data);
    qkv_buf_free(&path);
    rmdir(folder);
    assert_fails(qkv_tensorboard_open(&t, folder), QKV_FAILED, "cannot write it");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
