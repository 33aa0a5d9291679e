/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands from their arguments to output and exit code, over a fake source of live logs: it stands in for the
   library's, tells two programs from arrays, and what it says is bad. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <nt/error.h>
#include <nt/log_layout.h>

#include "cli/cli.h"
#include "cli/sources.h"
#include "model/feed_test.h"
#include "source/live/live.h"

/* ---- The fake source ---- */

static struct {
    bool empty, loss;
    int bad, fail; /* codes */
    char directory[256];
    size_t files; /* named by the last opening */
    int removed;
    int mask_error;
    struct nt_live_mask mask; /* the last one asked for */
} fake;

static int fake_snapshot(struct nt_source *source, const struct nt_source_sink *sink)
{
    static const struct nt_source_tally sums[] = { { 1, 3, 30, 20, 99 } };
    (void)source;
    if (fake.bad != 0)
        sink->bad(sink->arg, "/logs/bad\x1b.ntlog", fake.bad, "it is \x1b bad");
    for (uint32_t i = 0; i < 2 && !fake.empty; i++) {
        struct nt_source_program program = feed_program(i, "n", i == 0 ? "one" : "two", 10 + i);
        struct nt_source_object object = feed_object(i, 1, 0, "orders");
        program.overwritten = fake.loss ? 4 : 0;
        program.state = i == 0 ? NT_PROGRAM_RUNNING : NT_PROGRAM_CRASHED;
        object.tallies = sums;
        object.tally_count = 1;
        int error = sink->program ? sink->program(sink->arg, &program) : 0;
        error = error == 0 && sink->object ? sink->object(sink->arg, &object) : error;
        if (error != 0)
            return error;
    }
    return fake.fail;
}

static int fake_read(struct nt_source *source, struct nt_event *events, size_t room, struct nt_source_loss *losses,
                     size_t loss_room, size_t *ret_losses)
{
    (void)source;
    (void)events;
    (void)room;
    (void)losses;
    (void)loss_room;
    *ret_losses = 0;
    return 0;
}

static void fake_free(struct nt_source *take_source)
{
    free(take_source);
}

int nt_source_live_open(const struct nt_live_options *options, struct nt_source **ret_source)
{
    static const struct nt_source_ops ops = {
        .name = "fake", .snapshot = fake_snapshot, .read = fake_read, .free = fake_free
    };
    struct nt_source *source = calloc(1, sizeof *source);
    (void)snprintf(fake.directory, sizeof fake.directory, "%s", options->directory ? options->directory : "");
    fake.files = options->file_count;
    source->ops = &ops;
    *ret_source = source;
    return 0;
}

int nt_live_remove_dead(const struct nt_live_options *options, const struct nt_live_clean_sink *sink)
{
    (void)options;
    if (fake.bad != 0)
        sink->bad(sink->arg, "/logs/bad", fake.bad, "");
    for (int i = 0; i < fake.removed; i++)
        sink->removed(sink->arg, "/logs/dead\x1b.ntlog");
    return fake.fail < 0 ? fake.fail : fake.removed;
}

int nt_live_mask_change(struct nt_source *source, struct nt_live_mask *mask)
{
    (void)source;
    fake.mask = *mask;
    if (mask->program == 1)
        return -ESRCH; /* it has crashed */
    mask->before = 6;
    mask->after = (6 & ~mask->clear) | mask->set;
    return fake.mask_error;
}

/* ---- Running a command ---- */

struct outcome {
    int code;
    char out[8192], talk[8192];
};

static char scratch[64];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/ntscope-cmd-test-XXXXXX");
    return mkdtemp(scratch) ? setenv("NTSCOPE_DIR", scratch, 1) : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(scratch); /* nothing is left behind */
}

