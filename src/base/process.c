/* SPDX-License-Identifier: BSD-3-Clause */
/* /proc, read by bare system calls: libc's open and read are cancellation points and may be interposed, and
   this also runs inside signal handlers and forked children of traced programs. Keeps errno as it was. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int process_open(const char *path)
{
    int saved = errno;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
    int error = errno;
    errno = saved;
    return fd < 0 ? -error : (int)fd;
}

static void process_close(int fd)
{
    int saved = errno;
    (void)syscall(SYS_close, fd);
    errno = saved;
}

/* Bytes read, 0 at the end. */
static long process_read(int fd, char *buffer, size_t size)
{
    int saved = errno;
    long n;
    do {
        n = syscall(SYS_read, fd, buffer, size);
    } while (n < 0 && errno == EINTR);
    int error = errno;
    errno = saved;
    return n < 0 ? -error : n;
}

/* What a small file holds; longer ones are cut. */
static long process_read_file(const char *path, char *buffer, size_t size)
{
    int fd = process_open(path);
    if (fd < 0) {
        return fd;
    }
    size_t have = 0;
    long n = 0;
    while (have < size && (n = process_read(fd, buffer + have, size - have)) > 0) {
        have += (size_t)n;
    }
    process_close(fd);
    return n < 0 ? n : (long)have;
}

enum { PROCESS_PATH = 32 };

/* "/proc/PID/file" without stdio. `file` has at most 6 bytes. */
static void process_path(char path[PROCESS_PATH], uint32_t pid, const char *file)
{
    char digits[10];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + pid % 10);
        pid /= 10;
    } while (pid > 0);
    memcpy(path, "/proc/", 6);
    size_t at = 6;
    while (n > 0) {
        path[at++] = digits[--n];
    }
    path[at++] = '/';
    memcpy(path + at, file, strlen(file) + 1);
}

static const char *skip_field(const char *text, const char *end)
{
    while (text < end && *text != ' ') {
        text++;
    }
    return text < end ? text + 1 : end;
}

static uint64_t take_number(const char *text, const char *end)
{
    uint64_t number = 0;
    for (; text < end && *text >= '0' && *text <= '9'; text++) {
        number = number * 10 + (uint64_t)(*text - '0');
    }
    return number;
}

/* /proc shows no such process: -ESRCH if there is none, -EACCES if it is only hidden. */
static int process_missing(uint32_t pid)
{
    int saved = errno;
    bool gone = syscall(SYS_kill, pid, 0) != 0 && errno == ESRCH;
    errno = saved;
    return gone ? -ESRCH : -EACCES;
}

int nt_process_status(uint32_t pid, struct nt_process_status *ret_status)
{
    enum { STATE_FIELD = 3, THREADS_FIELD = 20, START_TIME_FIELD = 22 };
    char path[PROCESS_PATH] = "/proc/self/stat"; /* of ourselves also where /proc is another namespace's */
    if (pid != (uint32_t)getpid()) {
        process_path(path, pid, "stat");
    }
    char text[1024];
    long size = process_read_file(path, text, sizeof text);
    if (size < 0) {
        return size == -ENOENT ? process_missing(pid) : (int)size;
    }
    /* The command's name may hold anything, ')' and spaces too; what follows it holds no ')'. */
    const char *end = text + size;
    const char *field = memrchr(text, ')', (size_t)size);
    if (field == NULL || end - field < 3 || field[1] != ' ') {
        return -EIO;
    }
    field += 2;
    char state = *field;
    for (int i = STATE_FIELD; i < THREADS_FIELD; i++) {
        field = skip_field(field, end);
    }
    uint64_t threads = take_number(field, end);
    for (int i = THREADS_FIELD; i < START_TIME_FIELD; i++) {
        field = skip_field(field, end);
    }
    if (field == end || *field < '0' || *field > '9') {
        return -EIO;
    }
    uint64_t start_time = take_number(field, end);
    /* The state is the first thread's, which may have ended before the others. */
    if (state == 'Z' && threads > 1) {
        state = 'S';
    }
    *ret_status = (struct nt_process_status){ .state = state, .start_time = start_time };
    return 0;
}

