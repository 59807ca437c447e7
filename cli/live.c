#include "live.h"
#include "command.h"
#include "terminal.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double EVERY = 0.1, /* seconds between two live lines of steps */
    EVERY_PLAIN = 10,            /* and between two plain ones */
    BEAT = 0.4;                  /* a live line is drawn again after this long */
enum {
    WIDE = 60,
    LIVE_LINE_MAX = 400, /* columns of the whole table of validations */
    PLAIN_COLUMNS = 81
}; /* of a line that goes to a file, and one */

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    if (caught) _exit(128 + number);
    caught = number;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the live line ---- */

/* Pieces of a line, put together as long as they fit. */
typedef struct pieces {
    char text[LIVE_LINE_MAX];
    int width, columns;
} pieces;

static void add(pieces *p, const char *piece) {
    const int width = cli_width(piece) + (p->width ? 2 : 0);
    if (p->columns && p->width + width >= p->columns) return;
    const size_t len = strlen(p->text);
    snprintf(p->text + len, sizeof p->text - len, "%s%s", p->width ? "  " : "", piece);
    p->width += width;
}

static void minutes(char text[32], double seconds) {
    const long long s = seconds > 0 ? (long long)seconds : 0;
    snprintf(text, 32, "%lld:%02lld", s / 60, s % 60);
}

/* The most wanted pieces are put in first: step, time left, loss; but they stand in a fixed order. */
static void put_step(const cli_live *l, pieces *line) {
    const qkv_progress *p = &l->step;
    enum { PART, STEP, LOSS, RIGHT, RATE, SPEED, PEAK, LEFT, PIECES };
    static const int order[] = {PART, STEP, LEFT, LOSS, RIGHT, SPEED, RATE, PEAK};
    char piece[PIECES][64] = {""}, left[32];
    bool in[PIECES] = {false};
    minutes(left, p->seconds_left - (l->terminal ? now() - l->step_at : 0));
    snprintf(piece[PART], 64, "%s", l->part);
    snprintf(piece[STEP], 64, "step %lld/%lld", (long long)p->step, (long long)p->steps);
    snprintf(piece[LOSS], 64, "loss %.4f", p->loss);
    if (!isnan(p->accuracy)) snprintf(piece[RIGHT], 64, "right %.1f %%", 100 * p->accuracy);
    snprintf(piece[RATE], 64, "lr %.1e", p->lr);
    snprintf(piece[SPEED], 64, "%.0f tokens/s", p->tokens_per_s);
    if (p->share > 0) snprintf(piece[PEAK], 64, "%.0f %% of peak", 100 * p->share);
    snprintf(piece[LEFT], 64, "%s left", left);
    int width = 0;
    for (size_t i = 0; i < CLI_COUNT(order); i++) {
        const int k = order[i], more = (int)strlen(piece[k]) + 2;
        in[k] = *piece[k] && (!line->columns || width + more < line->columns);
        if (in[k]) width += more;
    }
    for (int k = 0; k < PIECES; k++)
        if (in[k]) add(line, piece[k]);
}

static void put_phase(const cli_live *l, pieces *line) {
    char share[32], spent[32];
    minutes(spent, now() - l->since);
    snprintf(share, sizeof share, "%.0f %%", 100 * l->share);
    if (*l->part) add(line, l->part);
    add(line, l->phase);
    if (l->share > 0) add(line, share);
    add(line, spent);
}

/* Takes the live line away, so that what follows stands on its own. A terminal that became narrower
 * has broken the line: most of them do (xterm cuts it). */
static void wipe(cli_live *l) {
    const int columns = cli_columns(STDERR_FILENO);
    const int broken = columns > 0 && !getenv("XTERM_VERSION") ? (l->drawn - 1) / columns : 0;
    if (l->drawn && broken)
        fprintf(stderr, "\r\033[%dA\033[J", broken);
    else if (l->drawn)
        fputs("\r\033[K", stderr);
    l->drawn = 0;
}

static void draw(cli_live *l) {
    pieces line = {.columns = l->terminal ? cli_columns(STDERR_FILENO) : PLAIN_COLUMNS};
    if (caught)
        add(&line, "stopping (once more: at once)");
    else if (l->stepping)
        put_step(l, &line);
    else
        put_phase(l, &line);
    wipe(l);
    fprintf(stderr, "%s%s", line.text, l->terminal ? "" : "\n");
    l->drawn = l->terminal ? line.width : 0;
    l->last = now();
}