static void read_back(FILE *file, char *text, size_t room)
{
    rewind(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    (void)fclose(file);
}

/* Stands for this process's stderr as well: what `stat -- CMD` writes goes there. */
static struct outcome run_to(const struct nt_cli_command *command, int out, char **arguments)
{
    struct outcome outcome = { 0 };
    struct nt_cli cli;
    int count = 0;
    FILE *talk = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_non_null(talk);
    while (arguments[count])
        count++;
    assert_int_equal(dup2(fileno(talk), STDERR_FILENO), STDERR_FILENO);
    nt_cli_init(&cli, out, talk);
    outcome.code = command->run(&cli, command, count, arguments);
    outcome.code = nt_cli_finish(&cli, outcome.code);
    (void)fflush(talk);
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    read_back(talk, outcome.talk, sizeof outcome.talk);
    return outcome;
}

static struct outcome run(const struct nt_cli_command *command, char **arguments)
{
    FILE *out = tmpfile();
    assert_non_null(out);
    struct outcome outcome = run_to(command, fileno(out), arguments);
    read_back(out, outcome.out, sizeof outcome.out);
    return outcome;
}

#define RUN(name, ...) run(&nt_cli_##name, (char *[]){ __VA_ARGS__, NULL })
#define RUN_ALONE(name) run(&nt_cli_##name, (char *[]){ NULL })

static int reset(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    return 0;
}

/* ---- ps ---- */

static void ps(void **state)
{
    (void)state;
    struct outcome table = RUN_ALONE(ps), json = RUN(ps, "--json", "--dir", "/d");
    assert_int_equal(table.code, 0);
    assert_int_equal(strncmp(table.out, "NAME PID STATE   NODE", 21), 0);
    assert_non_null(strstr(table.out, "\ntwo   11 crashed n "));
    assert_string_equal(table.talk, "");
    assert_int_equal(json.code, 0);
    assert_int_equal(strncmp(json.out, "{\"processes\":[\n{\"node\":\"n\",", 27), 0);
    assert_string_equal(fake.directory, "/d");
    assert_int_equal(RUN(ps, "--", "x").code, NT_CLI_USAGE);
}

static void nothing_there(void **state)
{
    (void)state;
    char said[128];
    (void)snprintf(said, sizeof said, "ntscope: no logs in %s\n", scratch);
    fake.empty = true;
    struct outcome outcomes[] = { RUN_ALONE(ps), RUN_ALONE(stat), RUN(stat, "a/b"), RUN(ps, "--json") };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(outcomes[i].code, NT_CLI_NOTHING);
        assert_string_equal(outcomes[i].out, "");
        assert_string_equal(outcomes[i].talk, said);
    }
    assert_string_equal(RUN(ps, "--dir", "/\x1b").talk, "ntscope: no logs in /\\x1b\n");
}

static void bad_logs(void **state)
{
    (void)state;
    fake.bad = -NT_EFORMAT;
    struct outcome outcomes[] = { RUN_ALONE(ps), RUN_ALONE(stat), RUN(stat, "one/orders/write/total") };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(outcomes[i].code, NT_CLI_BAD);
        assert_true(strlen(outcomes[i].out) > 0); /* the others are shown */
        assert_string_equal(outcomes[i].talk, "ntscope: /logs/bad\\x1b.ntlog: it is \\x1b bad\n");
    }
    fake.bad = 0;
    fake.fail = -EIO;
    struct outcome failed = RUN_ALONE(ps);
    assert_int_equal(failed.code, NT_CLI_BAD);
    assert_string_equal(failed.talk, "ntscope: cannot read the logs: Input/output error\n");
    fake.fail = 0;
    fake.bad = -NT_EFORMAT;
    fake.empty = true;
    failed = RUN(stat, "x/y");
    assert_int_equal(failed.code, NT_CLI_BAD);
    assert_string_equal(failed.out, "");
}

/* ---- stat ---- */

