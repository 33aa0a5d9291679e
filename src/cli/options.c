/* SPDX-License-Identifier: BSD-3-Clause */
/* Options from a table, see options.h. */
#include "cli/options.h"

#include <string.h>

#include "cli/cli.h"

struct parser {
    struct nt_cli *cli;
    const struct nt_cli_command *command;
    int count, at;
    char **arguments;
    void *values;
    bool help;
};

static int usage(struct parser *parser, const char *before, const char *name, const char *after)
{
    struct nt_buffer text = { 0 };
    nt_buffer_text(&text, after);
    nt_buffer_print(&text, " (ntscope %s --help tells more)", parser->command->name);
    nt_buffer_byte(&text, '\0');
    nt_cli_say_of(parser->cli, before, name, text.data ? text.data : "");
    nt_buffer_fini(&text);
    return NT_CLI_USAGE;
}

static void set_flag(struct parser *parser, const struct nt_cli_option *option)
{
    *(bool *)((char *)parser->values + option->offset) = true;
}

/* Sets an option to `argument`, or to the next argument if that is NULL. */
static int set_text(struct parser *parser, const struct nt_cli_option *option, const char *argument)
{
    if (!argument) {
        if (parser->at + 1 >= parser->count)
            return usage(parser, "option --", option->name, " needs an argument");
        argument = parser->arguments[++parser->at];
    }
    *(const char **)((char *)parser->values + option->offset) = argument;
    return 0;
}

static int parse_long(struct parser *parser, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t size = equals ? (size_t)(equals - text) : strlen(text);
    if (size == 4 && memcmp(text, "help", 4) == 0 && !equals) {
        parser->help = true;
        return 0;
    }
    for (const struct nt_cli_option *option = parser->command->options; option->name; option++) {
        if (strlen(option->name) != size || memcmp(option->name, text, size) != 0)
            continue;
        if (option->argument)
            return set_text(parser, option, equals ? equals + 1 : NULL);
        if (equals)
            return usage(parser, "option --", option->name, " takes no argument");
        set_flag(parser, option);
        return 0;
    }
    return usage(parser, "unknown option --", text, "");
}

static int parse_letters(struct parser *parser, const char *letters)
{
    for (; *letters; letters++) {
        const struct nt_cli_option *option = parser->command->options;
        const char name[2] = { *letters, '\0' };
        if (*letters == 'h') {
            parser->help = true;
            continue;
        }
        while (option->name && option->letter != *letters)
            option++;
        if (!option->name)
            return usage(parser, "unknown option -", name, "");
        if (option->argument)
            return set_text(parser, option, letters[1] ? letters + 1 : NULL);
        set_flag(parser, option);
    }
    return 0;
}

int nt_cli_options_parse(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments,
                         void *values, struct nt_cli_arguments *ret_arguments)
{
    struct parser parser = { .cli = cli, .command = command, .count = count, .arguments = arguments, .values = values };
    struct nt_cli_arguments found = { .plain = arguments };
    for (; parser.at < count && !found.dashes; parser.at++) {
        char *argument = arguments[parser.at];
        int error = 0;
        if (strcmp(argument, "--") == 0)
            found.dashes = true;
        else if (strncmp(argument, "--", 2) == 0)
            error = parse_long(&parser, argument + 2);
        else if (argument[0] == '-' && argument[1] != '\0')
            error = parse_letters(&parser, argument + 1);
        else
            arguments[found.plain_count++] = argument;
        if (error != 0)
            return error;
    }
    if (parser.help) {
        nt_cli_options_help(cli, command);
        return -1;
    }
    found.rest = arguments + parser.at;
    found.rest_count = count - parser.at;
    *ret_arguments = found;
    return 0;
}

static void help_option(struct nt_buffer *out, const struct nt_cli_option *option)
{
    size_t from = out->size;
    nt_buffer_text(out, "  ");
    if (option->letter)
        nt_buffer_print(out, "-%c, ", option->letter);
    nt_buffer_print(out, "--%s%s%s", option->name, option->argument ? " " : "",
                    option->argument ? option->argument : "");
    size_t width = out->size - from;
    nt_buffer_repeat(out, ' ', width < 24 ? 24 - width : 2);
    nt_buffer_print(out, "%s\n", option->text);
}

void nt_cli_options_help(struct nt_cli *cli, const struct nt_cli_command *command)
{
    static const struct nt_cli_option help = { 'h', "help", NULL, "this text", 0 };
    struct nt_buffer *out = &cli->out;
    struct nt_buffer rows = { 0 };
    nt_buffer_print(out, "usage: ntscope %s %s\n%s\n\n", command->name, command->arguments, command->summary);
    for (const struct nt_cli_option *option = command->options; option->name; option++)
        help_option(&rows, option);
    help_option(&rows, &help);
    nt_buffer_append(out, rows.data, rows.size);
    if (rows.error != 0)
        out->error = rows.error;
    nt_buffer_fini(&rows);
    if (command->text[0] != '\0')
        nt_buffer_print(out, "\n%s", command->text);
    nt_cli_codes_help(out);
}
