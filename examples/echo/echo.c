/* SPDX-License-Identifier: BSD-3-Clause */
/* An echo server and its client, on libnt. The server connects back to whoever connects, sends each message back, and
   closes when they close: what Network.Transport's own tests do. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nt/transport.h>

#define BACK_MAX 65536 /* connections at a time */

struct back {
    uint64_t id, bundle; /* of theirs; 0: the place is free */
    nt_connection *connection;
};

static struct back backs[BACK_MAX];

static int complain(const char *what, enum nt_transport_call call, int error)
{
    fprintf(stderr, "echo: %s: %s\n", what, nt_transport_code(call, error));
    return 1;
}

/* ---- The server ---- */

static struct back *back_find(uint64_t id)
{
    for (struct back *back = backs; back < backs + BACK_MAX; back++) {
        if (back->id == id) {
            return back;
        }
    }
    return NULL;
}

static void back_close(struct back *back)
{
    nt_connection_close(back->connection);
    nt_connection_unref(back->connection);
    *back = (struct back){ 0 };
}

/* Without waiting: a peer that is slow to accept delays nobody else. */
static void back_open(nt_endpoint *endpoint, const nt_delivery *delivery)
{
    nt_address address = nt_delivery_address(delivery);
    struct back *back = back_find(0);
    int error = -ENOMEM;
    if (back != NULL) {
        error = nt_endpoint_connect(endpoint, &address, NULL, 0, &back->connection);
    }
    if (error != 0) {
        complain("connect back", NT_CALL_CONNECT, error);
        (void)nt_connection_reject(nt_delivery_connection(delivery));
        return;
    }
    back->id = nt_delivery_id(delivery);
    back->bundle = nt_delivery_bundle(delivery);
}

static void back_send(const nt_delivery *delivery)
{
    const struct iovec *parts;
    int count = nt_delivery_parts(delivery, &parts);
    struct back *back = back_find(nt_delivery_id(delivery));
    int error = back != NULL ? nt_connection_send(back->connection, parts, count, 0) : 0;
    if (error != 0) {
        complain("send", NT_CALL_SEND, error);
    }
}

/* All that came with a bundle is gone with it. */
static void bundle_lost(uint64_t bundle)
{
    for (struct back *back = backs; back < backs + BACK_MAX; back++) {
        if (back->id != 0 && back->bundle == bundle) {
            back_close(back);
        }
    }
}

static void serve_one(nt_endpoint *endpoint, const nt_delivery *delivery)
{
    struct back *back;
    switch (nt_delivery_type(delivery)) {
    case NT_DELIVERY_OPENED:
        back_open(endpoint, delivery);
        break;
    case NT_DELIVERY_RECEIVED:
        back_send(delivery);
        break;
    case NT_DELIVERY_CLOSED:
        back = back_find(nt_delivery_id(delivery));
        if (back != NULL) {
            back_close(back);
        }
        break;
    case NT_DELIVERY_ERROR:
        bundle_lost(nt_delivery_bundle(delivery));
        break;
    default:
        break;
    }
}

static int serve(nt_endpoint *endpoint)
{
    nt_address address = nt_endpoint_address(endpoint);
    nt_delivery *delivery;
    printf("%.*s\n", (int)address.size, (const char *)address.bytes);
    fflush(stdout);
    while (nt_endpoint_receive(endpoint, -1, &delivery) == 0) {
        serve_one(endpoint, delivery);
        nt_delivery_unref(delivery);
    }
    return 0;
}

/* ---- The client ---- */

/* The next message, of the wanted size; else what came instead ends it. */
static int await(nt_endpoint *endpoint, enum nt_delivery_kind type, size_t size)
{
    nt_delivery *delivery;
    for (;;) {
        int error = nt_endpoint_receive(endpoint, 10000, &delivery);
        if (error != 0) {
            fprintf(stderr, "echo: no answer\n");
            return -1;
        }
        enum nt_delivery_kind came = nt_delivery_type(delivery);
        const struct iovec *parts;
        int count = nt_delivery_parts(delivery, &parts);
        size_t got = count > 0 ? parts[0].iov_len : 0;
        if (came == NT_DELIVERY_ERROR) {
            fprintf(stderr, "echo: %s\n", nt_delivery_text(delivery));
        }
        nt_delivery_unref(delivery);
        if (came == type) {
            return type != NT_DELIVERY_RECEIVED || got == size ? 0 : -1;
        }
        if (came == NT_DELIVERY_ERROR) {
            return -1;
        }
    }
}

