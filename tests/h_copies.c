/* SPDX-License-Identifier: BSD-3-Clause */
/* Three copies of libnt-log in one process: the shared one and those inside two modules, all opening the program's log
   at the same moment from three threads; then one module is unloaded, and loaded again. h_copies MODULE MODULE prints
   how each fared and, to stderr, the three paths. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nt/log.h>

enum { TIMES = 20000 };

static pthread_barrier_t together;

struct copy {
    const char *file, *name;
    void *module;
    int (*count)(const char *, unsigned long);
    const char *(*path)(void);
    int error;
};

static void *copy_run(void *arg)
{
    struct copy *copy = arg;
    pthread_barrier_wait(&together);
    copy->error = copy->count(copy->name, TIMES);
    pthread_barrier_wait(&together); /* nobody's ring is free before all have one */
    return NULL;
}

static void copy_load(struct copy *copy)
{
    copy->module = dlopen(copy->file, RTLD_NOW | RTLD_LOCAL);
    if (!copy->module) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    *(void **)&copy->count = dlsym(copy->module, "module_count");
    *(void **)&copy->path = dlsym(copy->module, "module_path");
}

static nt_log *own_log;

static int own_count(const char *name, unsigned long times)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    nt_log_options log_options = NT_LOG_OPTIONS_INIT;
    log_options.ring_bytes = 65536;
    int error = nt_log_open(&log_options, &own_log);
    options.name = name;
    nt_object object = nt_object_new(own_log, &options);
    for (unsigned long i = 0; i < times; i++)
        nt_object_count(object, NT_WRITE, 2);
    return error;
}

static const char *own_path(void)
{
    return nt_log_path(own_log);
}

int main(int argc, char **argv)
{
    struct copy copies[3] = { { .name = "own", .count = own_count, .path = own_path } };
    pthread_t threads[3];
    const char *off = getenv("NTSCOPE");
    if (argc < 3)
        return 2;
    for (int i = 1; i < 3; i++) {
        copies[i].file = argv[i];
        copies[i].name = i == 1 ? "first" : "second";
        copy_load(&copies[i]);
    }
    pthread_barrier_init(&together, NULL, 3);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, copy_run, &copies[i]);
    int bad = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        fprintf(stderr, "%s\n", copies[i].path());
        bad += copies[i].error && !(off && strcmp(off, "off") == 0);
    }
    for (int turn = 0; turn < 3; turn++) { /* threads and memory of the copy outlive the module */
        dlclose(copies[1].module);
        copy_load(&copies[1]);
        copies[1].count(copies[1].name, TIMES);
    }
    printf("copies bad %d\n", bad);
    return bad;
}
