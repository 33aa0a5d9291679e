/* SPDX-License-Identifier: BSD-3-Clause */
/* named_objects LOG NODE [NAME…]: a program with a log of that name and node, and one channel for each NAME, on
   which it counts one write of 100, 101, … bytes. NODE and NAMEs are in hex, so that they can be any bytes.
   Says "ready", and ends when its standard input does: `--leave` first and it ends without closing its log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nt/log.h>

/* Returns the number of bytes. */
static size_t parse_hex(const char *hex, char *ret_bytes, size_t room)
{
    size_t size = 0;
    for (; hex[0] && hex[1] && size < room; hex += 2) {
        char digits[3] = { hex[0], hex[1], 0 };
        ret_bytes[size++] = (char)strtoul(digits, NULL, 16);
    }
    return size;
}

int main(int argc, char **argv)
{
    bool leave = argc > 1 && strcmp(argv[1], "--leave") == 0;
    char **words = argv + 1 + leave;
    int count = argc - 1 - leave;
    if (count < 2) {
        fputs("usage: named_objects [--leave] LOG NODE [NAME…]\n", stderr);
        return 2;
    }
    char node[256] = "";
    parse_hex(words[1], node, sizeof node - 1);
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.name = words[0];
    options.node = node;
    nt_log *log;
    int result = nt_log_open(&options, &log);
    if (result < 0) {
        fprintf(stderr, "named_objects: nt_log_open: %d\n", result);
        return 1;
    }
    for (int i = 2; i < count; i++) {
        char name[NT_LAYOUT_NAME];
        nt_object_options object = NT_OBJECT_OPTIONS_INIT;
        object.name = name;
        object.name_size = parse_hex(words[i], name, sizeof name);
        nt_object_count(nt_object_new(log, &object), NT_WRITE, 100 + (uint64_t)i - 2);
    }
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    if (leave)
        _exit(0);
    nt_log_close(log);
    return 0;
}
