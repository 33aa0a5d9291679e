/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of a relay process: log and truth side by side. */
#include "watch.h"

static struct truth_session *session_truth(const struct watch *self, const struct session *session)
{
    return session->truth ? &self->program->truth.sessions[session->truth - 1] : NULL;
}

static void session_flag(const struct watch *self, const struct session *session, uint32_t flag)
{
    struct truth_session *truth = session_truth(self, session);
    if (truth)
        atomic_fetch_or_explicit(&truth->flags, flag, memory_order_release); /* with the reader of a dead one's file */
}

/* Events about sessions are counted in none. */
static uint32_t session_begin(struct watch *self, uint64_t what)
{
    const struct truth_entry entry = { .value = what };
    return watch_begin(self, NT_SESSION, &entry);
}

struct session watch_session_new(struct watch *self, const char *name, nt_session parent)
{
    struct session session = { 0 };
    struct truth *truth = &self->program->truth;
    if (!self->program->options->sessions)
        return session;
    uint32_t number = truth->detailed ? truth_session_add(truth, name, parent) : UINT32_MAX;
    session.truth = number == UINT32_MAX ? 0 : number + 1;
    session.made = true;
    uint32_t tally = session_begin(self, NT_SESSION_NEW);
    session.id = nt_session_new(self->program->log, name, parent);
    if (session.truth)
        atomic_store_explicit(&session_truth(self, &session)->id, session.id, memory_order_release); /* as above */
    watch_end(self, tally);
    return session;
}

struct session watch_session_part(struct watch *self, const char *name, nt_session whole)
{
    if (whole == 0 || self->program->options->parts == 0)
        return (struct session){ .id = whole };
    return watch_session_new(self, name, whole);
}

void watch_session_end(struct watch *self, const struct session *session)
{
    if (session->id == 0)
        return;
    session_flag(self, session, TRUTH_ENDING);
    uint32_t tally = session_begin(self, NT_SESSION_END);
    nt_session_end(self->program->log, session->id);
    watch_end(self, tally);
    session_flag(self, session, TRUTH_ENDED);
}

void watch_session_part_end(struct watch *self, const struct session *part)
{
    if (part->made)
        watch_session_end(self, part);
}

void watch_session_stand(struct watch *self, const struct session *session)
{
    if (session->id == 0)
        return;
    session_flag(self, session, TRUTH_STANDING);
    uint32_t tally = session_begin(self, NT_SESSION_STANDING);
    nt_session_stand(self->program->log, session->id);
    watch_end(self, tally);
    session_flag(self, session, TRUTH_STANDS);
}

void watch_session_set(struct watch *watch, nt_session session)
{
    nt_object_session_set(watch->object, session);
    watch->session = session;
}

void watch_session_join(struct watch *watch, nt_session session, uint64_t value)
{
    if (watch->session == session)
        return; /* so does the library */
    /* The event that tells of it is the first thing that the object counts in its new session. */
    const struct truth_entry entry = {
        .value = NT_SESSION_JOIN, .session = session, .own = session, .joins = watch->read
    };
    uint32_t tally = watch_begin(watch, NT_SESSION, &entry);
    nt_object_session_join(watch->object, session, value);
    watch->session = session;
    watch_end(watch, tally);
}
