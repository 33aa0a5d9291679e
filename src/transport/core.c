/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock, the driver, timers and what is watched. One thread at a time drives: the one that waits for a delivery does
   it itself, so that a message costs no hand-off; the others wait for it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "transport/core.h"

#define EVENTS 64

uint64_t transport_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static struct timespec timespec_of(uint64_t time)
{
    return (struct timespec){ (time_t)(time / UINT64_C(1000000000)), (long)(time % UINT64_C(1000000000)) };
}

/* ---- The lock ---- */

int transport_cancel_disable(void)
{
    int state = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

void transport_cancel_restore(const int *state)
{
    int disabled;
    pthread_setcancelstate(*state, &disabled);
}

bool transport_is_forked(const struct nt_transport *transport)
{
    return !*transport->alive;
}

bool transport_enter(struct nt_transport *transport)
{
    if (transport_is_forked(transport)) {
        return false;
    }
    pthread_mutex_lock(&transport->lock);
    return true;
}

void transport_leave(struct nt_transport *transport)
{
    pthread_mutex_unlock(&transport->lock);
}

static int alive_page(struct nt_transport *transport)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return -ENOMEM;
    }
    transport->alive = page;
    *transport->alive = 1;
    return madvise(page, size, MADV_WIPEONFORK) == 0 ? 0 : -errno;
}

/* ---- Watching ---- */

/* In one epoll descriptor for who drives, and in those of endpoints that are polled from outside: those are not nested,
   which would cost a wake-up more. */
static int watch_in(int poll, struct transport_watch *watch, bool new)
{
    struct epoll_event event = { .events = watch->events, .data.ptr = watch };
    return epoll_ctl(poll, new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, watch->fd, &event) == 0 ? 0 : -errno;
}

int transport_watch_set(struct nt_transport *transport, struct transport_watch *watch, int fd, uint32_t events)
{
    bool new = watch->fd != fd;
    if (!new && watch->events == events) {
        return 0;
    }
    struct epoll_event event = { .events = events, .data.ptr = watch };
    if (epoll_ctl(transport->poll, new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) < 0) {
        return -errno;
    }
    watch->fd = fd;
    watch->events = events;
    if (new) {
        DL_APPEND(transport->watches, watch);
    }
    const struct nt_endpoint *endpoint;
    DL_FOREACH(transport->endpoints, endpoint)
    {
        if (endpoint->poll >= 0) {
            (void)watch_in(endpoint->poll, watch, new);
        }
    }
    return 0;
}

void transport_watch_clear(struct nt_transport *transport, struct transport_watch *watch)
{
    const struct nt_endpoint *endpoint;
    if (watch->fd < 0) {
        return;
    }
    (void)epoll_ctl(transport->poll, EPOLL_CTL_DEL, watch->fd, NULL);
    DL_FOREACH(transport->endpoints, endpoint)
    {
        if (endpoint->poll >= 0) {
            (void)epoll_ctl(endpoint->poll, EPOLL_CTL_DEL, watch->fd, NULL);
        }
    }
    DL_DELETE(transport->watches, watch);
    watch->fd = -1;
}

int transport_mirror(struct nt_transport *transport, int poll)
{
    struct transport_watch *watch;
    int error = 0;
    DL_FOREACH(transport->watches, watch)
    {
        error = error == 0 ? watch_in(poll, watch, true) : error;
    }
    return error;
}

static void bury_all(struct nt_transport *transport)
{
    while (transport->graves != NULL) {
        struct transport_grave *grave = transport->graves;
        transport->graves = grave->next;
        grave->bury(grave);
    }
}

void transport_bury(struct nt_transport *transport, struct transport_grave *grave)
{
    if (!transport->driven) {
        grave->bury(grave);
        return;
    }
    grave->next = transport->graves;
    transport->graves = grave;
}

/* ---- Timers ---- */

static void timer_arm(struct nt_transport *transport)
{
    uint64_t due = 0;
    const struct transport_timer *timer;
    DL_FOREACH(transport->timers, timer)
    {
        due = due == 0 || timer->due < due ? timer->due : due;
    }
    if (due != transport->armed) {
        struct itimerspec when = { .it_value = timespec_of(due) };
        (void)timerfd_settime(transport->timer, TFD_TIMER_ABSTIME, &when, NULL);
        transport->armed = due;
    }
}