static int ping_pong(nt_endpoint *endpoint, nt_connection *connection, uint64_t count, size_t size)
{
    char *bytes = calloc(1, size + 1);
    struct timespec start, end;
    struct iovec part = { bytes, size };
    int error = bytes != NULL ? 0 : -ENOMEM;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t i = 0; i < count && error == 0; i++) {
        error = nt_connection_send(connection, &part, 1, 0);
        if (error != 0) {
            complain("send", NT_CALL_SEND, error);
        } else {
            error = await(endpoint, NT_DELIVERY_RECEIVED, size);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    if (error == 0) {
        printf("%" PRIu64 " echoes of %zu bytes, %.2f us each\n", count, size,
               1e6 * seconds / (double)(count + !count));
    }
    free(bytes);
    return error != 0;
}

static int ask(nt_endpoint *endpoint, const char *server, uint64_t count, size_t size)
{
    nt_address address = { server, strlen(server) };
    nt_connection *connection;
    int error = nt_endpoint_connect(endpoint, &address, NULL, 0, &connection);
    if (error != 0) {
        return complain(server, NT_CALL_CONNECT, error);
    }
    int result = ping_pong(endpoint, connection, count, size);
    nt_connection_close(connection);
    nt_connection_unref(connection);
    if (result == 0 && await(endpoint, NT_DELIVERY_CLOSED, 0) != 0) {
        result = 1;
    }
    return result;
}

static bool number(const char *text, uint64_t most, uint64_t *ret_number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > most) {
        return false;
    }
    *ret_number = value;
    return true;
}

static int usage(void)
{
    fputs("usage: echo serve [HOST [PORT]]        prints its address, then serves until it is ended\n"
          "       echo ask ADDRESS [COUNT [SIZE]]  sends COUNT messages of SIZE bytes, each when the last is back\n",
          stderr);
    return 2;
}

struct wanted {
    bool serves;
    const char *host, *port, *server;
    uint64_t count, size;
};

static bool parse(int argc, char **argv, struct wanted *ret_wanted)
{
    struct wanted wanted = { .count = 10, .size = 64 };
    wanted.serves = argc >= 2 && strcmp(argv[1], "serve") == 0;
    if (wanted.serves) {
        wanted.host = argc > 2 ? argv[2] : NULL;
        wanted.port = argc > 3 ? argv[3] : NULL;
        *ret_wanted = wanted;
        return argc <= 4;
    }
    if (argc < 3 || argc > 5 || strcmp(argv[1], "ask") != 0) {
        return false;
    }
    wanted.server = argv[2];
    bool good = argc <= 3 || number(argv[3], UINT64_MAX, &wanted.count);
    good = good && (argc <= 4 || number(argv[4], 64u << 20, &wanted.size));
    *ret_wanted = wanted;
    return good;
}

int main(int argc, char **argv)
{
    struct wanted wanted;
    if (!parse(argc, argv, &wanted)) {
        return usage();
    }
    nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    options.host = wanted.host;
    options.port = wanted.port;
    nt_transport *transport;
    nt_endpoint *endpoint;
    int error = nt_transport_open(&options, &transport);
    if (error != 0) {
        return complain("transport", NT_CALL_NEW_ENDPOINT, error);
    }
    error = nt_endpoint_new(transport, NULL, &endpoint);
    int result = error != 0      ? complain("endpoint", NT_CALL_NEW_ENDPOINT, error)
                 : wanted.serves ? serve(endpoint)
                                 : ask(endpoint, wanted.server, wanted.count, (size_t)wanted.size);
    nt_transport_close(transport);
    if (error == 0) {
        nt_endpoint_unref(endpoint);
    }
    nt_transport_unref(transport);
    return result;
}
