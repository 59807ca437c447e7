/* A record is u64 length | u32 crc of the length | data | u32 crc of the data; the data is a
 * protobuf message Event:
 *     1: double wall_time   2: int64 step   3: string file_version
 *     5: Summary{ 1: Value{ 1: tag, 2: float } }
 * The crc is CRC-32C, rotated and shifted by a constant ("masked"), as the format wants. */
#include "store/tensorboard.h"
#include "base/sys.h"
#include "base/buf.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint32_t masked_crc(const void *data, size_t n) {
    const unsigned char *p = data;
    uint32_t crc = 0xffffffff;
    /* Bit by bit: a record has fifty bytes, and there is one a second. */
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_varint(qkv_buf *b, uint64_t value) {
    for (; value >= 0x80; value >>= 7) qkv_buf_putc(b, (char)(value | 0x80));
    qkv_buf_putc(b, (char)value);
}

/* Fields by wire type: 0 varint, 1 eight bytes, 2 bytes with their length, 5 four bytes. */
static void put_bytes(qkv_buf *b, int field, const void *data, size_t n) {
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    qkv_buf_add(b, data, n);
}

static void put_time(qkv_buf *b) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    put_varint(b, 1 << 3 | 1);
    qkv_buf_add(b, &seconds, sizeof seconds);
}

static qkv_status write_record(qkv_tensorboard *t, const qkv_buf *event) {
    if (event->status != QKV_OK) return event->status;
    uint64_t length = event->len;
    uint32_t crc_length = masked_crc(&length, sizeof length),
             crc = masked_crc(event->data, event->len);
    bool written = fwrite(&length, sizeof length, 1, t->file) == 1 &&
                   fwrite(&crc_length, sizeof crc_length, 1, t->file) == 1 &&
                   fwrite(event->data, 1, event->len, t->file) == event->len &&
                   fwrite(&crc, sizeof crc, 1, t->file) == 1 && fflush(t->file) == 0;
    return written ? QKV_OK
                   : qkv_fail(QKV_FAILED, "cannot write the TensorBoard file: %s", strerror(errno));
}

qkv_status qkv_tensorboard_open(qkv_tensorboard *t, const char *folder) {
    char host[64] = "host";
    gethostname(host, sizeof host - 1);
    qkv_buf path = {0}, event = {0};
    qkv_buf_printf(&path, "%s/events.out.tfevents.%lld.%s", folder, (long long)time(NULL), host);
    if (path.status != QKV_OK) return path.status;
    t->file = qkv_sys_append(path.data);
    qkv_status status = QKV_OK;
    if (!t->file) {
        status = qkv_fail(QKV_FAILED, "%s: cannot write it: %s", path.data, strerror(errno));
    } else {
        put_time(&event);
        put_bytes(&event, 3, "brain.Event:2", 13);
        status = write_record(t, &event);
        if (status != QKV_OK) qkv_tensorboard_close(t);
    }
    qkv_buf_free(&event);
    qkv_buf_free(&path);
    return status;
}

qkv_status qkv_tensorboard_scalar(qkv_tensorboard *t, const char *tag, int64_t step, double value) {
    qkv_buf point = {0}, summary = {0}, event = {0};
    float number = (float)value;
    put_bytes(&point, 1, tag, strlen(tag));
    put_varint(&point, 2 << 3 | 5);
    qkv_buf_add(&point, &number, sizeof number);
    put_bytes(&summary, 1, point.data, point.len);
    put_time(&event);
    put_varint(&event, 2 << 3 | 0);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.data, summary.len);
    qkv_status status = point.status != QKV_OK     ? point.status
                        : summary.status != QKV_OK ? summary.status
                                                   : write_record(t, &event);
    qkv_buf_free(&point);
    qkv_buf_free(&summary);
    qkv_buf_free(&event);
    return status;
}

void qkv_tensorboard_close(qkv_tensorboard *t) {
    if (t->file) fclose(t->file);
    t->file = NULL;
}
