/* SPDX-License-Identifier: BSD-3-Clause */
/* libnt against bare sockets, nng and ZeroMQ, over TCP on this machine, each with a server in a process of its own,
   all in the same rounds. Echo: 64 bytes there and back; both ends on one processor, so that nothing but what they do
   themselves counts. Stream: one way, both ends on processors of their own, an answer to the last message of a batch.
   Frames of the bare sockets are those of libnt: 8 bytes before each message, one write a message, reads as large as
   they come. */
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NT_BENCH_PEERS
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <zmq.h>
#endif

#include <nt/transport.h>

#include "harness.h"

#define READ_ROOM (256u << 10)
enum { HEAD = 8, ECHO = 64, ADDRESS = 128 };

/* A message's first byte. */
enum { QUIET, ANSWER };

/* One way of sending messages: both ends. Sizes are those of messages; all ends of a variant use one size. */
struct way {
    const char *name;
    /* In the child: prints its address into `address`, then answers for ever. */
    void (*serve)(size_t size, int address_fd);
    void *(*connect)(const char *address, size_t size);
    void (*send)(void *state, const uint8_t *bytes, size_t size);
    void (*receive)(void *state, size_t size);
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench: transport: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void say_address(int fd, const char *address)
{
    char line[ADDRESS] = { 0 };
    (void)snprintf(line, sizeof line, "%s", address);
    if (write(fd, line, sizeof line) != (ssize_t)sizeof line) {
        die("address");
    }
    close(fd);
}

/* ---- Bare sockets ---- */

struct bare {
    int fd;
    size_t at, end;
    uint8_t room[READ_ROOM];
};

static void bare_send(void *state, const uint8_t *bytes, size_t size)
{
    const struct bare *bare = state;
    uint8_t head[HEAD] = { 0, 0, 4, 0 };
    uint32_t length = htonl((uint32_t)size);
    memcpy(head + 4, &length, 4);
    struct iovec parts[2] = { { head, HEAD }, { (void *)(uintptr_t)bytes, size } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    size_t left = HEAD + size;
    while (left > 0) {
        ssize_t sent = sendmsg(bare->fd, &message, MSG_NOSIGNAL);
        if (sent < 0) {
            die("send");
        }
        left -= (size_t)sent;
        for (size_t skip = (size_t)sent; left > 0 && skip > 0;) {
            size_t some = skip < message.msg_iov->iov_len ? skip : message.msg_iov->iov_len;
            message.msg_iov->iov_base = (uint8_t *)message.msg_iov->iov_base + some;
            message.msg_iov->iov_len -= some;
            skip -= some;
            if (message.msg_iov->iov_len == 0 && message.msg_iovlen > 1) {
                message.msg_iov++;
                message.msg_iovlen--;
            }
        }
    }
}

/* The next message, in `room`. */
static uint8_t *bare_next(struct bare *bare, size_t size)
{
    while (bare->end - bare->at < HEAD + size) {
        if (bare->at > 0) {
            memmove(bare->room, bare->room + bare->at, bare->end - bare->at);
            bare->end -= bare->at;
            bare->at = 0;
        }
        ssize_t got = read(bare->fd, bare->room + bare->end, sizeof bare->room - bare->end);
        if (got <= 0) {
            return NULL;
        }
        bare->end += (size_t)got;
    }
    uint8_t *message = bare->room + bare->at + HEAD;
    bare->at += HEAD + size;
    return message;
}

static void bare_receive(void *state, size_t size)
{
    if (bare_next(state, size) == NULL) {
        die("receive");
    }
}

static void no_delay(int fd)
{
    static const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void bare_serve(size_t size, int address_fd)
{
    static struct bare bare;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    char port[16];
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0) {
        die("listen");
    }
    (void)snprintf(port, sizeof port, "%u", ntohs(address.sin_port));
    say_address(address_fd, port);
    bare.fd = accept(listener, NULL, NULL);
    no_delay(bare.fd);
    for (uint8_t *message; (message = bare_next(&bare, size)) != NULL;) {
        if (*message == ANSWER) {
            bare_send(&bare, message, size);
        }
    }
}

static void *bare_connect(const char *address, size_t size)
{
    struct bare *bare = calloc(1, sizeof *bare);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)strtoul(address, NULL, 10)) };
    (void)size;
    bare->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(bare->fd, (struct sockaddr *)&to, sizeof to) < 0) {
        die("connect");
    }
    no_delay(bare->fd);
    return bare;
}

