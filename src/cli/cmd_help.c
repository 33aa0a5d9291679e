/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope help: all commands, or one, as text; and all of it as JSON, from which the manual and the completions of
   shells are made. */
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "export/export.h"

struct values {
    bool json;
};

static const struct nt_cli_option options[] = {
    { 'j', "json", NULL, "all commands, their options and texts as one JSON value", offsetof(struct values, json) },
    { 0, NULL, NULL, NULL, 0 },
};

/* Those of ntscope itself. */
static const struct nt_cli_option own_options[] = {
    { 'h', "help", NULL, "this text", 0 },
    { 'V', "version", NULL, "the version", 0 },
    { 0, NULL, NULL, NULL, 0 },
};

static const char summary[] =
    "Statistics and events of message-passing programs, read from their logs while they run and after.";

static int help_all(struct nt_cli *cli)
{
    struct nt_buffer *out = &cli->out;
    nt_buffer_print(out, "usage: ntscope COMMAND [ARGUMENTS]\n%s\n\n", summary);
    for (size_t i = 0; nt_cli_commands[i]; i++)
        nt_buffer_print(out, "  %-8s %s\n", nt_cli_commands[i]->name, nt_cli_commands[i]->summary);
    nt_buffer_byte(out, '\n');
    for (const struct nt_cli_option *option = own_options; option->name; option++)
        nt_buffer_print(out, "  -%c, --%-8s %s\n", option->letter, option->name, option->text);
    nt_cli_codes_help(out);
    return NT_CLI_OK;
}

static void put(struct nt_json *json, const char *key, const char *text)
{
    nt_json_key(json, key);
    nt_json_text(json, text);
}

static void put_options(struct nt_json *json, const struct nt_cli_option *option)
{
    nt_json_key(json, "options");
    nt_json_array(json);
    for (; option->name; option++) {
        const char letter[2] = { option->letter, '\0' };
        nt_json_object(json);
        if (option->letter)
            put(json, "letter", letter);
        put(json, "name", option->name);
        if (option->argument)
            put(json, "argument", option->argument);
        put(json, "text", option->text);
        nt_json_object_end(json);
    }
    nt_json_array_end(json);
}

static void put_codes(struct nt_json *json)
{
#define NT_CLI_CODE(number, symbol, text) text,
    static const char *const codes[] = {
#include "cli/codes.def"
    };
#undef NT_CLI_CODE
    nt_json_key(json, "codes");
    nt_json_array(json);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        nt_json_text(json, codes[i]);
    nt_json_array_end(json);
}

static int help_json(struct nt_cli *cli)
{
    struct nt_json json = { .out = &cli->out };
    nt_json_object(&json);
    put(&json, "version", NT_CLI_VERSION);
    put(&json, "summary", summary);
    put_options(&json, own_options);
    put_codes(&json);
    nt_json_key(&json, "formats");
    nt_json_array(&json);
    for (size_t i = 0; nt_export_formats[i]; i++)
        nt_json_text(&json, nt_export_formats[i]->name);
    nt_json_array_end(&json);
    nt_json_key(&json, "commands");
    nt_json_array(&json);
    for (size_t i = 0; nt_cli_commands[i]; i++) {
        const struct nt_cli_command *command = nt_cli_commands[i];
        nt_json_line(&json);
        nt_json_object(&json);
        put(&json, "name", command->name);
        put(&json, "arguments", command->arguments);
        put(&json, "summary", command->summary);
        put(&json, "text", command->text);
        put_options(&json, command->options);
        nt_json_object_end(&json);
    }
    nt_json_array_end(&json);
    nt_json_object_end(&json);
    nt_buffer_byte(&cli->out, '\n');
    return NT_CLI_OK;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct values values = { 0 };
    struct nt_cli_arguments given;
    int code = nt_cli_options_parse(cli, command, count, arguments, &values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (values.json)
        return help_json(cli);
    if (given.plain_count == 0)
        return help_all(cli);
    const struct nt_cli_command *found = nt_cli_find(given.plain[0]);
    if (!found)
        return nt_cli_unknown(cli, given.plain[0]);
    nt_cli_options_help(cli, found);
    return NT_CLI_OK;
}

const struct nt_cli_command nt_cli_help = {
    .name = "help",
    .arguments = "[--json] [COMMAND]",
    .summary = "Tells how to use a command: ntscope help COMMAND.",
    .text = "Without a COMMAND all of them are listed.\n",
    .options = options,
    .run = run,
};
