/* SPDX-License-Identifier: BSD-3-Clause */
/* A module with a copy of libnt-log of its own inside: loaded twice, under two names, by h_copies. */
#include <nt/log.h>

__attribute__((visibility("default"))) int module_count(const char *name, unsigned long times);
__attribute__((visibility("default"))) const char *module_path(void);

static nt_log *module_log;
static nt_object module_object;

/* Opens the program's log at the first call. Returns 0, or what went wrong. */
int module_count(const char *name, unsigned long times)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    nt_log_options log_options = NT_LOG_OPTIONS_INIT;
    struct nt_layout_tally tally;
    log_options.ring_bytes = 65536;
    if (!module_log) {
        int error = nt_log_open(&log_options, &module_log);
        options.name = name;
        options.discipline = NT_SHARED;
        module_object = nt_object_new(module_log, &options);
        if (error)
            return error;
    }
    for (unsigned long i = 0; i < times; i++)
        nt_object_count(module_object, NT_WRITE, 2);
    return nt_object_tally(module_object, NT_WRITE, &tally) == 0 && tally.sum.total == 2 * tally.sum.count ? 0 : 1;
}

const char *module_path(void)
{
    return nt_log_path(module_log);
}