void transport_timer_clear(struct nt_transport *transport, struct transport_timer *timer)
{
    if (timer->due != 0) { /* what the timerfd is set to may stay: it comes too early then, and nothing is due */
        DL_DELETE(transport->timers, timer);
        timer->due = 0;
    }
}

void transport_timer_set(struct nt_transport *transport, struct transport_timer *timer, uint64_t due)
{
    transport_timer_clear(transport, timer);
    timer->due = due != 0 ? due : 1;
    DL_APPEND(transport->timers, timer);
    if (transport->armed == 0 || timer->due < transport->armed) {
        timer_arm(transport);
    }
}

static void timers_fire(struct transport_watch *watch, uint32_t events)
{
    struct nt_transport *transport = (struct nt_transport *)(void *)((char *)watch -
                                                                     offsetof(struct nt_transport, timer_watch));
    uint64_t count, now = transport_now();
    (void)events;
    if (read(transport->timer, &count, sizeof count) < 0 && errno != EAGAIN) {
        return;
    }
    transport->armed = 0;
    for (struct transport_timer *timer = transport->timers, *next; timer != NULL; timer = next) {
        next = timer->next;
        if (timer->due <= now) {
            transport_timer_clear(transport, timer);
            timer->fire(timer);
            next = transport->timers; /* it may have changed any other */
        }
    }
    timer_arm(transport);
}

/* ---- Driving ---- */

static void woken(struct transport_watch *watch, uint32_t events)
{
    struct nt_transport *transport = (struct nt_transport *)(void *)((char *)watch -
                                                                     offsetof(struct nt_transport, wake_watch));
    uint64_t count;
    (void)events;
    if (read(transport->wake, &count, sizeof count) == (ssize_t)sizeof count) {
        transport->woken = false;
    }
}

static void wake(struct nt_transport *transport)
{
    static const uint64_t one = 1;
    if (!transport->woken && write(transport->wake, &one, sizeof one) == (ssize_t)sizeof one) {
        transport->woken = true;
    }
}

void transport_changed(struct nt_transport *transport)
{
    if (transport->waiting > 0) {
        pthread_cond_broadcast(&transport->changed);
    }
    if (transport->blocked) {
        wake(transport);
    }
}

static int milliseconds_to(uint64_t deadline)
{
    if (deadline == 0 || deadline == TRANSPORT_NEVER) {
        return deadline == 0 ? 0 : -1;
    }
    uint64_t now = transport_now();
    uint64_t left = deadline > now ? (deadline - now + TRANSPORT_MS - 1) / TRANSPORT_MS : 0;
    return left < INT32_MAX ? (int)left : INT32_MAX;
}

/* Locked, and again when it returns; the caller is the driver. */
static void drive(struct nt_transport *transport, uint64_t deadline)
{
    struct epoll_event events[EVENTS];
    int timeout = milliseconds_to(deadline);
    transport->driven = true;
    transport->blocked = timeout != 0;
    transport_leave(transport);
    int count = epoll_wait(transport->poll, events, EVENTS, timeout);
    pthread_mutex_lock(&transport->lock);
    transport->blocked = false;
    for (int i = 0; i < count; i++) {
        struct transport_watch *watch = events[i].data.ptr;
        if (watch->fd >= 0) {
            watch->ready(watch, events[i].events);
        }
    }
    bury_all(transport);
    transport->driven = false;
    transport->drives++;
    if (transport->waiting > 0) {
        pthread_cond_broadcast(&transport->changed);
    }
    if (transport->helper_dozes) {
        pthread_cond_signal(&transport->idle);
    }
}

/* Whoever was heard of last is often who is heard of next: that is asked first, every other time at most. */
static bool drive_quick(struct nt_transport *transport)
{
    if (transport->backend->quick == NULL || transport->drives % 8 == 0) {
        return false;
    }
    transport->driven = true;
    bool came = transport->backend->quick(transport);
    bury_all(transport);
    transport->driven = false;
    transport->drives += came;
    return came;
}

static void send_gathered(struct nt_transport *transport)
{
    if (transport->gathers) {
        (void)transport->backend->flush(transport, TRANSPORT_NEVER);
    }
}

void transport_turn(struct nt_transport *transport, uint64_t deadline)
{
    send_gathered(transport);
    if (!transport->driven) {
        if (deadline != 0 || !drive_quick(transport)) {
            drive(transport, deadline);
        }
        return;
    }
    if (deadline == 0) { /* somebody drives already */
        return;
    }
    transport->waiting++;
    if (deadline == TRANSPORT_NEVER) {
        pthread_cond_wait(&transport->changed, &transport->lock);
    } else {
        struct timespec until = timespec_of(deadline);
        pthread_cond_timedwait(&transport->changed, &transport->lock, &until);
    }
    transport->waiting--;
}

