#include "live.h"
#include "command.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

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

void cli_live_begin(cli_live *l, bool quiet) {
    *l = (cli_live){.quiet = quiet, .terminal = isatty(STDERR_FILENO) != 0};
    caught = 0;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Ends the live line, so that what follows stands on its own. */
static void clear(cli_live *l) {
    if (l->line) fputs("\r\033[K", stderr);
    l->line = false;
}

static void show_step(cli_live *l, const qkv_progress *p) {
    const double every = l->terminal ? 0.1 : 10;
    if (now() - l->last < every && p->step != 1) return;
    l->last = now();
    const long long left = (long long)p->seconds_left;
    clear(l);
    fprintf(stderr, "step %lld/%lld  loss %.4f  right %.1f %%  lr %.1e  %.0f tokens/s",
            (long long)p->step, (long long)p->steps, p->loss, 100 * p->accuracy, p->lr,
            p->tokens_per_s);
    if (p->share > 0) fprintf(stderr, "  %.0f %% of peak", 100 * p->share);
    fprintf(stderr, "  %lld:%02lld left", left / 60, left % 60);
    l->line = l->terminal;
    if (!l->terminal) fputc('\n', stderr);
}

/* A row of the table of validations; its head comes with the first. */
static void show_valid(cli_live *l, const qkv_progress *p) {
    const long long spent = (long long)p->seconds;
    if (!l->table) fputs("    step  pass  training  validation     right    time\n", stderr);
    l->table = true;
    fprintf(stderr, "%8lld  %4lld  ", (long long)p->step, (long long)p->epoch + 1);
    if (p->train_loss == p->train_loss)
        fprintf(stderr, "%8.4f", p->train_loss);
    else
        fputs("       -", stderr);
    fprintf(stderr, "  %10.4f  %6.2f %%  %3lld:%02lld%s\n", p->loss, 100 * p->accuracy, spent / 60,
            spent % 60, p->best ? "  best" : "");
}

bool cli_live_show(void *user, const qkv_progress *p) {
    cli_live *l = user;
    if (l->quiet) return !caught;
    switch (p->kind) {
    case QKV_PROGRESS_NOTE:
        clear(l);
        fprintf(stderr, "%s\n", p->text);
        break;
    case QKV_PROGRESS_STEP:
        show_step(l, p);
        break;
    case QKV_PROGRESS_VALID:
        clear(l);
        show_valid(l, p);
        break;
    case QKV_PROGRESS_ALIVE:
        break;
    }
    return !caught;
}

void cli_live_end(cli_live *l) {
    clear(l);
}

int cli_live_code(qkv_status status) {
    if (status == QKV_OK) return 0;
    const int code = cli_fail(status);
    return status == QKV_INTERRUPTED && caught ? 128 + caught : code;
}
