/* SPDX-License-Identifier: BSD-3-Clause */
/* two_ends: two programs with a log each, "near" and "far", with a TCP connection over loopback and a pipe between
   them. Each says of its ends of these what it knows by itself: keys, the other's name, what went before the log. The
   near one writes 100 messages of 1 to 100 bytes, the far one reads them, waits, and changes actors. Says "ready" when
   that is done; ends when its standard input does, with its logs closed. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nt/link.h>

enum { MESSAGES = 100 };

static int must(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "two_ends: %s: %d\n", what, result);
        _exit(1);
    }
    return result;
}

static nt_log *open_log(const char *name)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_log *log;
    options.name = name;
    options.node = name[0] == 'n' ? "node-n" : "node-f";
    must(nt_log_open(&options, &log), "nt_log_open");
    return log;
}

static nt_object new_object(nt_log *log, const char *name, uint32_t kind)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = name;
    options.kind = kind;
    return nt_object_new(log, &options);
}

static nt_object tcp_object(nt_log *log, int fd, const nt_link_host *host, bool writes)
{
    struct sockaddr_storage own, other;
    socklen_t own_size = sizeof own, other_size = sizeof other;
    const struct sockaddr *ends[2] = { (struct sockaddr *)&own, (struct sockaddr *)&other };
    nt_link_key key;
    must(getsockname(fd, (struct sockaddr *)&own, &own_size), "getsockname");
    must(getpeername(fd, (struct sockaddr *)&other, &other_size), "getpeername");
    nt_object object = new_object(log, "tcp", NT_OBJECT_CHANNEL);
    must(nt_link_key_tcp(ends[0], ends[1], host, &key), "own key");
    must(nt_object_link_set(object, NT_LINK_WRITE, NT_PAIR_COUNT, key.bytes, key.size), "link of what is written");
    must(nt_link_key_tcp(ends[1], ends[0], host, &key), "other key");
    must(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_COUNT, key.bytes, key.size), "link of what is read");
    must(nt_object_remote_set(object, writes ? "node-f" : "node-n", writes ? "far" : "near"), "nt_object_remote_set");
    must(nt_object_base_set(object, writes ? NT_WRITE : NT_READ, 7, 700), "nt_object_base_set");
    must(nt_object_histogram(object, writes ? NT_WRITE : NT_READ), "nt_object_histogram");
    return object;
}

static nt_object pipe_object(nt_log *log, int fd, const nt_link_host *host, bool writes)
{
    struct stat status;
    nt_link_key key;
    must(fstat(fd, &status), "fstat");
    nt_object object = new_object(log, "pipe", NT_OBJECT_CHANNEL);
    must(nt_link_key_pipe(host, status.st_dev, status.st_ino, &key), "key of the pipe");
    must(nt_object_link_set(object, writes ? NT_LINK_WRITE : NT_LINK_READ, NT_PAIR_BYTES, key.bytes, key.size), "link");
    return object;
}

static int far_end(int tcp, int reads, int done)
{
    nt_link_host host;
    nt_log *log = open_log("far");
    must(nt_link_host_get(&host), "nt_link_host_get");
    nt_object channel = tcp_object(log, tcp, &host, false), stream = pipe_object(log, reads, &host, false);
    nt_object actors[2] = { new_object(log, "actor-1", NT_OBJECT_ACTOR), new_object(log, "actor-2", NT_OBJECT_ACTOR) };
    char bytes[MESSAGES + 1];
    for (unsigned i = 0; i < MESSAGES; i++) {
        nt_actor_switch(actors[i % 2]);
        must((int)recv(tcp, bytes, i + 1, MSG_WAITALL), "recv");
        nt_object_count(channel, NT_READ, i + 1);
        nt_object_count(channel, NT_WAIT, 1000 * i);
    }
    nt_object_count(stream, NT_READ, (uint64_t)must((int)read(reads, bytes, 5), "read"));
    must((int)write(done, "x", 1), "write");
    while (read(reads, bytes, 1) > 0) /* until the other end is closed */
        ;
    nt_log_close(log);
    return 0;
}

static void near_end(int tcp, int writes, int done)
{
    nt_link_host host;
    nt_log *log = open_log("near");
    char bytes[MESSAGES] = { 0 };
    must(nt_link_host_get(&host), "nt_link_host_get");
    nt_object channel = tcp_object(log, tcp, &host, true), stream = pipe_object(log, writes, &host, true);
    for (unsigned i = 0; i < MESSAGES; i++) {
        nt_object_count(channel, NT_WRITE, i + 1);
        must((int)send(tcp, bytes, i + 1, 0), "send");
    }
    nt_object_count(stream, NT_WRITE, 5);
    must((int)write(writes, bytes, 5), "write");
    if (read(done, bytes, 1) != 1)
        _exit(1);
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, bytes, 1) > 0)
        ;
    nt_log_close(log);
}

int main(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int stream[2], done[2], listener = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(pipe(stream), "pipe");
    must(pipe(done), "pipe");
    must(bind(listener, (struct sockaddr *)&address, size), "bind");
    must(listen(listener, 1), "listen");
    must(getsockname(listener, (struct sockaddr *)&address, &size), "getsockname");
    pid_t child = must(fork(), "fork");
    if (child == 0) {
        close(stream[1]);
        close(done[0]);
        return far_end(must(accept(listener, NULL, NULL), "accept"), stream[0], done[1]);
    }
    close(stream[0]);
    close(done[1]);
    int tcp = must(socket(AF_INET, SOCK_STREAM, 0), "socket"), status;
    must(connect(tcp, (struct sockaddr *)&address, size), "connect");
    near_end(tcp, stream[1], done[0]);
    close(stream[1]);
    must(waitpid(child, &status, 0), "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
