/* qkv demo: makes its own data, trains on it, scores the model on rows it has not seen and shows some answers. */
#include "command.h"
#include "live.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "out",
     .letter = 'o',
     .kind = CLI_TEXT,
     .value = "DIR",
     .help = "keep data and model here (default: a temporary folder)"},
    {.name = "seed",
     .kind = CLI_INT,
     .value = "N",
     .initial = "1",
     .min = 0,
     .max = 1e15,
     .help = "of data and training"},
    CLI_OPTION_THREADS,
};

enum { TRAIN_ROWS = 8000, TEST_ROWS = 1000, SHOWN = 6, PATH = 4200 };

typedef struct demo {
    char folder[4096];
    char train[PATH], test[PATH], model[PATH];
    bool temporary;
    long long seed;
} demo;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static bool open_folder(demo *d, const char *out) {
    const char *temporary = getenv("TMPDIR");
    if (out && strlen(out) >= sizeof d->folder) return false;
    d->temporary = !out;
    if (out)
        strcpy(d->folder, out);
    else
        snprintf(d->folder, sizeof d->folder, "%.3000s/qkv-demo-XXXXXX",
                 temporary ? temporary : "/tmp");
    if (out ? mkdir(d->folder, 0777) != 0 && errno != EEXIST : !mkdtemp(d->folder)) return false;
    snprintf(d->train, PATH, "%s/train.tsv", d->folder);
    snprintf(d->test, PATH, "%s/test.tsv", d->folder);
    snprintf(d->model, PATH, "%s/model", d->folder);
    return true;
}

static qkv_status train(const demo *d) {
    char seed[32];
    snprintf(seed, sizeof seed, "seed=%lld", d->seed);
    const char *const set[] = {"tokenizer=word", "d_model=64", "layers=2",  "heads=4",
                               "d_ff=128",       "max_len=64", "epochs=20", "batch_tokens=1024",
                               "lr=0.002",       seed,         NULL};
    const char *const files[] = {d->train, NULL};
    cli_live live;
    cli_live_begin(&live, false);
    const qkv_train_request request = {.task = "classify",
                                       .train = files,
                                       .out = d->model,
                                       .set = set,
                                       .overwrite = true,
                                       .progress = cli_live_show,
                                       .user = &live};
    const qkv_status status = qkv_train(&request);
    cli_live_end(&live);
    return status;
}

/* The first rows of the test file with the model's answers. */
static qkv_status show_answers(const demo *d, qkv_text_model *m) {
    FILE *f = fopen(d->test, "r");
    char line[1024];
    qkv_status status = QKV_OK;
    for (int i = 0; f && i < SHOWN && status == QKV_OK && fgets(line, sizeof line, f); i++) {
        line[strcspn(line, "\n")] = 0;
        char *text = strchr(line, '\t');
        if (!text) continue;
        *text++ = 0;
        float p[2];
        status = qkv_classify(m, &(qkv_text){text, strlen(text)}, 1, p);
        if (status == QKV_OK)
            printf("  %-4s %5.1f %%  (truth: %-4s)  %s\n", qkv_text_model_label(m, p[1] > p[0]),
                   100 * (double)(p[1] > p[0] ? p[1] : p[0]), line, text);
    }
    if (f) fclose(f);
    return status;
}

static qkv_status show(const demo *d) {
    qkv_text_model *m;
    char *text = NULL;
    const char *const files[] = {d->test, NULL};
    qkv_status status = qkv_text_model_open(d->model, &m);
    if (status != QKV_OK) return status;
    status = qkv_evaluate(m, files, NULL, false, &text);
    if (status == QKV_OK) {
        printf("\nOn %d reviews that it has not seen:\n%s\n", TEST_ROWS, text);
        status = show_answers(d, m);
    }
    qkv_text_free(text);
    qkv_text_model_close(m);
    return status;
}

static int run(const cli_args *a) {
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    demo d = {.seed = cli_int(a, "seed")};
    if (!open_folder(&d, cli_text(a, "out"))) {
        fprintf(stderr, "qkv: no folder for the demo could be made\n");
        return qkv_status_exit_code(QKV_FAILED);
    }
    const time_t begin = time(NULL);
    puts("A Transformer learns to tell good reviews from bad ones. The reviews are made up: some "
         "remarks, then a\n"
         "verdict that counts; words alone do not tell it (\"anything but dull\").\n");
    fflush(stdout);
    qkv_status status = qkv_demo_write("reviews", (uint64_t)d.seed, TRAIN_ROWS, d.train);
    if (status == QKV_OK)
        status = qkv_demo_write("reviews", (uint64_t)d.seed + 1000000007, TEST_ROWS, d.test);
    if (status == QKV_OK) status = train(&d);
    if (status == QKV_OK) status = show(&d);
    if (status == QKV_OK) {
        printf("\n%lld seconds in all.", (long long)(time(NULL) - begin));
        if (!d.temporary)
            printf(" Try it:  echo \"the plot was anything but dull . still , the film was weak "
                   ".\" | qkv classify %s",
                   d.model);
        puts(
            "\nYour own text:  qkv train classify --train FILE --out DIR   (rows: label<TAB>text)");
    }
    if (d.temporary) nftw(d.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return cli_live_code(status);
}

const cli_command command_demo = {
    .usage = "[options]",
    .examples = "qkv demo\n"
                "qkv demo --out my-demo\n",
    .about = "Needs no data and no network; a minute or two on two cores.",
    CLI_OPTIONS(options),
    .run = run,
};
