/* qkv doctor: what this build and machine have. */
#include "command.h"

static int run(const cli_args *a) {
    char *text = NULL;
    cli_use_machine(a);
    qkv_diagnosis found;
    qkv_status status = qkv_doctor(&found);
    if (status == QKV_OK) status = qkv_diagnosis_show(&found, cli_show(a), &text);
    qkv_diagnosis_free(&found);
    return cli_print(status, text);
}

static const cli_option options[] = {CLI_OPTION_JSON, CLI_OPTIONS_MACHINE};

const cli_command command_doctor = {
    .usage = "[options]",
    .examples = "qkv doctor\n"
                "qkv doctor --json | jq .peak_gflops_f32\n",
    .about = "Names the build, the instruction sets of this CPU and the one in use, threads and "
             "memory,\n"
             "and measures for about a second what this machine can do: multiply-adds and memory "
             "bandwidth.\n"
             "QKV_ISA=plain (or avx2, avx512) in the environment forces an instruction set.",
    CLI_OPTIONS(options),
    .run = run,
};
