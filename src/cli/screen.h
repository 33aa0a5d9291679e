/* SPDX-License-Identifier: BSD-3-Clause */
/* A terminal that lines are shown on, and its keys. It is put back as it was by nt_cli_screen_close, which must follow
   whatever happens. Knows nothing of what is shown. One at a time. */
#ifndef NT_CLI_SCREEN_H
#define NT_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

enum nt_cli_key { /* besides characters */
                  NT_CLI_KEY_NONE = -1,
                  NT_CLI_KEY_UP = 256,
                  NT_CLI_KEY_DOWN,
                  NT_CLI_KEY_PAGE_UP,
                  NT_CLI_KEY_PAGE_DOWN,
                  NT_CLI_KEY_HOME,
                  NT_CLI_KEY_END,
                  NT_CLI_KEY_ENTER,
                  NT_CLI_KEY_ESCAPE,
                  NT_CLI_KEY_BACKSPACE,
                  NT_CLI_KEY_RESIZE /* the size is another one now */
};

struct nt_cli_screen;

/* On stdout, keys from stdin. 0, -ENOTTY: stdout is no terminal, -ENOTSUP: of a kind that is not known; or -ENOMEM. */
int nt_cli_screen_open(struct nt_cli_screen **ret_screen);
/* NULL is ignored. */
void nt_cli_screen_close(struct nt_cli_screen *take_screen);
size_t nt_cli_screen_rows(const struct nt_cli_screen *screen);
size_t nt_cli_screen_columns(const struct nt_cli_screen *screen);
/* It shows ASCII only. */
bool nt_cli_screen_is_plain(const struct nt_cli_screen *screen);
/* Shows lines, each closed by a newline and no wider than the screen; the one of that number stands out. Only what is
   another than before is sent. `bottom`: in place of the last line; NULL: nothing. */
void nt_cli_screen_draw(struct nt_cli_screen *screen, const char *lines, size_t size, size_t stands_out,
                        const char *bottom);
/* The next key, waited for that long at most (-1: without end), and no longer than until a signal comes. Those that end
   a program are let through only here, so that each ends the wait or comes before it. */
int nt_cli_screen_key(struct nt_cli_screen *screen, int milliseconds);

#endif
