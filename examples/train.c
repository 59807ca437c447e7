/* Trains a small classifier from rows in memory and leaves it in a folder.
 *
 *     train FOLDER                                   cc train.c $(pkg-config --cflags --libs qkv)
 */
#include <qkv.h>

#include <stdio.h>
#include <string.h>

static const char *const good[] = {"a lovely film", "great fun from start to end", "warm and funny",
                                   "the cast is wonderful", "I would watch it again"};
static const char *const bad[] = {"a dull film", "boring from start to end", "cold and slow",
                                  "the plot is a mess", "I wanted my money back"};

static qkv_text text_of(const char *s) {
    return (qkv_text){s, strlen(s)};
}

/* Called after every step; returning false would stop the training, with everything saved. */
static bool progress(void *user, const qkv_progress *p) {
    (void)user;
    if (p->kind == QKV_PROGRESS_STEP && p->step % 20 == 0)
        printf("step %lld of %lld: loss %.3f\n", (long long)p->step, (long long)p->steps, p->loss);
    return true;
}

int main(int argc, char **argv) {
    enum { ROWS = 200 };
    static qkv_train_row rows[ROWS]; /* the texts stay ours; they are read during qkv_train only */
    if (argc != 2) {
        fprintf(stderr, "usage: train FOLDER\n");
        return 2;
    }
    for (int i = 0; i < ROWS; i++) {
        rows[i].label = text_of(i % 2 ? "bad" : "good");
        rows[i].text = text_of((i % 2 ? bad : good)[i / 2 % 5]);
    }
    const char *const settings[] = {"d_model=32", "layers=1",         "heads=2", "vocab_size=300",
                                    "steps=60",   "batch_tokens=256", "seed=1",  NULL};
    const qkv_train_request request = {.task = "classify",
                                       .rows = rows,
                                       .n_rows = ROWS,
                                       .out = argv[1],
                                       .preset = "tiny",
                                       .set = settings,
                                       .overwrite = true,
                                       .progress = progress};
    const qkv_status status = qkv_train(&request);
    if (status != QKV_OK) fprintf(stderr, "train: %s\n", qkv_error());
    return qkv_status_exit_code(status);
}
