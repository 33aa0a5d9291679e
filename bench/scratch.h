/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs to measure with: in a folder of their own in shared memory, that is gone when the benchmark ends. */
#ifndef NT_BENCH_SCRATCH_H
#define NT_BENCH_SCRATCH_H

#include <stdint.h>

#include <nt/log.h>

/* The folder, made at the first call; NULL with a line on stderr if it cannot be. Children do not remove it. */
const char *scratch_directory(void);

/* Opens a log there. NULL with a line on stderr if it has no file. 0 means the library's default. */
nt_log *scratch_log(const char *name, uint64_t ring_bytes, uint64_t cap_bytes);
/* Closes it and removes the file. */
void scratch_log_free(nt_log *take_log);

/* An exclusive channel below the program's object. Its name is `prefix` and the number. */
nt_object scratch_object(nt_log *log, const char *prefix, uint32_t number, uint64_t mask);

#endif
