/* SPDX-License-Identifier: BSD-3-Clause */
/* The relay's command line: one table for parser and help. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "wire.h"

enum option_type {
    OPTION_NUMBER,
    OPTION_BYTES,
    OPTION_UNSIGNED,
    OPTION_RANGE,
    OPTION_SWITCH,
    OPTION_FLAG,
    OPTION_TEXT
};

struct option_row {
    const char *name;
    enum option_type type;
    size_t at; /* in struct command */
    uint64_t low, high;
    const char *metavar, *text;
};

#define AT(member) offsetof(struct command, member)
static const struct option_row rows[] = {
    { "requests", OPTION_NUMBER, AT(options.requests), 0, UINT64_MAX, "N", "requests to send; 0: no limit [1000]" },
    { "seconds", OPTION_NUMBER, AT(options.seconds), 0, 1000000, "S", "stop sending after that long; 0: no limit [0]" },
    { "rate", OPTION_NUMBER, AT(options.rate), 0, 1000000000, "R", "requests a second; 0: as fast as it goes [0]" },
    { "size", OPTION_RANGE, AT(options.size_min), 0, WIRE_PAYLOAD_MAX, "MIN:MAX", "bytes of a request [16:1024]" },
    { "workers", OPTION_UNSIGNED, AT(options.workers), 1, 256, "N", "worker processes [2]" },
    { "threads", OPTION_UNSIGNED, AT(options.threads), 1, 64, "T", "handling threads of a worker [2]" },
    { "seed", OPTION_NUMBER, AT(options.seed), 0, UINT64_MAX, "N", "of sizes and data [1]" },
    { "churn", OPTION_NUMBER, AT(options.churn), 0, UINT64_MAX, "N",
      "every Nth result goes over a short connection of its own; 0: none [0]" },
    { "reconnect-every", OPTION_NUMBER, AT(options.reconnect_every), 0, UINT64_MAX, "N",
      "make a connection anew after N messages, 2 or more; 0: never [0]" },
    { "fork-every", OPTION_NUMBER, AT(options.fork_every), 0, UINT64_MAX, "N",
      "every Nth request goes to a helper forked for it; 0: none [0]" },
    { "sessions", OPTION_SWITCH, AT(options.sessions), 0, 0, "on|off",
      "one for each request, more for its parts, one that stands [on]" },
    { "session-count", OPTION_NUMBER, AT(options.session_count), 0, 1000000, "N",
      "requests take N sessions in turn; 0: each has its own [0]" },
    { "parts", OPTION_NUMBER, AT(options.parts), 0, 1000, "N",
      "sessions below a request's: N in the worker, else one a process; 0: none [1]" },
    { "idle", OPTION_NUMBER, AT(options.idle), 0, 1000000, "N", "channels that a worker holds and hardly uses [0]" },
    { "timeout", OPTION_NUMBER, AT(options.timeout), 1, 3600, "S", "give up waiting after that long [10]" },
    { "log", OPTION_SWITCH, AT(options.log), 0, 0, "on|off", "write logs [on]" },
    { "ring", OPTION_BYTES, AT(options.ring_bytes), 16384, 1 << 30, "BYTES", "of a thread's ring, a power of two" },
    { "cap", OPTION_BYTES, AT(options.cap_bytes), 524288, UINT64_C(1) << 40, "BYTES", "of a whole log" },
    { "node-per-process", OPTION_FLAG, AT(options.node_per_process), 0, 0, NULL, "each process is a node of its own" },
    { "truth", OPTION_TEXT, AT(options.truth), 0, 0, "DIR", "keep what each process counted by itself there" },
    { "print-truth", OPTION_TEXT, AT(print_truth), 0, 0, "DIR", "print such a directory as JSON and end" },
    { "help", OPTION_FLAG, AT(help), 0, 0, NULL, "this text" },
};
#undef AT

void options_help(void)
{
    puts("Usage: relay [OPTION…]\n"
         "Sends requests from a source over a router to workers and their results to a sink, each a process of\n"
         "its own with a log of its own. Prints what each counted by itself, one JSON line a process.\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("  --%s%s%-*s %s\n", rows[i].name, rows[i].metavar ? "=" : " ", (int)(24 - strlen(rows[i].name)),
               rows[i].metavar ? rows[i].metavar : "", rows[i].text);
    puts("\nExit: 0 if every request's result arrived, 1 if not, 2 for a bad option.");
}

