/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program says of an object once: what was counted before the log knew it. */
#include <errno.h>

#include "log/log.h"

/* Signals are blocked and the log is locked between the two, if the result is true. */
static bool note_begin(struct nt_log *log, struct log_guard *guard)
{
    log_guard_enter(guard);
    if (log_lock(&log->map.live->lock))
        return true;
    log_guard_leave(guard);
    return false;
}

static void note_end(struct nt_log *log, struct log_guard *guard)
{
    log_unlock(&log->map.live->lock);
    log_guard_leave(guard);
}

/* ---- what was counted before ---- */

/* Under the lock: whoever counts a kind for the first time makes its tally under it. */
static int base_put(struct log_map *map, struct nt_layout_object *entry, nt_kind kind, nt_pair_ base)
{
    const struct nt_layout_tally *tally = log_tally_find(map, entry, kind);
    if (tally && log_pair_load(&tally->sum).count)
        return -EBUSY;
    struct nt_layout_extra *extra = log_extra_new(map, entry, kind);
    if (!extra)
        return -ENOSPC;
    if (extra->holds & NT_EXTRA_BASE)
        return -EEXIST;
    nt_pair_copy_(&extra->base, base);
    /* release: partner is the reader, who looks at the base only then */
    __atomic_store_n(&extra->holds, extra->holds | NT_EXTRA_BASE, __ATOMIC_RELEASE);
    return 0;
}

int nt_object_base_set(nt_object object, nt_kind kind, uint64_t count, uint64_t total)
{
    struct nt_log *log;
    struct log_guard guard;
    if (kind == NT_KIND_NONE || kind >= NT_LAYOUT_CONTINUATION || (!count && total))
        return -EINVAL;
    if (!object.handle)
        return 0;
    struct nt_layout_object *entry = log_object_use(object, &log);
    if (!entry)
        return -ENOENT;
    if (!note_begin(log, &guard))
        return -ENOSPC;
    int error = base_put(&log->map, entry, kind, (nt_pair_){ count, total });
    note_end(log, &guard);
    return error;
}