/* ---- libnt ---- */

struct nt {
    nt_endpoint *endpoint;
    nt_connection *connection;
    struct pollfd poll; /* fd -1: receive waits itself */
};

static nt_delivery *nt_next(struct nt *nt)
{
    nt_delivery *delivery = NULL;
    if (nt->poll.fd < 0) {
        return nt_endpoint_receive(nt->endpoint, -1, &delivery) == 0 ? delivery : NULL;
    }
    for (int result; (result = nt_endpoint_receive(nt->endpoint, 0, &delivery)) != 0;) {
        if (result != -EAGAIN || poll(&nt->poll, 1, -1) < 0) {
            return NULL;
        }
    }
    return delivery;
}

/* As an event loop has it: first poll, then take one. */
static nt_delivery *nt_next_polled(struct nt *nt)
{
    nt_delivery *delivery = NULL;
    while (nt->poll.fd >= 0) {
        if (poll(&nt->poll, 1, -1) < 0) {
            return NULL;
        }
        if (nt_endpoint_receive(nt->endpoint, 0, &delivery) == 0) {
            return delivery;
        }
    }
    return nt_next(nt);
}

static void nt_send(void *state, const uint8_t *bytes, size_t size)
{
    const struct nt *nt = state;
    struct iovec part = { (void *)(uintptr_t)bytes, size };
    if (nt_connection_send(nt->connection, &part, 1, 0) != 0) {
        die("nt send");
    }
}

static void nt_receive(void *state, size_t size)
{
    nt_delivery *delivery;
    (void)size;
    do {
        delivery = nt_next_polled(state);
        if (delivery == NULL) {
            die("nt receive");
        }
        size = nt_delivery_type(delivery);
        nt_delivery_unref(delivery);
    } while (size != NT_DELIVERY_RECEIVED);
}

static void nt_open(struct nt *nt, bool polled)
{
    nt_transport *transport;
    if (nt_transport_open(NULL, &transport) != 0 || nt_endpoint_new(transport, NULL, &nt->endpoint) != 0) {
        die("nt open");
    }
    nt->poll = (struct pollfd){ polled ? nt_endpoint_fd(nt->endpoint) : -1, POLLIN, 0 };
}

static void nt_serve_by(bool polled, size_t size, int address_fd)
{
    struct nt nt = { 0 };
    char text[ADDRESS];
    nt_open(&nt, polled);
    nt_address own = nt_endpoint_address(nt.endpoint);
    (void)snprintf(text, sizeof text, "%.*s", (int)own.size, (const char *)own.bytes);
    say_address(address_fd, text);
    for (nt_delivery *delivery; (delivery = nt_next_polled(&nt)) != NULL; nt_delivery_unref(delivery)) {
        const struct iovec *parts;
        nt_address from = nt_delivery_address(delivery);
        if (nt_delivery_type(delivery) == NT_DELIVERY_OPENED) {
            (void)nt_endpoint_connect(nt.endpoint, &from, NULL, 0, &nt.connection);
        } else if (nt_delivery_type(delivery) == NT_DELIVERY_RECEIVED && nt_delivery_parts(delivery, &parts) == 1 &&
                   *(const uint8_t *)parts->iov_base == ANSWER) {
            nt_send(&nt, parts->iov_base, size);
        }
    }
}

static void nt_serve(size_t size, int address_fd)
{
    nt_serve_by(false, size, address_fd);
}

static void nt_serve_polled(size_t size, int address_fd)
{
    nt_serve_by(true, size, address_fd);
}

static void *nt_connect_by(bool polled, const char *address)
{
    struct nt *nt = calloc(1, sizeof *nt);
    nt_address to = { address, strlen(address) };
    nt_open(nt, polled);
    if (nt_endpoint_connect(nt->endpoint, &to, NULL, 0, &nt->connection) != 0) {
        die("nt connect");
    }
    return nt;
}

static void *nt_connect(const char *address, size_t size)
{
    (void)size;
    return nt_connect_by(false, address);
}

static void *nt_connect_polled(const char *address, size_t size)
{
    (void)size;
    return nt_connect_by(true, address);
}