static void numbers(void **state)
{
    (void)state;
    struct outcome one = RUN(stat, "one/orders/write/total"), json = RUN(stat, "one/orders/write/mean", "--json"),
                   two = RUN(stat, "orders/write/total"), part = RUN(stat, "one/orders/write/total", "nobody", "no/o"),
                   none = RUN(stat, "nobody");
    assert_int_equal(one.code, 0);
    assert_string_equal(one.out, "30\n");
    assert_string_equal(json.out, "10\n");
    assert_string_equal(two.out, "n/one/orders/write/total\t30\nn/two/orders/write/total\t30\n");
    assert_int_equal(part.code, NT_CLI_NOTHING);
    assert_string_equal(part.out, "30\n");
    assert_string_equal(part.talk, "ntscope: nothing matches 'nobody'\nntscope: nothing matches 'no/o'\n");
    assert_int_equal(none.code, NT_CLI_NOTHING);
    assert_string_equal(none.out, "");
    struct outcome skipping = RUN(stat, "n/orders/write/total"), missing = RUN(stat, "missing.ntlog");
    assert_string_equal(skipping.talk, "ntscope: nothing matches so; did you mean 'n/**/orders/write/total'?\n");
    assert_int_equal(skipping.code, NT_CLI_NOTHING);
    assert_string_equal(missing.talk, "ntscope: missing.ntlog: No such file or directory\n");
    assert_int_equal(missing.code, NT_CLI_BAD);
}

static void trees(void **state)
{
    (void)state;
    struct outcome text = RUN_ALONE(stat), json = RUN(stat, "--format", "json"), branch = RUN(stat, "two");
    assert_int_equal(text.code, 0);
    assert_non_null(strstr(text.out, "  one  pid 10, running\n"));
    assert_int_equal(strncmp(json.out, "{\"nodes\":[", 10), 0);
    assert_null(strstr(branch.out, "pid 10"));
    assert_non_null(strstr(branch.out, "pid 11"));
}

static void loss_comes_first(void **state)
{
    (void)state;
    fake.loss = true;
    struct outcome text = RUN_ALONE(stat), json = RUN(stat, "--json"), number = RUN(stat, "one/orders/write/total");
    assert_int_equal(text.code, 0);
    assert_int_equal(strncmp(text.out, "lost: n/one.10: 4 events overwritten; totals stay exact\n", 56), 0);
    assert_string_equal(text.talk, "");
    assert_int_equal(json.code, 0);
    assert_string_equal(json.talk, "ntscope: lost: n/one.10: 4 events overwritten; totals stay exact\n"
                                   "ntscope: lost: n/two.11: 4 events overwritten; totals stay exact\n");
    assert_int_equal(number.code, 0);
    assert_string_equal(number.out, "30\n");
}

static void wrong_usage(void **state)
{
    (void)state;
    struct outcome path = RUN(stat, "a//\x1b"), format = RUN(stat, "--format", "yaml"), dashes = RUN(stat, "--"),
                   option = RUN(stat, "--nope"), output = RUN(stat, "-o", "/nonexistent/x");
    assert_int_equal(path.code, NT_CLI_BAD);
    assert_string_equal(path.talk, "ntscope: bad path 'a//\\x1b': a component is empty\n");
    assert_int_equal(format.code, NT_CLI_USAGE);
    assert_int_equal(dashes.code, NT_CLI_USAGE);
    assert_int_equal(option.code, NT_CLI_USAGE);
    assert_int_equal(output.code, NT_CLI_BAD);
    assert_string_equal(output.talk, "ntscope: cannot write /nonexistent/x: No such file or directory\n");
    assert_string_equal(path.out, "");
    assert_int_equal(RUN(stat, "a//b", "--", "/bin/false").code, NT_CLI_BAD); /* before anything is run */
    assert_int_equal(RUN(stat, "--help").code, 0);
}