/* ---- The helper: drives what nobody else does ---- */

#define TICK (4 * TRANSPORT_MS)
#define AWAKE (1000 * TRANSPORT_MS) /* how long it keeps ticking after somebody drove */
#define US UINT64_C(1000)

void transport_gather(struct nt_transport *transport, uint64_t now)
{
    transport->gathered = now;
    if (transport->gathers) {
        return;
    }
    transport->gathers = true;
    if (transport->helper_watches) {
        wake(transport);
    } else {
        pthread_cond_signal(&transport->idle);
    }
}

static void tick(struct nt_transport *transport)
{
    uint64_t pause = transport->gathers ? transport->options.gather_us * US : TICK;
    struct timespec until = timespec_of(transport_now() + (pause < TICK ? pause : TICK));
    pthread_cond_timedwait(&transport->idle, &transport->lock, &until);
}

/* Nobody drove for long: it is told when there is something, and leaves it to others for a tick. */
static void helper_watch(struct nt_transport *transport)
{
    struct epoll_event event;
    int poll = transport->poll, own = epoll_create1(EPOLL_CLOEXEC);
    if (own < 0) {
        tick(transport);
        return;
    }
    event = (struct epoll_event){ .events = EPOLLIN };
    transport->helper_watches = true;
    transport_leave(transport);
    if (epoll_ctl(own, EPOLL_CTL_ADD, poll, &event) == 0) {
        (void)epoll_wait(own, &event, 1, -1);
    }
    close(own);
    pthread_mutex_lock(&transport->lock);
    transport->helper_watches = false;
}

/* What was gathered goes when its time is up; nothing was for a while: it need not be looked after. */
static void helper_flush(struct nt_transport *transport, uint64_t now)
{
    if (transport->gathers && transport->backend->flush(transport, now - transport->options.gather_us * US / 2) == 0 &&
        now - transport->gathered > TICK) {
        transport->gathers = false;
    }
}

struct helping {
    uint64_t seen, since; /* drives, and when somebody else drove last */
    uint64_t ticked;
};

/* Somebody drives, or did a tick ago. */
static void helper_wait(struct nt_transport *transport, struct helping *helping, uint64_t now)
{
    if (transport->drives != helping->seen) {
        helping->since = now;
        helping->seen = transport->drives;
    }
    if (transport->driven && now - helping->since > AWAKE && !transport->gathers) {
        transport->helper_dozes = true; /* whoever it is waits in the kernel, and takes what comes */
        pthread_cond_wait(&transport->idle, &transport->lock);
        transport->helper_dozes = false;
    } else {
        tick(transport);
    }
}

static void helper_drive(struct nt_transport *transport, struct helping *helping, uint64_t now)
{
    if (now - helping->ticked < TICK) { /* it only looked after what is gathered */
        tick(transport);
        return;
    }
    helping->ticked = now;
    if (now - helping->since > AWAKE && !transport->gathers) {
        helper_watch(transport);
        helping->seen = transport->drives;
        tick(transport);
        if (transport->driven || transport->drives != helping->seen || transport->helper_stops) {
            return;
        }
        helping->ticked = 0;
    }
    drive(transport, 0);
    helping->seen = transport->drives;
    if (helping->ticked != 0) {
        tick(transport);
    }
}

static void *helper_main(void *arg)
{
    struct nt_transport *transport = arg;
    struct helping helping = { .since = transport_now() };
    pthread_mutex_lock(&transport->lock);
    while (!transport->helper_stops) {
        uint64_t now = transport_now();
        helper_flush(transport, now);
        if (transport->driven || transport->drives != helping.seen) {
            helper_wait(transport, &helping, now);
        } else {
            helper_drive(transport, &helping, now);
        }
    }
    transport_leave(transport);
    return NULL;
}

static int helper_start(struct nt_transport *transport)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&transport->helper, NULL, helper_main, transport);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    transport->helper_runs = error == 0;
    return -error;
}

static void helper_stop(struct nt_transport *transport)
{
    if (!transport->helper_runs) {
        return;
    }
    pthread_mutex_lock(&transport->lock);
    transport->helper_stops = true;
    pthread_cond_signal(&transport->idle);
    wake(transport);
    transport_leave(transport);
    pthread_join(transport->helper, NULL);
    transport->helper_runs = false;
}

