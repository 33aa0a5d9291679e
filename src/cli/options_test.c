/* SPDX-License-Identifier: BSD-3-Clause */
/* Options in every spelling, what is no option, and help from the same table. */
#include "cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"

struct values {
    bool json, all;
    const char *directory;
};

static const struct nt_cli_option options[] = {
    { 'j', "json", NULL, "as JSON", offsetof(struct values, json) },
    { 'a', "all", NULL, "everything", offsetof(struct values, all) },
    { 'd', "dir", "DIR", "where", offsetof(struct values, directory) },
    { 0, NULL, NULL, NULL, 0 },
};
static const struct nt_cli_command command = {
    .name = "try",
    .arguments = "[FILE…]",
    .summary = "Tries.",
    .text = "More text.\n",
    .options = options,
};

struct parsed {
    int code;
    struct values values;
    struct nt_cli_arguments arguments;
    char *talk, *out;
};

static struct parsed parse(char **arguments)
{
    struct parsed parsed = { 0 };
    struct nt_cli cli;
    size_t size;
    int count = 0;
    while (arguments[count])
        count++;
    FILE *talk = open_memstream(&parsed.talk, &size);
    nt_cli_init(&cli, -1, talk);
    cli.out.drain = NULL;
    parsed.code = nt_cli_options_parse(&cli, &command, count, arguments, &parsed.values, &parsed.arguments);
    (void)fclose(talk);
    nt_buffer_byte(&cli.out, '\0');
    parsed.out = strdup(cli.out.data);
    nt_buffer_fini(&cli.out);
    return parsed;
}

static void parsed_fini(struct parsed *parsed)
{
    free(parsed->talk);
    free(parsed->out);
}

#define PARSE(...) parse((char *[]){ __VA_ARGS__, NULL })

static void spellings(void **state)
{
    (void)state;
    struct parsed parsed[] = {
        PARSE("--json", "--dir", "x"), PARSE("--dir=x", "-j"), PARSE("-jdx"),
        PARSE("-j", "-d", "x"),        PARSE("-dx", "--json"),
    };
    for (size_t i = 0; i < sizeof parsed / sizeof *parsed; i++) {
        assert_int_equal(parsed[i].code, 0);
        assert_true(parsed[i].values.json);
        assert_false(parsed[i].values.all);
        assert_string_equal(parsed[i].values.directory, "x");
        assert_int_equal(parsed[i].arguments.plain_count, 0);
        assert_string_equal(parsed[i].talk, "");
        parsed_fini(&parsed[i]);
    }
}

static void arguments_may_stand_anywhere(void **state)
{
    (void)state;
    char *given[] = { "a", "-j", "b", "-", "--dir=", "c", "--", "-x", "--", NULL };
    struct parsed parsed = parse(given);
    assert_int_equal(parsed.code, 0);
    assert_int_equal(parsed.arguments.plain_count, 4);
    assert_string_equal(parsed.arguments.plain[1], "b");
    assert_string_equal(parsed.arguments.plain[2], "-");
    assert_string_equal(parsed.arguments.plain[3], "c");
    assert_true(parsed.arguments.dashes);
    assert_int_equal(parsed.arguments.rest_count, 2);
    assert_string_equal(parsed.arguments.rest[0], "-x");
    assert_string_equal(parsed.values.directory, "");
    parsed_fini(&parsed);
    struct parsed none = PARSE("a");
    assert_false(none.arguments.dashes);
    assert_int_equal(none.arguments.rest_count, 0);
    parsed_fini(&none);
    struct parsed last = PARSE("--");
    assert_true(last.arguments.dashes);
    assert_int_equal(last.arguments.rest_count, 0);
    parsed_fini(&last);
}

static void assert_usage(struct parsed parsed, const char *talk)
{
    assert_int_equal(parsed.code, NT_CLI_USAGE);
    assert_non_null(strstr(parsed.talk, talk));
    assert_non_null(strstr(parsed.talk, "(ntscope try --help tells more)\n"));
    assert_ptr_equal(strchr(parsed.talk, '\n'), parsed.talk + strlen(parsed.talk) - 1);
    parsed_fini(&parsed);
}

static void wrong_usage(void **state)
{
    (void)state;
    assert_usage(PARSE("--jso"), "unknown option --jso ");
    assert_usage(PARSE("--jsonx"), "unknown option --jsonx ");
    assert_usage(PARSE("-jx"), "unknown option -x ");
    assert_usage(PARSE("-\x1b"), "unknown option -\\x1b ");
    assert_usage(PARSE("--\x1b[2J\xff"), "unknown option --\\x1b[2J\\xff ");
    assert_usage(PARSE("--json=1"), "option --json takes no argument ");
    assert_usage(PARSE("--dir"), "option --dir needs an argument ");
    assert_usage(PARSE("-jd"), "option --dir needs an argument ");
    assert_usage(PARSE("--help=x"), "unknown option --help=x ");
}

static void help(void **state)
{
    (void)state;
    struct parsed parsed[] = { PARSE("--help"), PARSE("-h"), PARSE("x", "-jh") };
    for (size_t i = 0; i < sizeof parsed / sizeof *parsed; i++) {
        assert_int_equal(parsed[i].code, -1);
        assert_string_equal(parsed[i].talk, "");
        assert_string_equal(parsed[i].out,
                            "usage: ntscope try [FILE…]\nTries.\n\n"
                            "  -j, --json            as JSON\n"
                            "  -a, --all             everything\n"
                            "  -d, --dir DIR         where\n"
                            "  -h, --help            this text\n"
                            "\nMore text.\n"
                            "\nExit codes: 0 done, 1 nothing matched, 2 wrong usage, 3 bad input or output "
                            "that could not be written.\n");
        parsed_fini(&parsed[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings),
        cmocka_unit_test(arguments_may_stand_anywhere),
        cmocka_unit_test(wrong_usage),
        cmocka_unit_test(help),
    };
    return cmocka_run_group_tests_name("cli/options", tests, NULL, NULL);
}