static void files(void **state)
{
    (void)state;
    char log[128], other[128], said[256];
    (void)snprintf(log, sizeof log, "%s/log", scratch);
    (void)snprintf(other, sizeof other, "%s/other", scratch);
    FILE *file = fopen(log, "we");
    (void)fputs("NTLOG\r\n\x07 of a version to come", file);
    (void)fclose(file);
    file = fopen(other, "we");
    (void)fputs("NTLO", file);
    (void)fclose(file);
    assert_true(nt_cli_sources_is_file(log));
    assert_false(nt_cli_sources_is_file(other));
    assert_false(nt_cli_sources_is_file(scratch));
    assert_false(nt_cli_sources_is_file("/nonexistent"));
    assert_string_equal(RUN(stat, log, "one/orders/write/total").out, "30\n");
    assert_int_equal(fake.files, 1);
    struct outcome not_a_log = RUN(stat, other);
    assert_int_equal(not_a_log.code, NT_CLI_BAD);
    (void)snprintf(said, sizeof said,
                   "ntscope: %s: neither a log nor a recording, and no object matches it as a path\n", other);
    assert_string_equal(not_a_log.talk, said);
    assert_int_equal(fake.files, 0);
    fake.empty = true;
    not_a_log = RUN(stat, other);
    assert_int_equal(not_a_log.code, NT_CLI_BAD);
    assert_string_equal(not_a_log.talk, said);
    fake.empty = false;
    assert_int_equal(RUN(ps, other).code, 0); /* the source is asked: it would say what is wrong */
    assert_int_equal(fake.files, 1);
    assert_int_equal(RUN(stat, log, "--", "/bin/true").code, NT_CLI_USAGE);
    (void)unlink(log);
    (void)unlink(other);
}

/* ---- clean ---- */

static void clean(void **state)
{
    (void)state;
    struct outcome none = RUN_ALONE(clean);
    assert_int_equal(none.code, 0);
    assert_string_equal(none.talk, "ntscope: nothing to remove\n");
    fake.removed = 2;
    assert_string_equal(RUN_ALONE(clean).out, "removed /logs/dead\\x1b.ntlog\nremoved /logs/dead\\x1b.ntlog\n");
    assert_string_equal(RUN(clean, "-n").out, "would remove /logs/x.ntlog\n"); /* the crashed one */
    assert_int_equal(RUN(clean, "x").code, NT_CLI_USAGE);
    fake.bad = -EACCES;
    struct outcome bad = RUN_ALONE(clean);
    assert_int_equal(bad.code, NT_CLI_BAD);
    assert_string_equal(bad.talk, "ntscope: /logs/bad: Permission denied\n");
    fake.fail = -ENOMEM;
    assert_int_equal(RUN_ALONE(clean).code, NT_CLI_BAD);
}

/* ---- Output that fails ---- */

static void full_disk(void **state)
{
    (void)state;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct outcome outcome = run_to(&nt_cli_ps, full, (char *[]){ NULL });
    assert_int_equal(outcome.code, NT_CLI_BAD);
    assert_string_equal(outcome.talk, "ntscope: cannot write the output: No space left on device\n");
    (void)close(full);
    outcome = RUN(stat, "-o", "/dev/full");
    assert_int_equal(outcome.code, NT_CLI_BAD);
}

static void broken_pipe(void **state)
{
    (void)state;
    int ends[2];
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)close(ends[0]);
    struct outcome outcome = run_to(&nt_cli_ps, ends[1], (char *[]){ NULL });
    assert_int_equal(outcome.code, 0);
    assert_string_equal(outcome.talk, "");
    (void)close(ends[1]);
    (void)signal(SIGPIPE, before);
}

/* ---- stat -- CMD ---- */

static void command_codes(void **state)
{
    (void)state;
    assert_int_equal(RUN(stat, "--", "true").code, 0);
    assert_int_equal(RUN(stat, "--", "sh", "-c", "exit 9").code, 9);
    assert_int_equal(RUN(stat, "--", "sh", "-c", "kill -9 $$").code, 137);
    fake.empty = true;
    struct outcome missing = RUN(stat, "--", "/nonexistent/\x1b");
    assert_int_equal(missing.code, 127);
    assert_string_equal(missing.talk, "ntscope: cannot run /nonexistent/\\x1b: No such file or directory\n");
    assert_int_equal(RUN(stat, "--", "/etc/passwd").code, 126);
    fake.empty = false;
    fake.bad = -NT_EFORMAT;
    assert_int_equal(RUN(stat, "--", "sh", "-c", "exit 9").code, 9);
}