/* ---- nng and ZeroMQ ---- */

#ifdef NT_BENCH_PEERS
static void nng_serve(size_t size, int address_fd)
{
    nng_socket nng;
    nng_listener listener;
    int port = 0;
    char text[ADDRESS];
    if (nng_pair0_open(&nng) != 0 || nng_listen(nng, "tcp://127.0.0.1:0", &listener, 0) != 0 ||
        nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port) != 0) {
        die("nng listen");
    }
    (void)snprintf(text, sizeof text, "tcp://127.0.0.1:%d", port);
    say_address(address_fd, text);
    for (nng_msg *message; nng_recvmsg(nng, &message, 0) == 0;) {
        if (*(uint8_t *)nng_msg_body(message) != ANSWER || nng_sendmsg(nng, message, 0) != 0) {
            nng_msg_free(message);
        }
    }
    (void)size;
}

static void *nng_connect(const char *address, size_t size)
{
    nng_socket *nng = calloc(1, sizeof *nng);
    (void)size;
    if (nng_pair0_open(nng) != 0 || nng_dial(*nng, address, NULL, 0) != 0) {
        die("nng dial");
    }
    return nng;
}

static void nng_send_one(void *state, const uint8_t *bytes, size_t size)
{
    if (nng_send(*(nng_socket *)state, (void *)(uintptr_t)bytes, size, 0) != 0) {
        die("nng send");
    }
}

static void nng_receive(void *state, size_t size)
{
    nng_msg *message;
    (void)size;
    if (nng_recvmsg(*(nng_socket *)state, &message, 0) != 0) {
        die("nng receive");
    }
    nng_msg_free(message);
}

static void zmq_serve(size_t size, int address_fd)
{
    void *context = zmq_ctx_new(), *zmq = zmq_socket(context, ZMQ_PAIR);
    char text[ADDRESS];
    size_t length = sizeof text;
    if (zmq_bind(zmq, "tcp://127.0.0.1:*") != 0 || zmq_getsockopt(zmq, ZMQ_LAST_ENDPOINT, text, &length) != 0) {
        die("zmq bind");
    }
    say_address(address_fd, text);
    (void)size;
    for (;;) {
        zmq_msg_t message;
        (void)zmq_msg_init(&message);
        if (zmq_msg_recv(&message, zmq, 0) < 0) {
            return;
        }
        if (*(uint8_t *)zmq_msg_data(&message) != ANSWER || zmq_msg_send(&message, zmq, 0) < 0) {
            (void)zmq_msg_close(&message);
        }
    }
}

static void *zmq_connect_one(const char *address, size_t size)
{
    void *zmq = zmq_socket(zmq_ctx_new(), ZMQ_PAIR);
    (void)size;
    if (zmq_connect(zmq, address) != 0) {
        die("zmq connect");
    }
    return zmq;
}

static void zmq_send_one(void *state, const uint8_t *bytes, size_t size)
{
    if (zmq_send(state, bytes, size, 0) < 0) {
        die("zmq send");
    }
}

static void zmq_receive(void *state, size_t size)
{
    zmq_msg_t message;
    (void)size;
    (void)zmq_msg_init(&message);
    if (zmq_msg_recv(&message, state, 0) < 0) {
        die("zmq receive");
    }
    (void)zmq_msg_close(&message);
}
#endif

