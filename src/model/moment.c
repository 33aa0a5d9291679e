/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums at a moment, see moment.h. */
#include "model/moment.h"

#include <stdlib.h>

struct pair {
    uint64_t count, total;
};

struct nt_moment_track {
    struct pair before; /* as the last event up to the moment left it; count 0: none came */
    struct pair behind; /* as the first event behind it found it */
    bool goes_on;       /* such a one came */
};

void nt_moment_fini(struct nt_moment *moment)
{
    nt_streams_fini(&moment->streams);
    free(moment->tracks);
    *moment = (struct nt_moment){ 0 };
}

int nt_moment_event(struct nt_moment *moment, const struct nt_event *event)
{
    const struct nt_stream key = { event->program, event->object, event->generation, event->kind };
    uint64_t merged = event->merged > 0 ? event->merged : 1;
    void *tracks = moment->tracks;
    uint32_t number;
    if (event->count < merged)
        return 0;
    int error = nt_streams_get(&moment->streams, &key, &tracks, sizeof *moment->tracks, &number);
    moment->tracks = tracks;
    if (error != 0)
        return error;
    struct nt_moment_track *track = &moment->tracks[number];
    if (event->time <= moment->time) {
        if (event->count > track->before.count)
            track->before = (struct pair){ event->count, event->total };
    } else if (!track->goes_on || event->count - merged < track->behind.count) {
        track->behind = (struct pair){ event->count - merged, event->total - event->value };
        track->goes_on = true;
    }
    return 0;
}

bool nt_moment_has(const struct nt_moment *moment, const struct nt_model_object *object)
{
    return object->told.opened_at <= moment->time;
}

bool nt_moment_closed(const struct nt_moment *moment, const struct nt_model_object *object)
{
    return object->told.closed && object->told.closed_at <= moment->time;
}

static struct nt_moment_sum told(struct pair pair, enum nt_model_bound bound)
{
    return (struct nt_moment_sum){ pair.count, pair.total, bound };
}

struct nt_moment_sum nt_moment_sum(const struct nt_moment *moment, const struct nt_model *model,
                                   const struct nt_model_object *object, const struct nt_source_tally *tally)
{
    const struct pair all = { tally->count, tally->total };
    const struct nt_stream key = { model->programs[object->told.program].told.number, object->told.slot,
                                   object->told.generation, tally->kind };
    uint32_t number = nt_streams_find(&moment->streams, &key);
    const struct nt_moment_track none = { .goes_on = false };
    const struct nt_moment_track *track = number != NT_MODEL_NONE ? &moment->tracks[number] : &none;
    bool over = moment->time == NT_MOMENT_END || (tally->last != 0 && tally->last <= moment->time);
    if (track->before.count != 0 && track->goes_on && track->before.count >= track->behind.count)
        return told(track->before, NT_MODEL_EXACT);
    if (over && !track->goes_on)
        return told(all, NT_MODEL_EXACT);
    if (track->before.count != 0)
        return told(track->before, track->before.count == all.count ? NT_MODEL_EXACT : NT_MODEL_LEAST);
    if (track->goes_on)
        return told(track->behind, track->behind.count == 0 ? NT_MODEL_EXACT : NT_MODEL_MOST);
    return told(all, NT_MODEL_MOST);
}
