/* qkv demo: makes its own data, trains on it, scores the models on rows they have not seen and
 * shows some answers; one act for each task, a row in the table of acts. */
#include "command.h"
#include "live.h"
#include "terminal.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "keep",
     .kind = CLI_TEXT,
     .value = "DIR",
     .help = "keep data and models here (default: they go when the demo ends)"},
    {.name = "out", .letter = 'o', .kind = CLI_TEXT, .value = "DIR", .help = "the same as --keep"},
    {.name = "seed",
     .kind = CLI_INT,
     .value = "N",
     .initial = "1",
     .min = 0,
     .max = 1e15,
     .help = "of data and training"},
    CLI_OPTIONS_MACHINE,
};

enum {
    TEST_ROWS = 1000,
    SHOWN = 6,
    PICTURE_BYTES = 36 /* of a text that is narrow enough to be drawn */,
    LINE = 1024,
    PATH = 4200
};

/* A row that was held out: its question, and the answer that is wanted. */
typedef struct row {
    char question[LINE], answer[LINE];
} row;

typedef struct act {
    const char *data, *task;
    size_t train_rows;
    const char *intro;
    const char *set[20]; /* NULL at the end, with room for the seed */
    /* Answers the rows; shows the first few on stdout, then the score. */
    qkv_status (*answer)(qkv_text_model *m, const row *rows, int n);
    const char *use; /* the command that uses the model, "%s" for its folder */
} act;

/* ---- answers ---- */

/* A row of answers: "  pos  99.1 %  the question". */
static void print_answer(const char *answer, const char *question) {
    cli_say(stdout, (int)strlen(answer) + 4, "  %s  %s", answer, question);
}

static void print_score(int right, int n) {
    printf("  … %.1f %% of %d are right\n\n", 100.0 * right / n, n);
}

static qkv_status classify(qkv_text_model *m, const row *rows, int n) {
    int right = 0;
    for (int i = 0; i < n; i++) {
        float p[2];
        const qkv_status status =
            qkv_classify(m, &(qkv_text){rows[i].question, strlen(rows[i].question)}, 1, p);
        if (status != QKV_OK) return status;
        const char *label = qkv_text_model_label(m, p[1] > p[0]);
        right += strcmp(label, rows[i].answer) == 0;
        char shown[64];
        snprintf(shown, sizeof shown, "%-4s %5.1f %%", label,
                 100 * (double)(p[1] > p[0] ? p[1] : p[0]));
        if (i < SHOWN) print_answer(shown, rows[i].question);
    }
    print_score(right, n);
    return QKV_OK;
}

static void print_looking(const char *question, const char *picture) {
    cli_say(stdout, 0, "Where it looks while it reads \"%s\":", question);
    printf("\n%s\n", picture);
}

/* What each digit looked at while it was written: the translator's cross-attention. */
static qkv_status picture(const qkv_text_model *m, const row *r) {
    qkv_attention_parts parts;
    qkv_status status =
        qkv_attention_of(m, &(qkv_text){r->question, strlen(r->question)}, NULL, &parts);
    if (status != QKV_OK) return status;
    const qkv_attention_style style = {.colour = *cli_style_for(stdout).bold != 0,
                                       .columns = cli_columns(STDOUT_FILENO)};
    for (size_t i = 0; i < parts.n && status == QKV_OK; i++) {
        if (strcmp(parts.at[i].name, "cross") != 0) continue;
        qkv_attention_parts one = parts;
        char *text = NULL;
        one.at = &parts.at[i], one.n = 1;
        status = qkv_attention_show(&one, &style, &text);
        if (status == QKV_OK) print_looking(r->question, text);
        qkv_text_free(text);
    }
    qkv_attention_free(&parts);
    return status;
}

