/* qkv: finds the command in the table and runs it. Results go to stdout, talk to stderr; exit codes
 * are those of QKV_STATUS_TABLE in qkv.h. */
#include "command.h"
#include "input_lines.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND(name, summary) extern const cli_command command_##name;
#include "commands.def"
#undef COMMAND

static const cli_entry commands[] = {
#define COMMAND(name, summary) {#name, summary, &command_##name},
#include "commands.def"
#undef COMMAND
};

size_t cli_commands(const cli_entry **out) {
    *out = commands;
    return CLI_COUNT(commands);
}

/* ---- talk ---- */

int cli_fail(qkv_status status) {
    cli_say(stderr, 5, "qkv: %s", qkv_error());
    return qkv_status_exit_code(status);
}

int cli_usage_error(const char *format, ...) {
    va_list args;
    char text[1024];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_say(stderr, 5, "qkv: %s", text);
    return qkv_status_exit_code(QKV_USAGE);
}

int cli_print(qkv_status status, char *text) {
    if (status != QKV_OK) {
        qkv_text_free(text);
        return cli_fail(status);
    }
    cli_put_lines(stdout, text);
    qkv_text_free(text);
    return 0;
}

/* ---- dispatch ---- */

static const cli_entry *find(const cli_entry *entries, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(entries[i].name, name) == 0) return &entries[i];
    return NULL;
}

static int unknown_command(const char *path, const cli_entry *entries, size_t n, const char *name) {
    const char *names[64];
    if (n > CLI_COUNT(names)) n = CLI_COUNT(names);
    for (size_t i = 0; i < n; i++) names[i] = entries[i].name;
    const char *near = qkv_nearest(name, names, n);
    if (near)
        return cli_usage_error("there is no \"%s %.40s\"; did you mean \"%s %s\"?", path, name,
                               path, near);
    return cli_usage_error("there is no \"%s %.40s\"; \"%s --help\" lists what there is", path,
                           name, path);
}

static int run_leaf(const char *path, const char *summary, const cli_command *c, int argc,
                    char **argv) {
    cli_args args;
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    int code = qkv_status_exit_code(QKV_USAGE);
    if (cli_parse(&args, path, rows, n, argc, argv)) {
        if (args.help) {
            cli_help(stdout, &(cli_named){path, summary, c}, args.topic);
            code = 0;
        } else if (args.n_rest < c->min_rest) {
            cli_usage_error("%s needs %s: %s %s", path,
                            c->min_rest > 1 ? "more arguments" : "an argument", path, c->usage);
        } else if (args.n_rest > c->max_rest) {
            cli_usage_error("%s does not know what to do with \"%.60s\": %s %s", path,
                            args.rest[c->max_rest], path, c->usage ? c->usage : "[options]");
        } else {
            code = c->run(&args);
        }
    }
    cli_args_free(&args);
    return code;
}

/* Walks down "qkv tokenizer train …" as far as there are subcommands. */
static int run_entry(const cli_entry *entry, int argc, char **argv) {
    char path[128] = "qkv ";
    strncat(path, entry->name, 40);
    while (entry->command->subcommands) {
        const cli_command *c = entry->command;
        if (argc < 1 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
            cli_help(argc < 1 ? stderr : stdout, &(cli_named){path, entry->summary, c}, NULL);
            return argc < 1 ? qkv_status_exit_code(QKV_USAGE) : 0;
        }
        const cli_entry *next = find(c->subcommands, c->n_subcommands, argv[0]);
        if (!next) return unknown_command(path, c->subcommands, c->n_subcommands, argv[0]);
        entry = next;
        strncat(path, " ", 2);
        strncat(path, entry->name, 40);
        argc--, argv++;
    }
    return run_leaf(path, entry->summary, entry->command, argc, argv);
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        cli_help_all(stderr);
        return qkv_status_exit_code(QKV_USAGE);
    }
    char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("qkv %s\n", qkv_version());
        return 0;
    }
    if (strcmp(word, "--man-pages") == 0 && argc == 3) return cli_man_pages(argv[2]);
    bool help = strcmp(word, "help") == 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (help && argc == 2)) {
        cli_help_all(stdout);
        return 0;
    }
    if (help) word = argv[2];
    if (!help && word[0] == '-')
        return cli_usage_error(
            "there is no option %s before a command; \"qkv --help\" lists what there is", word);
    const cli_entry *entry = find(commands, CLI_COUNT(commands), word);
    if (!entry) return unknown_command("qkv", commands, CLI_COUNT(commands), word);
    if (!help) return run_entry(entry, argc - 2, argv + 2);
    /* "qkv help tokenizer train" is "qkv tokenizer train --help". */
    argv[2] = (char *)"--help";
    if (argc > 3) argv[2] = argv[3], argv[3] = (char *)"--help";
    return run_entry(entry, argc > 3 ? 2 : 1, argv + 2);
}

/* Waiting OpenMP threads spin for milliseconds by default and can starve the thread they wait for
 * (a hundred times slower beside another busy program). libgomp reads GOMP_SPINCOUNT only when it
 * starts: before main, and after constructors of a priority if it is a part of the command. */
#ifdef CLI_OPENMP_WITHIN
__attribute__((constructor(101)))
#endif
static bool
set_spin_count(void) {
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return false;
    return setenv("GOMP_SPINCOUNT", "3000", 1) == 0;
}

/* Where it is a shared library, it has started already: the command starts once more. */
static void start_again(char **argv) {
    char self[4096]; /* by its own name, as which others know the process */
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0 || !set_spin_count()) return;
    self[n] = 0;
    execv(self, argv); /* when it fails, we go on without */
}

/* Standard descriptors that the caller has closed would become those of data files, and messages
 * land there. In their place stands what can neither be read nor written. */
static void keep_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(1);
}

/* A page of a mapped file that is there no more: somebody cut the file short, or its disk failed.
 * What was begun is left as by kill -9, which checkpoints and written files survive. */
static void end_of_map(int number) {
    static const char text[] =
        "qkv: a file was cut short, or could not be read any more, while it "
        "was in use; start again when it is whole (--no-mmap reads files into "
        "memory)\n";
    (void)number;
    const ssize_t said = write(STDERR_FILENO, text, sizeof text - 1);
    _exit(qkv_status_exit_code(said < 0 ? QKV_FAILED : QKV_BAD_FILE));
}

int main(int argc, char **argv) {
    keep_standard_descriptors();
    signal(SIGBUS, end_of_map);
    signal(SIGXFSZ, SIG_IGN); /* a file over its limit is a write that fails, not the end */
    start_again(argv);
    int code = dispatch(argc, argv);
    if (code == 0 && cli_lines_failed()) code = qkv_status_exit_code(QKV_FAILED);
    /* A full disk shows only when the last of the output is written. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "qkv: cannot write the output: %s\n", strerror(errno));
        if (code == 0) code = qkv_status_exit_code(QKV_FAILED);
    }
    return code;
}
