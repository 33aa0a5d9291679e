/* SPDX-License-Identifier: BSD-3-Clause */
/* A terminal by ncurses, see screen.h. Signals are let through only while it waits for keys, by ppoll: so none comes
   between a look whether one came and the wait, and input that is at its end does not spin. */
#include "cli/screen.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ncurses.h>

#define ESCAPE_MS 25 /* that a sequence of a key takes at most */

struct nt_cli_screen {
    SCREEN *screen;
    bool plain, keys;
    sigset_t before; /* what was blocked */
};

static void block_signals(sigset_t *ret_before)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)sigaddset(&set, numbers[i]);
    (void)sigprocmask(SIG_BLOCK, &set, ret_before);
}

int nt_cli_screen_open(struct nt_cli_screen **ret_screen)
{
    if (!isatty(STDOUT_FILENO))
        return -ENOTTY;
    struct nt_cli_screen *screen = calloc(1, sizeof *screen);
    if (!screen)
        return -ENOMEM;
    (void)setlocale(LC_CTYPE, "");
    screen->plain = MB_CUR_MAX == 1;
    screen->keys = isatty(STDIN_FILENO);
    screen->screen = newterm(NULL, stdout, stdin);
    if (!screen->screen) {
        free(screen);
        return -ENOTSUP;
    }
    (void)set_escdelay(ESCAPE_MS);
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    block_signals(&screen->before);
    *ret_screen = screen;
    return 0;
}

void nt_cli_screen_close(struct nt_cli_screen *take_screen)
{
    if (!take_screen)
        return;
    (void)endwin();
    delscreen(take_screen->screen);
    (void)sigprocmask(SIG_SETMASK, &take_screen->before, NULL);
    free(take_screen);
}

size_t nt_cli_screen_rows(const struct nt_cli_screen *screen)
{
    (void)screen;
    return LINES > 0 ? (size_t)LINES : 0;
}

size_t nt_cli_screen_columns(const struct nt_cli_screen *screen)
{
    (void)screen;
    return COLS > 0 ? (size_t)COLS : 0;
}

bool nt_cli_screen_is_plain(const struct nt_cli_screen *screen)
{
    return screen->plain;
}

static void draw_line(int row, const char *line, size_t size, bool stands_out)
{
    if (stands_out)
        (void)attron(A_REVERSE);
    (void)move(row, 0);
    (void)addnstr(line, (int)size);
    if (stands_out) {
        for (int column = getcurx(stdscr); getcury(stdscr) == row && column < COLS && column > 0; column++)
            (void)mvaddch(row, column, ' ');
        (void)attroff(A_REVERSE);
    } else if (getcury(stdscr) == row) {
        (void)clrtoeol();
    }
}

void nt_cli_screen_draw(struct nt_cli_screen *screen, const char *lines, size_t size, size_t stands_out,
                        const char *bottom)
{
    (void)screen;
    int row = 0, last = bottom ? LINES - 1 : LINES;
    for (size_t at = 0; at < size && row < last; row++) {
        const char *end = memchr(lines + at, '\n', size - at);
        size_t length = end ? (size_t)(end - lines) - at : size - at;
        draw_line(row, lines + at, length, (size_t)row == stands_out);
        at += length + 1;
    }
    if (row < LINES) {
        (void)move(row, 0);
        (void)clrtobot();
    }
    if (bottom)
        draw_line(LINES - 1, bottom, strlen(bottom), true);
    (void)refresh();
}

static int key_of(int key)
{
    static const struct {
        int from, to;
    } keys[] = {
        { KEY_UP, NT_CLI_KEY_UP },
        { KEY_DOWN, NT_CLI_KEY_DOWN },
        { KEY_PPAGE, NT_CLI_KEY_PAGE_UP },
        { KEY_NPAGE, NT_CLI_KEY_PAGE_DOWN },
        { KEY_HOME, NT_CLI_KEY_HOME },
        { KEY_END, NT_CLI_KEY_END },
        { KEY_ENTER, NT_CLI_KEY_ENTER },
        { '\n', NT_CLI_KEY_ENTER },
        { '\r', NT_CLI_KEY_ENTER },
        { 27, NT_CLI_KEY_ESCAPE },
        { 127, NT_CLI_KEY_BACKSPACE },
        { '\b', NT_CLI_KEY_BACKSPACE },
        { KEY_BACKSPACE, NT_CLI_KEY_BACKSPACE },
        { KEY_RESIZE, NT_CLI_KEY_RESIZE },
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].from == key)
            return keys[i].to;
    }
    return key >= 0 && key < 256 ? key : NT_CLI_KEY_NONE;
}

int nt_cli_screen_key(struct nt_cli_screen *screen, int milliseconds)
{
    static const struct timespec none;
    struct timespec wait = { .tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L };
    (void)ppoll(NULL, 0, &none, &screen->before);
    int key = getch(); /* one that is there already, or a new size */
    if (key != ERR)
        return key_of(key);
    struct pollfd in = { .fd = screen->keys ? STDIN_FILENO : -1, .events = POLLIN };
    int ready = ppoll(&in, 1, milliseconds >= 0 ? &wait : NULL, &screen->before);
    if (ready > 0 && (in.revents & POLLIN) == 0)
        screen->keys = false; /* the terminal is gone */
    return ready != 0 ? key_of(getch()) : NT_CLI_KEY_NONE;
}