static const struct way ways[] = {
    { "sockets", bare_serve, bare_connect, bare_send, bare_receive },
    { "nt", nt_serve, nt_connect, nt_send, nt_receive },
    { "polled", nt_serve_polled, nt_connect_polled, nt_send, nt_receive },
#ifdef NT_BENCH_PEERS
    { "nng", nng_serve, nng_connect, nng_send_one, nng_receive },
    { "zmq", zmq_serve, zmq_connect_one, zmq_send_one, zmq_receive },
#endif
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* ---- Running ---- */

struct run {
    const struct way *way;
    size_t size;
    uint8_t *bytes;
    void *state;
    pid_t server;
};

/* Made before this process has threads. */
static int run_fork(struct run *run, const struct way *way, size_t size, int processor, int *ret_address)
{
    int ends[2];
    *run = (struct run){ .way = way, .size = size, .bytes = calloc(1, size) };
    if (run->bytes == NULL || pipe(ends) < 0) {
        return -1;
    }
    run->server = fork();
    if (run->server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (processor >= 0) {
            (void)bench_pin((unsigned)processor);
        }
        way->serve(size, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    *ret_address = ends[0];
    return run->server < 0 ? -1 : 0;
}

static int run_connect(struct run *run, int take_address)
{
    char address[ADDRESS];
    bool known = read(take_address, address, sizeof address) == (ssize_t)sizeof address;
    close(take_address);
    if (!known) {
        return -1;
    }
    run->state = run->way->connect(address, run->size);
    run->bytes[0] = ANSWER;
    run->way->send(run->state, run->bytes, run->size);
    run->way->receive(run->state, run->size);
    return 0;
}

static void echo(void *state, uint64_t operations)
{
    struct run *run = state;
    run->bytes[0] = ANSWER;
    for (uint64_t i = 0; i < operations; i++) {
        run->way->send(run->state, run->bytes, run->size);
        run->way->receive(run->state, run->size);
    }
}

static void stream(void *state, uint64_t operations)
{
    struct run *run = state;
    run->bytes[0] = QUIET;
    for (uint64_t i = 1; i < operations; i++) {
        run->way->send(run->state, run->bytes, run->size);
    }
    run->bytes[0] = ANSWER;
    run->way->send(run->state, run->bytes, run->size);
    run->way->receive(run->state, run->size);
}

struct figure {
    const char *name; /* of libnt's row; the others' have theirs in place of nt */
    size_t size;
    void (*run)(void *state, uint64_t operations);
    uint64_t operations; /* in a batch */
    int client, server;  /* processors, -1: any */
    double max_ratio;
};

static void row_name(const struct figure *figure, const struct way *way, char name[64])
{
    bool polled = strcmp(way->name, "polled") == 0;
    (void)snprintf(name, 64, "%s%s%s", polled ? "nt" : way->name, figure->name, polled ? "-polled" : "");
}

static void report(const struct figure *figure, const struct bench_samples *samples)
{
    char names[WAYS][64];
    for (int i = 0; i < WAYS; i++) {
        row_name(figure, &ways[i], names[i]);
        bool own = strcmp(ways[i].name, "nt") == 0 || strcmp(ways[i].name, "polled") == 0;
        bench_report(&(struct bench_row){ .name = names[i],
                                          .unit = "ns",
                                          .against = i > 0 ? names[0] : NULL,
                                          .max_ratio = own ? figure->max_ratio : 0 },
                     &samples[i], i > 0 ? &samples[0] : NULL);
    }
}

static int measure(const struct figure *figure)
{
    static struct bench_samples samples[WAYS];
    struct bench_variant variants[WAYS];
    struct run runs[WAYS];
    int addresses[WAYS], error = 0;
    memset(samples, 0, sizeof samples);
    for (int i = 0; i < WAYS && error == 0; i++) {
        error = run_fork(&runs[i], &ways[i], figure->size, figure->server, &addresses[i]);
    }
    if (figure->client >= 0) {
        (void)bench_pin((unsigned)figure->client);
    }
    for (int i = 0; i < WAYS && error == 0; i++) {
        error = run_connect(&runs[i], addresses[i]);
        variants[i] = (struct bench_variant){ ways[i].name, figure->run, &runs[i], NULL };
    }
    if (error == 0) {
        const struct bench_plan plan = {
            .clock = BENCH_CLOCK_WALL, .rounds = 30, .batches = 8, .operations = figure->operations
        };
        bench_compare(&plan, variants, WAYS, samples);
        report(figure, samples);
    }
    for (int i = 0; i < WAYS && error == 0; i++) {
        (void)kill(runs[i].server, SIGKILL);
        (void)waitpid(runs[i].server, NULL, 0);
    }
    return error;
}

/* In a process of its own: none has threads of the one before. */
static int measure_apart(const struct figure *figure)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int error = measure(figure);
        fflush(stdout);
        _exit(error != 0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static int echo_pinned(void)
{
    return measure_apart(&(struct figure){ "-echo", ECHO, echo, 64, 0, 0, 1.3 });
}

static int echo_free(void)
{
    return measure_apart(&(struct figure){ "-echo-unpinned", ECHO, echo, 64, -1, -1, 0 });
}

static int stream_16(void)
{
    return measure_apart(&(struct figure){ "-stream-16", 16, stream, 4096, 0, 1, 0 });
}

static int stream_1k(void)
{
    return measure_apart(&(struct figure){ "-stream-1k", 1024, stream, 2048, 0, 1, 0 });
}

static int stream_64k(void)
{
    return measure_apart(&(struct figure){ "-stream-64k", 65536, stream, 256, 0, 1, 0 });
}

/* ---- What else is promised ---- */

enum { CONNECTIONS = 10000, ANSWERS = 40 };

static nt_endpoint *endpoint_open(void)
{
    nt_transport *transport;
    nt_endpoint *endpoint;
    if (nt_transport_open(NULL, &transport) != 0 || nt_endpoint_new(transport, NULL, &endpoint) != 0) {
        die("nt open");
    }
    return endpoint;
}

/* Bytes of the heap for each end of a connection, of so many between two endpoints. */
static int connection_memory(void)
{
    static struct bench_samples samples;
    nt_endpoint *from = endpoint_open(), *to = endpoint_open();
    nt_address address = nt_endpoint_address(to);
    nt_delivery *delivery;
    memset(&samples, 0, sizeof samples);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < CONNECTIONS; i++) {
        nt_connection *connection;
        if (nt_endpoint_connect(from, &address, NULL, 0, &connection) != 0) {
            return -1;
        }
        nt_connection_unref(connection); /* it stays open */
    }
    for (int opened = 0; opened < CONNECTIONS; opened++) {
        if (nt_endpoint_receive(to, 5000, &delivery) != 0) {
            return -1;
        }
        nt_delivery_unref(delivery);
    }
    bench_samples_add(&samples, (double)(mallinfo2().uordblks - before) / (2.0 * CONNECTIONS));
    bench_report(&(struct bench_row){ .name = "nt-connection-memory", .unit = "B", .max_median = 1024 }, &samples,
                 NULL);
    return 0;
}

/* From a greeting, or a probe, to the answer. */
static double answer_ms(int fd, const void *bytes, size_t size, size_t answer)
{
    char got[16];
    uint64_t start = bench_clock_ns(BENCH_CLOCK_WALL);
    if (send(fd, bytes, size, 0) != (ssize_t)size || recv(fd, got, answer, MSG_WAITALL) != (ssize_t)answer) {
        die("no answer");
    }
    return (double)(bench_clock_ns(BENCH_CLOCK_WALL) - start) / 1e6;
}

/* Nobody receives for 5 s: how long handshakes and probes take then. */
static int unattended(void)
{
    static struct bench_samples samples;
    static const uint8_t greeting[] = "\0\0\0\0\0\0\0\x8\0\0\0\0\0\0\0", probe[] = "\0\0\0\4";
    nt_endpoint *endpoint = endpoint_open();
    nt_address own = nt_endpoint_address(endpoint);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    char text[ADDRESS];
    memset(&samples, 0, sizeof samples);
    (void)snprintf(text, sizeof text, "%.*s", (int)own.size, (const char *)own.bytes);
    to.sin_port = htons((uint16_t)strtoul(strchr(text, ':') + 1, NULL, 10));
    (void)usleep(5000000);
    for (int i = 0; i < ANSWERS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
            return -1;
        }
        no_delay(fd);
        bench_samples_add(&samples, answer_ms(fd, greeting, 16, 4));
        (void)usleep(30000);
        bench_samples_add(&samples, answer_ms(fd, probe, 4, 4));
        (void)usleep(30000);
        close(fd);
    }
    bench_report(&(struct bench_row){ .name = "nt-unattended", .unit = "ms", .max_median = 10 }, &samples, NULL);
    return 0;
}

#ifdef NT_BENCH_PEERS
#define ROWS(figure) "sockets" figure " nt" figure " nt" figure "-polled nng" figure " zmq" figure
#else
#define ROWS(figure) "sockets" figure " nt" figure " nt" figure "-polled"
#endif

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { ROWS("-echo"), echo_pinned },      { ROWS("-echo-unpinned"), echo_free },
        { ROWS("-stream-16"), stream_16 },   { ROWS("-stream-1k"), stream_1k },
        { ROWS("-stream-64k"), stream_64k }, { "nt-connection-memory", connection_memory },
        { "nt-unattended", unattended },
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
