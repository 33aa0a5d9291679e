/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs to measure with: in a folder of their own in shared memory, that is gone when the benchmark ends. */
#ifndef NT_BENCH_SCRATCH_H
#define NT_BENCH_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <nt/log.h>

/* The folder, made at the first call; NULL with a line on stderr if it cannot be. Children do not remove it. */
const char *scratch_directory(void);

/* Opens a log there. NULL with a line on stderr if it has no file. 0 means the library's default. */
nt_log *scratch_log(const char *name, uint64_t ring_bytes, uint64_t cap_bytes);
/* Whether no event was dropped and no object or tally refused: else what was measured is not what was meant,
   which is said on stderr. */
bool scratch_log_is_whole(const nt_log *log);
/* Closes it and removes the file. */
void scratch_log_free(nt_log *take_log);

/* An exclusive channel below the program's object. Its name is `prefix` and the number. */
nt_object scratch_object(nt_log *log, const char *prefix, uint32_t number, uint64_t mask);

/* Runs it in a thread of its own and returns its result, -1 if there is no thread. For all that opens log after
   log: a thread keeps place for the rings of some only. */
int scratch_in_thread(int (*run)(void *arg), void *arg);

#endif