/* Draws again what has not been drawn for a while. */
static void *keep_drawing(void *user) {
    cli_live *l = user;
    pthread_mutex_lock(&l->lock);
    while (l->drawing) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 200000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&l->end, &l->lock, &until);
        if (l->drawing && *l->phase && now() - l->last >= (l->terminal ? BEAT : EVERY_PLAIN))
            draw(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

void cli_live_begin(cli_live *l, bool quiet) {
    *l = (cli_live){.quiet = quiet, .terminal = isatty(STDERR_FILENO) != 0};
    if (!l->terminal) l->last = now(); /* in a pipe short phases need no line */
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->end, NULL);
    l->drawing = !quiet;
    if (l->drawing && pthread_create(&l->thread, NULL, keep_drawing, l) != 0) l->drawing = false;
}

void cli_live_catch(void) {
    caught = 0;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void cli_live_end(cli_live *l) {
    const bool drawing = l->drawing;
    pthread_mutex_lock(&l->lock);
    l->drawing = false;
    wipe(l);
    pthread_cond_signal(&l->end);
    pthread_mutex_unlock(&l->lock);
    if (drawing) pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->end);
    pthread_mutex_destroy(&l->lock);
}

/* ---- what comes ---- */

static void show_note(cli_live *l, const char *text) {
    wipe(l);
    cli_put_note(stderr, text, l->terminal ? cli_columns(STDERR_FILENO) : 0);
}

/* A phase that begins is told at once; what comes within it ("tokenizer: merging") by and by. */
static void show_phase(cli_live *l, const qkv_progress *p) {
    const size_t name = strcspn(p->text, ":");
    const bool begins =
        l->stepping || strcspn(l->phase, ":") != name || strncmp(l->phase, p->text, name) != 0;
    snprintf(l->phase, sizeof l->phase, "%s", p->text);
    snprintf(l->part, sizeof l->part, "%s", p->part ? p->part : "");
    l->share = p->share;
    if (begins) l->since = now();
    l->stepping = false;
    if (l->terminal && (begins || now() - l->last >= EVERY)) draw(l);
}

static void show_step(cli_live *l, const qkv_progress *p) {
    l->step = *p;
    snprintf(l->part, sizeof l->part, "%s", p->part ? p->part : "");
    l->step_at = now();
    l->stepping = true;
    if (now() - l->last >= (l->terminal ? EVERY : EVERY_PLAIN) || p->step == 1) draw(l);
}

/* A row of the table of validations; its head comes with the first. Narrow terminals get less. */
static void show_valid(cli_live *l, const qkv_progress *p) {
    char spent[32];
    const bool narrow = l->terminal && cli_columns(STDERR_FILENO) <= WIDE;
    wipe(l);
    minutes(spent, p->seconds);
    const bool right = !isnan(p->accuracy); /* the task counts right answers */
    if (!l->table)
        fprintf(stderr, "    step%s  validation%s%s\n", narrow ? "" : "  pass  training",
                right ? "     right" : "", narrow ? "" : "    time");
    l->table = true;
    fprintf(stderr, "%8lld  ", (long long)p->step);
    if (!narrow) fprintf(stderr, "%4lld  %8.4f  ", (long long)p->epoch + 1, p->train_loss);
    fprintf(stderr, "%10.4f", p->loss);
    if (right) fprintf(stderr, "  %6.2f %%", 100 * p->accuracy);
    if (!narrow) fprintf(stderr, "  %6s", spent);
    fputs(p->best ? "  best\n" : "\n", stderr);
}

bool cli_live_show(void *user, const qkv_progress *p) {
    cli_live *l = user;
    if (l->quiet) return !caught;
    pthread_mutex_lock(&l->lock);
    switch (p->kind) {
    case QKV_PROGRESS_NOTE:
        show_note(l, p->text);
        break;
    case QKV_PROGRESS_STEP:
        show_step(l, p);
        break;
    case QKV_PROGRESS_VALID:
        show_valid(l, p);
        break;
    case QKV_PROGRESS_PHASE:
        show_phase(l, p);
        break;
    case QKV_PROGRESS_ALIVE:
        break;
    }
    pthread_mutex_unlock(&l->lock);
    return !caught;
}

int cli_live_code(qkv_status status) {
    if (status == QKV_OK) return 0;
    const int code = cli_fail(status);
    return status == QKV_INTERRUPTED && caught ? 128 + caught : code;
}