static qkv_status translate(qkv_text_model *m, const row *rows, int n) {
    qkv_text *texts = calloc((size_t)n, sizeof *texts);
    qkv_translations out;
    if (!texts) return QKV_FAILED;
    for (int i = 0; i < n; i++) texts[i] = (qkv_text){rows[i].question, strlen(rows[i].question)};
    const qkv_translate_options greedy = {.beam = 1};
    const qkv_status status = qkv_translate(m, texts, (size_t)n, &greedy, &out);
    free(texts);
    if (status != QKV_OK) return status;
    int right = 0, shown = -1;
    for (int i = 0; i < n; i++) {
        const bool good = strcmp(out.at[i].text, rows[i].answer) == 0;
        right += good;
        if (shown < 0 && good && strlen(rows[i].question) < PICTURE_BYTES) shown = i;
        char answer[64];
        snprintf(answer, sizeof answer, "%-11s", out.at[i].text);
        if (i < SHOWN) print_answer(answer, rows[i].question);
    }
    qkv_translations_free(&out);
    print_score(right, n);
    return shown >= 0 ? picture(m, &rows[shown]) : QKV_OK;
}

static const act acts[] = {
    {.data = "reviews",
     .task = "classify",
     .train_rows = 8000,
     .intro = "A classifier learns to tell good reviews from bad ones. The reviews are synthetic: "
              "some remarks, then a verdict that counts; words alone do not tell it (\"anything "
              "but dull\").",
     .set = {"tokenizer=word", "d_model=64", "layers=2", "heads=4", "d_ff=128", "max_len=64",
             "epochs=20", "batch_tokens=1024", "lr=0.002", "dropout=0.1"},
     .answer = classify,
     .use = "echo \"the plot was anything but dull . still , the film was weak .\" | qkv classify "
            "%s"},
    {.data = "numbers",
     .task = "translate",
     .train_rows = 20000,
     .intro = "A translator, a Transformer, learns to read numbers and dates in English, German "
              "and French words and to "
              "write them in digits.",
     .set = {"tokenizer=bpe", "vocab_size=160", "d_model=64", "layers=2", "heads=4", "d_ff=256",
             "max_len=96", "position=rope", "norm_kind=rms", "optimizer=muon", "lr=0.01",
             "batch_tokens=2048", "epochs=6", "dropout=0"},
     .answer = translate,
     .use = "echo \"siebenundachtzigtausenddreihundertzwei\" | qkv translate %s"},
};

/* ---- the course of an act ---- */

typedef struct demo {
    char folder[4096];
    bool temporary;
    long long seed;
} demo;

static void path_in(const demo *d, const act *a, const char *name, char path[PATH]) {
    snprintf(path, PATH, "%s/%s%s", d->folder, a->data, name);
}

/* What goes on, without the hint to a folder that will not stay. */
typedef struct stage {
    cli_live live;
    bool temporary;
} stage;

static bool show(void *user, const qkv_progress *p) {
    static const qkv_progress alive = {.kind = QKV_PROGRESS_ALIVE};
    stage *s = user;
    const bool hint = p->kind == QKV_PROGRESS_NOTE && strncmp(p->text, "use it", 6) == 0;
    return cli_live_show(&s->live, s->temporary && hint ? &alive : p);
}

static qkv_status train(const demo *d, const act *a) {
    char seed[32], data[PATH], model[PATH];
    const char *set[sizeof a->set / sizeof *a->set + 1];
    size_t n = 0;
    for (; a->set[n]; n++) set[n] = a->set[n];
    snprintf(seed, sizeof seed, "seed=%lld", d->seed);
    set[n++] = seed;
    set[n] = NULL;
    path_in(d, a, ".train.tsv", data);
    path_in(d, a, "", model);
    const char *const files[] = {data, NULL};
    stage s = {.temporary = d->temporary};
    cli_live_begin(&s.live, false);
    cli_live_catch();
    const qkv_train_request request = {.task = a->task,
                                       .train = files,
                                       .out = model,
                                       .set = set,
                                       .overwrite = true,
                                       .columns = cli_columns(STDERR_FILENO),
                                       .progress = show,
                                       .user = &s};
    const qkv_status status = qkv_train(&request);
    cli_live_end(&s.live);
    return status;
}

