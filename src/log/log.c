/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs: opened, shared, closed; what happens when the library is loaded and when the program ends. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "log/log.h"

#define RING_BYTES UINT64_C(1048576)
#define RING_MIN UINT64_C(16384)
#define RING_MAX UINT64_C(1073741824)
#define CAP_BYTES UINT64_C(67108864)
#define CAP_MIN UINT64_C(524288)
#define CAP_MAX (UINT64_C(1) << 40)

struct nt_log log_table[LOG_MAX];
/* What is handed out when none can be had: ignores everything. */
static struct nt_log log_none = { .broken = true };
static bool pair_is_atomic;
static void library_load(void);

bool log_pair_is_atomic(void)
{
    return pair_is_atomic;
}

/* ---- options ---- */

static bool text_take(char *to, size_t size, const char *from, const char *otherwise)
{
    const char *text = from && from[0] ? from : otherwise;
    size_t length = strlen(text);
    if (length >= size)
        return false;
    memcpy(to, text, length + 1);
    return true;
}

static bool name_good(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("_+.-", *c)))
            return false;
    return name[0] && name[0] != '.';
}

/* The default name: the program's, with what a log's name may not have replaced. */
static void program_name(char name[64])
{
    const char *from = program_invocation_short_name;
    size_t size = 0;
    for (; from[size] && size < 63; size++) {
        char c = from[size];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                    c == '+' || c == '-' || (c == '.' && size);
        name[size] = good ? c : '_';
    }
    name[size] = '\0';
    if (!size)
        memcpy(name, "program", sizeof("program"));
}

static void boot_id_text(char text[33])
{
    uint8_t id[16] = { 0 };
    nt_process_boot_id(id);
    for (int i = 0; i < 16; i++) {
        text[2 * i] = "0123456789abcdef"[id[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
    }
    text[32] = '\0';
}

static bool sizes_take(const nt_log_options *options, struct log_settings *settings)
{
    settings->ring_bytes = options->ring_bytes ? options->ring_bytes : RING_BYTES;
    settings->cap_bytes = options->cap_bytes ? options->cap_bytes : CAP_BYTES;
    uint64_t ring = settings->ring_bytes, cap = settings->cap_bytes;
    return ring >= RING_MIN && ring <= RING_MAX && !(ring & (ring - 1)) && cap >= CAP_MIN && cap <= CAP_MAX &&
           !(options->flags & ~(uint32_t)NT_LOG_GROUP_READABLE);
}

/* A relative one is made absolute: a child may go elsewhere before its first count. */
static bool directory_take(char *to, size_t size, const char *directory)
{
    if (!directory[0] || directory[0] == '/')
        return text_take(to, size, directory, "");
    if (syscall(SYS_getcwd, to, size) <= 0)
        return false;
    size_t length = strlen(to);
    if (length + 1 >= size)
        return false;
    to[length] = '/';
    return text_take(to + length + 1, size - length - 1, directory, "");
}

/* As asked for, "" for the user's default. */
static const char *directory_wanted(const nt_log_options *options)
{
    const char *environment = secure_getenv("NTSCOPE_DIR");
    if (options->directory && options->directory[0])
        return options->directory;
    return environment ? environment : "";
}

static int settings_take(const nt_log_options *given, struct log_settings *settings)
{
    nt_log_options taken;
    const nt_log_options *options = &taken;
    if (!log_options_take(&taken, sizeof(taken), LOG_OPTIONS_FIRST, given))
        return -EINVAL;
    char name[64], host[256] = "", domain[33];
    uint32_t reserved = 0;
    for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]); i++)
        reserved |= options->reserved[i];
    if (reserved || !sizes_take(options, settings))
        return -EINVAL;
    settings->flags = options->flags;
    program_name(name);
    boot_id_text(domain);
    if (gethostname(host, sizeof(host) - 1) != 0 || !host[0])
        memcpy(host, "localhost", sizeof("localhost"));
    bool fits = text_take(settings->name, sizeof(settings->name), options->name, name) &&
                text_take(settings->node, sizeof(settings->node), options->node, host) &&
                text_take(settings->host, sizeof(settings->host), options->host, host) &&
                text_take(settings->domain, sizeof(settings->domain), options->clock_domain, domain) &&
                directory_take(settings->directory, sizeof(settings->directory) - 192, directory_wanted(options));
    return fits && name_good(settings->name) ? 0 : -EINVAL;
}

/* ---- opening ---- */

/* Under the process's lock, signals blocked. */
static int log_start(struct nt_log *log, const struct log_settings *settings)
{
    struct log_identity identity;
    const struct nt_log before = { .index = (uint32_t)(log - log_table),
                                   .uses = log->uses + 1,
                                   .remains = log->remains,
                                   .remains_size = log->remains_size };
    *log = before;
    log->settings = *settings;
    int error = log_identity(&identity);
    if (error == 0)
        error = log_file_open(log, &identity);
    if (error < 0)
        return error;
    log_opened(log, error == 1);
    log->references = 1;
    log_process()->mine[log->index] = true;
    __atomic_store_n(&log->used, true, __ATOMIC_RELEASE);
    return 0;
}

/* A log that was just mapped: made and locked, or found. Several copies of the library may hold it open. */
void log_opened(struct nt_log *log, bool made)
{
    struct nt_layout_live *live = log->map.live;
    if (made) {
        log_clock_pair(log, true);
    } else if (!log_lock(&live->lock)) {
        return;
    }
    live->openers++;
    live->closed = 0;
    __atomic_store_n(&live->state, NT_STATE_RUNNING, __ATOMIC_RELEASE);
    log_unlock(&live->lock);
}

