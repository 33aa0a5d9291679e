/* SPDX-License-Identifier: BSD-3-Clause */
/* told_sessions LOG DEPTH MANY NAME…: makes a session of each name (hex), counts in each, in sessions of odd ids, in a
   chain of DEPTH sessions below each other, and in MANY of anybody's ids with little room. Prints the ids of the named
   ones and of the chain, one a line; ends when its standard input does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/log.h>

static nt_object channel(nt_log *log, const char *name, uint32_t discipline)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = name;
    options.discipline = discipline;
    return nt_object_new(log, &options);
}

static const char *from_hex(const char *hex, char name[256])
{
    size_t size = 0;
    unsigned byte;
    for (; size < 255 && sscanf(hex + 2 * size, "%2x", &byte) == 1; size++)
        name[size] = (char)byte;
    name[size] = '\0';
    return name;
}

static void count(nt_object object, nt_session session, uint64_t value)
{
    nt_object_session_set(object, session);
    nt_object_count(object, NT_WRITE, value);
}

int main(int argc, char **argv)
{
    static const uint64_t odd[] = {
        1, UINT64_C(1) << 31, UINT64_C(1) << 32, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, UINT64_MAX
    };
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_log *log;
    char name[256];
    if (argc < 4)
        return 2;
    uint64_t many = strtoull(argv[3], NULL, 10);
    options.name = argv[1];
    options.cap_bytes = many != 0 ? 512 * 1024 : 0;
    if (nt_log_open(&options, &log) != 0)
        return 1;
    nt_object own = channel(log, "own", NT_EXCLUSIVE), mux = channel(log, "mux", NT_SHARED);
    count(own, 0, 5);
    for (int i = 4; i < argc; i++) {
        nt_session session = nt_session_new(log, from_hex(argv[i], name), 0);
        printf("%016llx\n", (unsigned long long)session);
        count(own, session, (uint64_t)i);
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        count(own, odd[i], odd[i]);
        nt_object_count_in(mux, odd[i], NT_READ, odd[i]);
    }
    nt_session parent = 0;
    for (unsigned long depth = strtoul(argv[2], NULL, 10); depth > 0; depth--) {
        parent = nt_session_new(log, "link", parent);
        printf("%016llx\n", (unsigned long long)parent);
        count(own, parent, 1);
    }
    for (uint64_t i = 0; i < 2 * many; i++)
        count(own, (UINT64_C(0xfeed) << 48) + i % many, 1);
    nt_object_session_set(own, 0);
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    nt_log_close(log);
    return 0;
}