static void command_statistics(void **state)
{
    (void)state;
    /* What the command writes to stdout is untouched: it does not even pass through here. */
    struct outcome outcome = RUN(stat, "one/orders/write/total", "--", "sh", "-c", "exit 4");
    assert_int_equal(outcome.code, 4);
    assert_string_equal(outcome.out, "");
    assert_string_equal(outcome.talk, "30\n");
    assert_int_equal(strncmp(fake.directory, scratch, strlen(scratch)), 0);
    char file[128], text[64] = "";
    (void)snprintf(file, sizeof file, "%s/out", scratch);
    outcome = RUN(stat, "one/orders/write/total", "-o", file, "--", "true");
    assert_string_equal(outcome.talk, "");
    FILE *written = fopen(file, "re");
    assert_non_null(written);
    read_back(written, text, sizeof text);
    assert_string_equal(text, "30\n");
    (void)unlink(file);
    fake.empty = true;
    assert_string_equal(RUN(stat, "--", "true").talk, "ntscope: true opened no log\n");
}

static void command_directory(void **state)
{
    (void)state;
    /* In a directory of its own, private, with all logs kept; removed with what is in it. */
    char check[512], inside[128];
    (void)snprintf(check, sizeof check,
                   "test \"$(stat -c %%a \"$NTSCOPE_DIR\")\" = 700 && test \"$NTSCOPE_KEEP\" = all && "
                   "touch \"$NTSCOPE_DIR/x\" && case $NTSCOPE_DIR in %s/ntscope-run-*) exit 5;; esac",
                   scratch);
    assert_int_equal(RUN(stat, "--", "sh", "-c", check).code, 5);
    assert_int_not_equal(access(fake.directory, F_OK), 0);
    (void)snprintf(inside, sizeof inside, "%s/new", scratch);
    assert_int_equal(RUN(stat, "--dir", inside, "--", "true").code, 0);
    assert_int_equal(strncmp(fake.directory, inside, strlen(inside)), 0);
    assert_int_equal(rmdir(inside), 0);
    struct outcome kept = RUN(stat, "--keep", "--", "true");
    assert_non_null(strstr(kept.talk, "ntscope: the logs are in /"));
    assert_int_equal(rmdir(fake.directory), 0);
    assert_int_equal(RUN(stat, "--dir", "/proc/nonexistent", "--", "true").code, 126);
}

/* Whether a signal that this test sends to the process under test arrives at the command, which then ends by it. */
static void signals_are_passed_on(void **state)
{
    (void)state;
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        int ends[2];
        char byte;
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            char command[64];
            (void)signal(signals[i], SIG_DFL); /* who is started in the background may ignore it, and so would sleep */
            (void)snprintf(command, sizeof command, "echo x >&%d; exec sleep 60", ends[1]);
            _exit(RUN(stat, "--", "sh", "-c", command).code);
        }
        (void)close(ends[1]);
        assert_int_equal(read(ends[0], &byte, 1), 1);
        (void)close(ends[0]);
        int status;
        assert_int_equal(kill(pid, signals[i]), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 128 + signals[i]);
    }
}