static int log_find(const struct log_settings *settings, struct nt_log **ret_log)
{
    struct nt_log *room = NULL;
    for (uint32_t i = LOG_MAX; i-- > 0;) {
        struct nt_log *log = &log_table[i];
        if (!log->used) {
            /* the place used least: threads that missed the last close may still look at it */
            room = !room || log->uses <= room->uses ? log : room;
        } else if (strcmp(log->settings.name, settings->name) == 0 &&
                   strcmp(log->settings.directory, settings->directory) == 0) {
            log->references++;
            *ret_log = log;
            return log_process()->refused[log->index] ? -ENOSPC : 0;
        }
    }
    if (!room)
        return -EMFILE;
    int error = log_start(room, settings);
    if (error == 0)
        *ret_log = room;
    return error;
}

int nt_log_open(const nt_log_options *options, nt_log **ret_log)
{
    const nt_log_options defaults = NT_LOG_OPTIONS_INIT;
    struct log_settings settings = { .name = "" };
    struct log_guard guard;
    *ret_log = &log_none;
    const char *environment = secure_getenv("NTSCOPE");
    if (environment && strcmp(environment, "off") == 0)
        return -NT_EDISABLED;
    int error = settings_take(options ? options : &defaults, &settings);
    if (error < 0)
        return error;
    int saved = errno;
    library_load();
    struct log_process *process = log_process();
    if (!process)
        return -ENOSYS;
    log_guard_enter(&guard);
    error = -EAGAIN;
    if (log_process_enter() && log_lock(&process->lock)) {
        error = log_find(&settings, ret_log);
        log_unlock(&process->lock);
    }
    log_guard_leave(&guard);
    if (error == 0)
        log_retain(&settings);
    errno = saved;
    return error;
}

/* ---- closing ---- */

static void state_close(struct nt_log *log)
{
    struct nt_layout_live *live = log->map.live;
    if (log->ended || !log_lock(&live->lock))
        return;
    log->ended = true;
    log_clock_pair(log, true);
    log_rings_give_all(log);
    log_settlers_give_all(log);
    live->closed = nt_now();
    if (--live->openers == 0)
        __atomic_store_n(&live->state, NT_STATE_CLOSED, __ATOMIC_RELEASE);
    log_unlock(&live->lock);
}

/* Threads that still hold addresses of the log write into memory that nobody sees. It stands until the next log
   of this place is closed. */
static void map_bury(struct nt_log *log)
{
    if (log->remains)
        munmap(log->remains, log->remains_size);
    log->remains = log->map.base;
    log->remains_size = log->map.size;
    /* Who is in the tables leaves them first: its lock would stay behind in the file. */
    struct nt_layout_live *live = log->map.live, *file = mremap(live, 0, NT_LAYOUT_PAGE, MREMAP_MAYMOVE);
    bool locked = (void *)file != MAP_FAILED && log_lock(&live->lock);
    log_map_blank(&log->map);
    if (locked)
        log_unlock(&file->lock);
    if ((void *)file != MAP_FAILED)
        munmap(file, NT_LAYOUT_PAGE);
}

static void log_end(struct nt_log *log)
{
    struct log_process *process = log_process();
    if (process->mine[log->index]) {
        log_thread_leave(log);
        state_close(log);
    }
    log->used = false;
    process->mine[log->index] = process->refused[log->index] = false;
    if (log->map.base)
        map_bury(log); /* the map's pointers stay: threads may be using them */
}

void nt_log_close(nt_log *take_log)
{
    struct log_process *process = log_process();
    struct log_guard guard;
    if (!take_log || !take_log->used || !process)
        return;
    log_guard_enter(&guard);
    if (log_process_enter() && log_lock(&process->lock)) {
        if (take_log->used && --take_log->references == 0)
            log_end(take_log);
        log_unlock(&process->lock);
    }
    log_guard_leave(&guard);
}

const char *nt_log_path(const nt_log *log)
{
    return log && log->used && !log->broken ? log->path : "";
}

uint64_t nt_log_id(nt_log *log)
{
    return log && log->used && log_thread_enter(log) ? log->map.header->id : 0;
}

/* ---- loading and ending ---- */

/* Also called by the first open, which may come from a constructor that runs before ours. */
__attribute__((constructor)) static void library_load(void)
{
    static int loaded;
    if (__atomic_exchange_n(&loaded, 1, __ATOMIC_ACQ_REL))
        return;
    int saved = errno;
    __builtin_cpu_init();
    /* Intel and AMD both guarantee aligned 16-byte loads and stores on processors with AVX */
    pair_is_atomic = __builtin_cpu_supports("avx");
    log_clock_init();
    log_thread_init();
    pthread_atfork(log_fork_prepare, NULL, log_fork_child);
    errno = saved;
}

/* An orderly end: the logs say so. Counting goes on to work, for others' destructors may still do so. */
__attribute__((destructor)) static void library_end(void)
{
    /* nothing of ours, not even a system call, in a program that only links the library */
    const struct log_process *process = log_process_peek();
    bool open = false;
    for (uint32_t i = 0; i < LOG_MAX; i++)
        open |= log_table[i].used;
    if (!process || !open || !log_process_is_ours(process))
        return;
    struct log_guard guard;
    log_guard_enter(&guard);
    for (uint32_t i = 0; i < LOG_MAX; i++)
        if (log_table[i].used && !log_table[i].broken && process->mine[i])
            state_close(&log_table[i]);
    log_guard_leave(&guard);
}