/* Reads the rows that were held out; classification has its label first. */
static int read_rows(const char *path, bool label_first, row *rows, int most) {
    FILE *f = fopen(path, "r");
    char line[LINE];
    int n = 0;
    while (f && n < most && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *second = strchr(line, '\t');
        if (!second) continue;
        *second++ = 0;
        strcpy(rows[n].question, label_first ? second : line);
        strcpy(rows[n++].answer, label_first ? line : second);
    }
    if (f) fclose(f);
    return n;
}

static qkv_status score(const demo *d, const act *a) {
    char model[PATH], test[PATH];
    path_in(d, a, "", model);
    path_in(d, a, ".test.tsv", test);
    row *rows = calloc(TEST_ROWS, sizeof *rows);
    qkv_text_model *m = NULL;
    qkv_status status = rows ? qkv_text_model_open(model, &m) : QKV_FAILED;
    if (status == QKV_OK) {
        const int n = read_rows(test, strcmp(a->task, "classify") == 0, rows, TEST_ROWS);
        printf("\n%s on rows that it has not seen:\n", a->task);
        status = a->answer(m, rows, n);
        fflush(stdout);
    }
    qkv_text_model_close(m);
    free(rows);
    return status;
}

static qkv_status perform(const demo *d, const act *a) {
    char train_path[PATH], test_path[PATH];
    path_in(d, a, ".train.tsv", train_path);
    path_in(d, a, ".test.tsv", test_path);
    cli_say(stdout, 0, "%s", a->intro);
    fflush(stdout);
    qkv_status status =
        qkv_demo_write(a->data, (uint64_t)d->seed, a->train_rows, false, train_path);
    if (status == QKV_OK)
        status = qkv_demo_write(a->data, (uint64_t)d->seed, TEST_ROWS, true, test_path);
    if (status == QKV_OK) status = train(d, a);
    return status == QKV_OK ? score(d, a) : status;
}

/* ---- around it ---- */

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
    return out ? mkdir(d->folder, 0777) == 0 || errno == EEXIST : mkdtemp(d->folder) != NULL;
}

static void say_goodbye(const demo *d, long long seconds) {
    printf("%lld seconds in all.\n", seconds);
    puts(d->temporary ? "Keep the models and try them yourself:\n  qkv demo --keep DIR"
                      : "Try the models:");
    for (size_t i = 0; i < CLI_COUNT(acts) && !d->temporary; i++) {
        char model[PATH], command[PATH + 200];
        path_in(d, &acts[i], "", model);
        const char *at = strstr(acts[i].use, "%s");
        snprintf(command, sizeof command, "%.*s%s%s", (int)(at - acts[i].use), acts[i].use, model,
                 at + 2);
        printf("  %s\n", command);
    }
    puts("Your own text, in rows of label<TAB>text:\n"
         "  qkv train classify --train FILE --out DIR");
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    demo d = {.seed = cli_int(a, "seed")};
    if (!open_folder(&d, cli_text(a, cli_given(a, "keep") ? "keep" : "out"))) {
        fprintf(stderr, "qkv: no folder for the demo could be made\n");
        return qkv_status_exit_code(QKV_FAILED);
    }
    const time_t begin = time(NULL);
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < CLI_COUNT(acts) && status == QKV_OK; i++) status = perform(&d, &acts[i]);
    if (status == QKV_OK) say_goodbye(&d, (long long)(time(NULL) - begin));
    if (d.temporary) nftw(d.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return cli_live_code(status);
}

const cli_command command_demo = {
    .usage = "[options]",
    .examples = "qkv demo\n"
                "qkv demo --keep my-demo\n",
    .about = "Needs no data and no network; a minute or two on two cores.",
    CLI_OPTIONS(options),
    .run = run,
};