static int complain(const char *name, const char *what)
{
    fprintf(stderr, "relay: --%s: %s\n", name, what);
    return -EINVAL;
}

/* Digits, with a K, M or G behind if units. The rest of the text goes to *ret_end. */
static bool parse_number(const char *text, bool units, uint64_t *ret_value, const char **ret_end)
{
    if (*text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno)
        return false;
    static const char letters[] = "KMG";
    const char *letter = units && *end ? strchr(letters, *end) : NULL;
    if (letter) {
        unsigned shift = 10 * (unsigned)(letter - letters + 1);
        if (value > UINT64_MAX >> shift)
            return false;
        value <<= shift;
        end++;
    }
    *ret_value = value;
    *ret_end = end;
    return true;
}

static int parse_numeric(const struct option_row *row, const char *text, char *place)
{
    uint64_t value;
    const char *end;
    if (!parse_number(text, row->type == OPTION_BYTES, &value, &end) || *end)
        return complain(row->name, "not a number");
    if (value < row->low || value > row->high)
        return complain(row->name, "out of range");
    if (row->type == OPTION_UNSIGNED)
        *(unsigned *)(void *)place = (unsigned)value;
    else
        *(uint64_t *)(void *)place = value;
    return 0;
}

static int parse_range(const struct option_row *row, const char *text, char *place)
{
    uint64_t low, high;
    const char *end;
    if (!parse_number(text, true, &low, &end) || *end != ':' || !parse_number(end + 1, true, &high, &end) || *end)
        return complain(row->name, "not MIN:MAX");
    if (low > high || high > row->high)
        return complain(row->name, "out of range");
    ((uint64_t *)(void *)place)[0] = low;
    ((uint64_t *)(void *)place)[1] = high;
    return 0;
}

static int parse_value(const struct option_row *row, const char *text, struct command *command)
{
    char *place = (char *)command + row->at;
    switch (row->type) {
    case OPTION_RANGE:
        return parse_range(row, text, place);
    case OPTION_TEXT:
        if (!*text)
            return complain(row->name, "empty");
        *(const char **)(void *)place = text;
        return 0;
    case OPTION_SWITCH:
        if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
            return complain(row->name, "neither on nor off");
        *(bool *)place = text[1] == 'n';
        return 0;
    case OPTION_FLAG:
        *(bool *)place = true;
        return 0;
    default:
        return parse_numeric(row, text, place);
    }
}

static const struct option_row *find_row(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

/* "--name value", "--name=value" or a flag: how many words it took, or -EINVAL. */
static int parse_option(char **words, struct command *command)
{
    const char *word = words[0];
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const struct option_row *row = length > 2 && memcmp(word, "--", 2) == 0 ? find_row(word + 2, length - 2) : NULL;
    if (!row) {
        fprintf(stderr, "relay: unknown option '%s' (see relay --help)\n", word);
        return -EINVAL;
    }
    if (row->type == OPTION_FLAG && equals)
        return complain(row->name, "takes no value");
    const char *value = row->type == OPTION_FLAG ? "" : equals ? equals + 1 : words[1];
    if (!value)
        return complain(row->name, "needs a value");
    int result = parse_value(row, value, command);
    return result < 0 ? result : row->type == OPTION_FLAG || equals ? 1 : 2;
}

int options_parse(int argc, char **argv, struct command *ret_command)
{
    struct command command = { .options = { .requests = 1000,
                                            .size_min = 16,
                                            .size_max = 1024,
                                            .workers = 2,
                                            .threads = 2,
                                            .seed = 1,
                                            .timeout = 10,
                                            .parts = 1,
                                            .log = true,
                                            .sessions = true } };
    for (int i = 1; i < argc;) {
        int took = parse_option(argv + i, &command);
        if (took < 0)
            return took;
        i += took;
    }
    const struct options *options = &command.options;
    if (options->ring_bytes & (options->ring_bytes - 1))
        return complain("ring", "not a power of two");
    if (options->reconnect_every == 1)
        return complain("reconnect-every", "out of range");
    if (options->requests == 0 && options->seconds == 0)
        return complain("requests", "no limit, and none by --seconds");
    *ret_command = command;
    return 0;
}
