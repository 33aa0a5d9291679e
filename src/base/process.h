/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process is which, and whether it lives: from /proc alone. No allocation, no locks, safe in signal
   handlers and in forked children: the log stands on it too. */
#ifndef NT_BASE_PROCESS_H
#define NT_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nt_process_status {
    char state;          /* as in /proc/PID/stat: R S D T t Z X I; S, not Z, while any thread but the first lives */
    uint64_t start_time; /* clock ticks since boot */
};

/* 0, -ESRCH (no such process), or another negative errno value (no /proc, not readable). */
int nt_process_status(uint32_t pid, struct nt_process_status *ret_status);
/* Tells where pids and start times mean the same: the inode of the caller's pid namespace, with that of its time
   namespace unless that is the first one. 0 if it cannot be told. */
uint64_t nt_process_pid_namespace(void);
/* 0 or a negative errno value; the boot id is zero then. */
int nt_process_boot_id(uint8_t ret_id[16]);
/* Whether the process maps the file: 1 yes, 0 no, negative: cannot be told. Reads /proc/PID/maps. */
int nt_process_maps(uint32_t pid, uint64_t device, uint64_t inode);

#endif
