/* qkv demo: to be filled by training. */
#include "command.h"

static int run(const cli_args *a) {
    (void)a;
    fputs("The demo comes with training; \"qkv doctor\" works today.\n", stderr);
    return 0;
}

const cli_command command_demo = {
    .usage = "[options]",
    .examples = "qkv demo\n",
    .run = run,
};
