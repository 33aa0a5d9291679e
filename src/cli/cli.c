/* SPDX-License-Identifier: BSD-3-Clause */
/* What all commands share, see cli.h. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

static int write_all(void *arg, const char *data, size_t size)
{
    const struct nt_cli *cli = arg;
    while (size > 0) {
        ssize_t written = write(cli->out_fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

void nt_cli_init(struct nt_cli *cli, int out_fd, FILE *talk)
{
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *cli = (struct nt_cli){
        .out = { .drain = write_all, .arg = cli },
        .out_fd = out_fd,
        .talk = talk,
        .now = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
    };
}

int nt_cli_finish(struct nt_cli *cli, int code)
{
    int error = nt_buffer_flush(&cli->out);
    nt_buffer_fini(&cli->out);
    if (cli->damaged && (code == NT_CLI_OK || code == NT_CLI_NOTHING))
        code = NT_CLI_BAD;
    if (error == 0 || error == -EPIPE)
        return code;
    nt_cli_say(cli, "cannot write the output: %s", nt_error_text(error));
    return NT_CLI_BAD;
}

void nt_cli_codes_help(struct nt_buffer *out)
{
#define NT_CLI_CODE(number, symbol, text) ", " #number " " text
    static const char codes[] =
#include "cli/codes.def"
        ;
#undef NT_CLI_CODE
    nt_buffer_print(out, "\nExit codes: %s.\n", codes + 2);
}

void nt_cli_say(struct nt_cli *cli, const char *format, ...)
{
    va_list arguments;
    (void)fputs("ntscope: ", cli->talk);
    va_start(arguments, format);
    (void)vfprintf(cli->talk, format, arguments);
    va_end(arguments);
    (void)fputc('\n', cli->talk);
}

void nt_cli_say_of(struct nt_cli *cli, const char *before, const char *name, const char *after)
{
    struct nt_buffer shown = { 0 };
    nt_text_append(&shown, name, strlen(name));
    nt_cli_say(cli, "%s%.*s%s", before, (int)shown.size, shown.data ? shown.data : "", after);
    nt_buffer_fini(&shown);
}