uint64_t nt_process_pid_namespace(void)
{
    int saved = errno;
    char self[16];
    long size = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self", self, sizeof self);
    if (size <= 0 || take_number(self, self + size) != (uint64_t)getpid()) {
        errno = saved; /* /proc is another namespace's: its numbers say nothing to us */
        return 0;
    }
    /* Start times are shifted in a time namespace, so that one counts too, unless it is the first
       (PROC_TIME_INIT_INO of linux/proc_ns.h) or the kernel knows none. */
    const uint64_t first_time = 0xEFFFFFFA;
    struct stat status, time;
    long error = syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0);
    bool shifted = syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/time", &time, 0) == 0 && time.st_ino != first_time;
    errno = saved;
    return error != 0 ? 0 : shifted ? status.st_ino ^ (uint64_t)time.st_ino << 32 : status.st_ino;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int nt_process_boot_id(uint8_t ret_id[16])
{
    memset(ret_id, 0, 16);
    char text[64];
    long size = process_read_file("/proc/sys/kernel/random/boot_id", text, sizeof text);
    if (size < 0) {
        return (int)size;
    }
    uint8_t id[16] = { 0 };
    size_t digits = 0;
    for (long i = 0; i < size && digits < 32; i++) {
        int digit = hex_digit(text[i]);
        if (digit >= 0) {
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
            digits++;
        } else if (text[i] != '-') {
            return -EIO;
        }
    }
    if (digits < 32) {
        return -EIO;
    }
    memcpy(ret_id, id, 16);
    return 0;
}

/* One line of /proc/PID/maps, "start-end perms offset major:minor inode path", taken byte by byte, so that it
   does not matter where a read cuts it. */
struct maps_line {
    unsigned field; /* counted from 0 */
    bool between;   /* after a space */
    uint64_t major, minor, inode;
    bool minor_next;
};

static void maps_line_device(struct maps_line *line, char c)
{
    int digit = hex_digit(c);
    if (c == ':') {
        line->minor_next = true;
    } else if (digit >= 0) {
        uint64_t *number = line->minor_next ? &line->minor : &line->major;
        *number = *number << 4 | (uint64_t)digit;
    }
}

static void maps_line_take(struct maps_line *line, char c)
{
    enum { DEVICE = 3, INODE = 4 };
    if (c == ' ') {
        line->between = true;
        return;
    }
    line->field += line->between;
    line->between = false;
    if (line->field == DEVICE) {
        maps_line_device(line, c);
    } else if (line->field == INODE && c >= '0' && c <= '9') {
        line->inode = line->inode * 10 + (uint64_t)(c - '0');
    }
}

int nt_process_maps(uint32_t pid, uint64_t device, uint64_t inode)
{
    char path[PROCESS_PATH];
    process_path(path, pid, "maps");
    int fd = process_open(path);
    if (fd < 0) {
        return fd == -ENOENT ? -ESRCH : fd;
    }
    struct maps_line line = { 0 };
    uint64_t lines = 0;
    int result = 0;
    char text[4096];
    long size;
    while (result == 0 && (size = process_read(fd, text, sizeof text)) > 0) {
        for (long i = 0; i < size && result == 0; i++) {
            if (text[i] != '\n') {
                maps_line_take(&line, text[i]);
                continue;
            }
            result = line.inode == inode && makedev((unsigned)line.major, (unsigned)line.minor) == device;
            line = (struct maps_line){ 0 };
            lines++;
        }
    }
    process_close(fd);
    if (result == 1) {
        return 1;
    }
    if (size < 0) {
        return (int)size;
    }
    /* No mapping at all: a process on its way out, which says nothing about the file. */
    return lines > 0 ? 0 : -ESRCH;
}
