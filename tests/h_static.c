/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with libnt-log's archive inside, which opens its log in a constructor, before the library's own runs. */
#include <stdio.h>

#include <nt/log.h>

static nt_log *early_log;
static nt_object early_object;

__attribute__((constructor)) static void early(void)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = "early";
    nt_log_open(NULL, &early_log);
    early_object = nt_object_new(early_log, &options);
    nt_object_count(early_object, NT_WRITE, 1);
}

int main(void)
{
    nt_object_count(early_object, NT_WRITE, 1);
    printf("static\n");
    return 0;
}