/* The command gets signals as we did: not blocked, and SIGPIPE ends it. */
static void signals_are_as_before(void **state)
{
    (void)state;
    assert_int_equal(RUN(stat, "--", "sh", "-c", "kill -PIPE $$").code, 128 + SIGPIPE);
    sigset_t blocked;
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
    assert_int_equal(sigismember(&blocked, SIGCHLD), 0);
    assert_int_equal(sigismember(&blocked, SIGTERM), 0);
    (void)signal(SIGCHLD, SIG_IGN); /* as some parents leave it */
    assert_int_equal(RUN(stat, "--", "sh", "-c", "exit 6").code, 6);
    struct sigaction now;
    assert_int_equal(sigaction(SIGCHLD, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
}

/* ---- mask ---- */

static void masks(void **state)
{
    static const char ended[] = "ntscope: 1 program that matches has ended: nothing to change there\n";
    (void)state;
    struct outcome shown = RUN(mask, "one/orders"), set = RUN(mask, "-read", "+ping", "one/orders", "=wait", "+read");
    assert_string_equal(shown.out, "n/one/orders  =write,read\n");
    assert_int_equal(set.code, 0);
    assert_string_equal(set.out, "n/one/orders  =write,read  ->  =read,wait\n");
    assert_int_equal(fake.mask.set, 1 << 2 | 1 << 5);
    assert_int_equal(fake.mask.clear, NT_LAYOUT_MASK_BITS & ~fake.mask.set);
    assert_true(fake.mask.program == 0 && fake.mask.object == 1 && fake.mask.generation == 1);
    struct outcome some = RUN(mask, "orders", "-write"), same = RUN(mask, "one", "+read"),
                   dead = RUN(mask, "two", "-read");
    assert_int_equal(some.code, 0);
    assert_string_equal(some.out, "n/one/orders  =write,read  ->  =read\n");
    assert_string_equal(some.talk, ended);
    assert_int_equal(same.code, 0);
    assert_string_equal(same.out, "");
    assert_int_equal(dead.code, NT_CLI_NOTHING);
    assert_string_equal(dead.talk, ended);
}

static void masks_that_cannot_be_set(void **state)
{
    (void)state;
    fake.mask_error = -EACCES;
    struct outcome outcome = RUN(mask, "one", "-read");
    assert_int_equal(outcome.code, NT_CLI_BAD);
    assert_string_equal(outcome.talk, "ntscope: n/one: its masks cannot be changed: Permission denied\n");
    assert_string_equal(outcome.out, "");
    fake.mask_error = -ESTALE;
    outcome = RUN(mask, "one", "-read");
    assert_int_equal(outcome.code, NT_CLI_NOTHING);
    assert_string_equal(outcome.talk, "ntscope: no open object matches\n");
    outcome = RUN(mask, "nobody", "-read");
    assert_int_equal(outcome.code, NT_CLI_NOTHING);
    assert_string_equal(outcome.talk, "ntscope: nothing matches 'nobody'\n");
    memset(&fake.mask, 0, sizeof fake.mask);
    struct outcome wrong[] = { RUN(mask, "one", "-reads"), RUN(mask, "+read"), RUN(mask, "one", "+"),
                               RUN(mask, "one", "+read", "--", "x"), RUN(mask, "one", "-d") };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(wrong[i].code, NT_CLI_USAGE);
        assert_int_equal(fake.mask.generation, 0);
    }
    assert_int_equal(RUN(mask, "one", "-read", "-d", "/d").code, NT_CLI_NOTHING);
    assert_string_equal(fake.directory, "/d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(masks, reset),
        cmocka_unit_test_setup(masks_that_cannot_be_set, reset),
        cmocka_unit_test_setup(ps, reset),
        cmocka_unit_test_setup(nothing_there, reset),
        cmocka_unit_test_setup(bad_logs, reset),
        cmocka_unit_test_setup(numbers, reset),
        cmocka_unit_test_setup(trees, reset),
        cmocka_unit_test_setup(loss_comes_first, reset),
        cmocka_unit_test_setup(wrong_usage, reset),
        cmocka_unit_test_setup(files, reset),
        cmocka_unit_test_setup(clean, reset),
        cmocka_unit_test_setup(full_disk, reset),
        cmocka_unit_test_setup(broken_pipe, reset),
        cmocka_unit_test_setup(command_codes, reset),
        cmocka_unit_test_setup(command_statistics, reset),
        cmocka_unit_test_setup(command_directory, reset),
        cmocka_unit_test_setup(signals_are_passed_on, reset),
        cmocka_unit_test_setup(signals_are_as_before, reset),
    };
    return cmocka_run_group_tests_name("cli/cmd", tests, setup, teardown);
}