/* ---- Transports ---- */

static int core_init(struct nt_transport *transport)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&transport->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&transport->changed, &attributes);
    pthread_cond_init(&transport->idle, &attributes);
    pthread_condattr_destroy(&attributes);
    transport->poll = epoll_create1(EPOLL_CLOEXEC);
    transport->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    transport->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    transport->wake_watch = (struct transport_watch){ .fd = -1, .ready = woken };
    transport->timer_watch = (struct transport_watch){ .fd = -1, .ready = timers_fire };
    int error = alive_page(transport);
    if (error == 0 && (transport->poll < 0 || transport->wake < 0 || transport->timer < 0)) {
        error = -EMFILE;
    }
    if (error == 0) {
        error = transport_watch_set(transport, &transport->wake_watch, transport->wake, EPOLLIN);
    }
    return error == 0 ? transport_watch_set(transport, &transport->timer_watch, transport->timer, EPOLLIN) : error;
}

static void core_free(struct nt_transport *transport)
{
    TRANSPORT_UNCANCELLED;
    int descriptors[] = { transport->poll, transport->wake, transport->timer };
    if (transport->opened) {
        transport->backend->fini(transport);
    }
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++) {
        if (descriptors[i] >= 0) {
            close(descriptors[i]);
        }
    }
    pthread_cond_destroy(&transport->changed);
    pthread_cond_destroy(&transport->idle);
    pthread_mutex_destroy(&transport->lock);
    if (transport->alive != NULL) {
        munmap((void *)(uintptr_t)transport->alive, (size_t)sysconf(_SC_PAGESIZE));
    }
    free(transport);
}

int transport_new(const struct transport_backend *backend, const struct nt_transport_options *options,
                  struct nt_transport **ret_transport)
{
    struct nt_transport *transport = calloc(1, backend->transport_size);
    if (transport == NULL) {
        return -ENOMEM;
    }
    transport->backend = backend;
    transport->options = *options;
    transport->faults = options->faults != NULL ? *options->faults : (struct nt_transport_faults){ 0 };
    atomic_init(&transport->users, 1);
    atomic_init(&transport->refs, 1);
    int error = core_init(transport);
    if (error == 0) {
        transport->opened = true;
        error = backend->open(transport);
    }
    if (error == 0 && backend->helper) {
        error = helper_start(transport);
    }
    if (error != 0) {
        core_free(transport);
        return error;
    }
    *ret_transport = transport;
    return 0;
}

void transport_ref(struct nt_transport *transport)
{
    atomic_fetch_add_explicit(&transport->refs, 1, memory_order_relaxed);
}

/* The last one is never given back by the helper: it has ended then. */
void transport_unref(struct nt_transport *take_transport)
{
    if (atomic_fetch_sub_explicit(&take_transport->refs, 1, memory_order_acq_rel) == 1) {
        core_free(take_transport);
    }
}

nt_transport *nt_transport_ref(nt_transport *transport)
{
    if (!transport_is_forked(transport)) {
        atomic_fetch_add_explicit(&transport->users, 1, memory_order_relaxed);
    }
    return transport;
}

void nt_transport_close(nt_transport *transport)
{
    TRANSPORT_UNCANCELLED;
    if (!transport_enter(transport)) {
        return;
    }
    bool first = !transport->closed;
    transport->closed = true;
    uint64_t until = transport_now() + transport->options.flush_timeout_ms * TRANSPORT_MS;
    struct nt_endpoint *endpoint;
    DL_FOREACH(transport->endpoints, endpoint)
    {
        endpoint->closed = true; /* so that none is told of the end of another */
    }
    while (transport->endpoints != NULL) {
        endpoint_shut(transport->endpoints);
    }
    if (first) {
        transport->backend->close(transport);
    }
    transport_changed(transport);
    while (!transport->backend->flushed(transport) && transport_now() < until) {
        transport_turn(transport, until);
    }
    transport_leave(transport);
    if (first) {
        helper_stop(transport);
    }
}

void nt_transport_unref(nt_transport *take_transport)
{
    if (take_transport == NULL || transport_is_forked(take_transport) ||
        atomic_fetch_sub_explicit(&take_transport->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    nt_transport_close(take_transport);
    transport_unref(take_transport);
}
