/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiling conditions, see filter.h and docs/expr.md. One pass: whether the number of NOTs around is odd is known
   before what they stand before is read, so AND, OR and comparisons are compiled as what they become (De Morgan).
   A step whose next one is not known yet is a hole; holes that lead to the same place are a list that runs through
   the steps themselves. Only parentheses recurse, to a bounded depth. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/error.h>

#include "base/parse.h"
#include "base/text.h"
#include "base/time.h"
#include "event/filter_program.h"
#include "event/glob.h"

enum token_kind { END, WORD, NUMBER, TEXT, SYMBOL };
enum { ID_DIGITS = 16 };

struct token {
    enum token_kind kind;
    size_t at;              /* in the text */
    struct nt_bytes source; /* as it stands there */
    struct nt_bytes text;   /* of TEXT: without quotes */
    uint64_t number;        /* of NUMBER */
};

struct parser {
    struct nt_filter *filter;
    const char *text;
    size_t size, at;
    uint64_t now;
    struct token token; /* the next one */
    size_t bytes_used;
    unsigned depth;
    int error;
    struct nt_filter_error *ret_error;
};

/* ---- What is wrong ---- */

/* Keeps the first error only. */
__attribute__((format(printf, 3, 4))) static void fail(struct parser *parser, size_t at, const char *format, ...)
{
    struct nt_filter_error *error = parser->ret_error;
    uint32_t point;
    va_list arguments;
    if (parser->error != 0)
        return;
    parser->error = -NT_ESYNTAX;
    error->column = 1;
    for (size_t i = 0; i < at; error->column++) {
        size_t length = nt_text_decode(parser->text + i, parser->size - i, &point);
        i += length > 0 ? length : 1;
    }
    va_start(arguments, format);
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
}

/* How much of a word is repeated in an error. */
static int shown(struct nt_bytes word)
{
    return word.size < 64 ? (int)word.size : 64;
}

static void fail_unexpected(struct parser *parser, const char *wanted)
{
    const struct token *token = &parser->token;
    if (token->kind == END)
        fail(parser, token->at, "it ends where %s is expected", wanted);
    else
        fail(parser, token->at, "%s is expected, not %.*s", wanted, shown(token->source), token->source.data);
}

/* ---- Words ---- */

static bool is_word_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_';
}

static bool same_word(struct nt_bytes word, const char *other)
{
    size_t i = 0;
    for (; i < word.size && other[i]; i++) {
        char byte = word.data[i];
        if ((byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte) != other[i])
            return false;
    }
    return i == word.size && !other[i];
}

static int read_hex(struct nt_bytes digits, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (size_t i = 0; i < digits.size; i++) {
        int digit = nt_parse_hex_digit(digits.data[i]);
        if (digit < 0)
            return -NT_ESYNTAX;
        if (number >> 60 != 0)
            return -ERANGE;
        number = number << 4 | (uint64_t)digit;
    }
    *ret_number = number;
    return digits.size > 0 ? 0 : -NT_ESYNTAX;
}

static void read_number(struct parser *parser, struct token *token)
{
    struct nt_bytes source = token->source;
    bool hex = source.size > 1 && source.data[0] == '0' && (source.data[1] | 0x20) == 'x';
    const struct nt_bytes digits = { source.data + 2, source.size - 2 };
    int error = hex ? read_hex(digits, &token->number) : nt_parse_u64(source.data, source.size, &token->number);
    token->kind = NUMBER;
    if (error == -ERANGE)
        fail(parser, token->at, "a number is at most 18446744073709551615");
    else if (error != 0)
        fail(parser, token->at, "%.*s is no number", shown(source), source.data);
}

/* Text in single quotes, two of which stand for one. */
static void read_text(struct parser *parser, struct token *token)
{
    size_t at = token->at + 1;
    char *to = parser->filter->bytes + parser->bytes_used;
    token->kind = TEXT;
    token->text = (struct nt_bytes){ to, 0 };
    for (; at < parser->size; at++) {
        if (parser->text[at] == '\'' && (at + 1 == parser->size || parser->text[at + 1] != '\''))
            break;
        at += parser->text[at] == '\'';
        to[token->text.size++] = parser->text[at];
    }
    if (at >= parser->size)
        fail(parser, token->at, "text that begins here is not closed by a quote (')");
    parser->bytes_used += token->text.size;
    token->source.size = at < parser->size ? at + 1 - token->at : parser->size - token->at;
}

static void read_symbol(struct parser *parser, struct token *token)
{
    static const char *const symbols[] = { "==", "<>", "<=", ">=", "!=", "=", "<", ">", "(", ")", "," };
    char byte = token->source.data[0];
    token->kind = SYMBOL;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        size_t length = strlen(symbols[i]);
        if (length <= parser->size - token->at && memcmp(token->source.data, symbols[i], length) == 0) {
            token->source.size = length;
            return;
        }
    }
    token->source.size = 1;
    if (byte == '"')
        fail(parser, token->at, "text stands in single quotes (')");
    else if (byte == '-')
        fail(parser, token->at, "there are no negative numbers");
    else if (byte >= 0x20 && byte < 0x7f)
        fail(parser, token->at, "%c means nothing here", byte);
    else
        fail(parser, token->at, "byte 0x%02x means nothing here", (unsigned char)byte);
}

/* Goes on to the next word. */
static void next(struct parser *parser)
{
    while (parser->at < parser->size && strchr(" \t\r\n", parser->text[parser->at]) && parser->text[parser->at])
        parser->at++;
    struct token token = { .kind = END, .at = parser->at, .source = { parser->text + parser->at, 0 } };
    while (parser->at + token.source.size < parser->size && is_word_byte(token.source.data[token.source.size]))
        token.source.size++;
    if (token.source.size > 0 && token.source.data[0] >= '0' && token.source.data[0] <= '9')
        read_number(parser, &token);
    else if (token.source.size > 0)
        token.kind = WORD;
    else if (parser->at < parser->size && *token.source.data == '\'')
        read_text(parser, &token);
    else if (parser->at < parser->size)
        read_symbol(parser, &token);
    parser->at += token.source.size;
    parser->token = token;
}

static bool at_word(const struct parser *parser, const char *word)
{
    return parser->error == 0 && parser->token.kind == WORD && same_word(parser->token.source, word);
}

static bool at_symbol(const struct parser *parser, const char *symbol)
{
    const struct token *token = &parser->token;
    return parser->error == 0 && token->kind == SYMBOL && token->source.size == strlen(symbol) &&
           memcmp(token->source.data, symbol, token->source.size) == 0;
}

static bool take_word(struct parser *parser, const char *word)
{
    bool taken = at_word(parser, word);
    if (taken)
        next(parser);
    return taken;
}

static bool take_symbol(struct parser *parser, const char *symbol)
{
    bool taken = at_symbol(parser, symbol);
    if (taken)
        next(parser);
    return taken;
}

static void expect_symbol(struct parser *parser, const char *symbol)
{
    if (parser->error == 0 && !take_symbol(parser, symbol))
        fail_unexpected(parser, symbol);
}

/* ---- The program ---- */

static bool grow(struct parser *parser, void **entries, uint32_t count, uint32_t *room, size_t size)
{
    if (parser->error != 0)
        return false;
    if (count < *room)
        return true;
    uint32_t more = *room > 0 ? *room * 2 : 8;
    void *moved = reallocarray(*entries, more, size);
    if (!moved) {
        parser->error = -ENOMEM;
        return false;
    }
    *entries = moved;
    *room = more;
    return true;
}

static void add_number(struct parser *parser, uint64_t number)
{
    struct nt_filter *filter = parser->filter;
    void *numbers = filter->numbers;
    if (grow(parser, &numbers, filter->number_count, &filter->number_room, sizeof number)) {
        filter->numbers = numbers;
        filter->numbers[filter->number_count++] = number;
    }
}

static void add_text(struct parser *parser, struct nt_bytes text)
{
    struct nt_filter *filter = parser->filter;
    void *texts = filter->texts;
    if (grow(parser, &texts, filter->text_count, &filter->text_room, sizeof text)) {
        filter->texts = texts;
        filter->texts[filter->text_count++] = text;
    }
}

/* Places that a next step is to be written to: number of the step × 2 + 1 (on_true) or + 2 (on_false), each of
   which holds the place that follows it; 0 ends the list. */
struct holes {
    uint32_t first, last;
};

/* A part of the program, and where it leads. */
struct part {
    uint32_t start;
    struct holes yes, no;
};

static uint32_t *hole_at(const struct parser *parser, uint32_t hole)
{
    struct filter_step *step = &parser->filter->steps[(hole - 1) / 2];
    return hole % 2 == 1 ? &step->on_true : &step->on_false;
}

static void holes_fill(const struct parser *parser, struct holes holes, uint32_t target)
{
    while (holes.first != 0) {
        uint32_t *hole = hole_at(parser, holes.first);
        holes.first = *hole;
        *hole = target;
    }
}

static struct holes holes_join(const struct parser *parser, struct holes a, struct holes b)
{
    if (a.first == 0 || b.first == 0)
        return a.first == 0 ? b : a;
    *hole_at(parser, a.last) = b.first;
    return (struct holes){ a.first, b.last };
}

static struct part add_step(struct parser *parser, const struct filter_step *step)
{
    struct nt_filter *filter = parser->filter;
    void *steps = filter->steps;
    if (!grow(parser, &steps, filter->step_count, &filter->step_room, sizeof *step))
        return (struct part){ 0 };
    filter->steps = steps;
    uint32_t at = filter->step_count++;
    filter->steps[at] = *step;
    filter->steps[at].on_true = filter->steps[at].on_false = 0;
    return (struct part){ at, { 2 * at + 1, 2 * at + 1 }, { 2 * at + 2, 2 * at + 2 } };
}

/* Both parts; either: one of them is enough. */
static struct part combine(struct parser *parser, struct part left, struct part right, bool either)
{
    if (parser->error != 0)
        return left;
    holes_fill(parser, either ? left.no : left.yes, right.start);
    if (either) {
        left.yes = holes_join(parser, left.yes, right.yes);
        left.no = right.no;
    } else {
        left.no = holes_join(parser, left.no, right.no);
        left.yes = right.yes;
    }
    return left;
}

/* ---- Values ---- */

/* A column, or what stands for itself. */
struct operand {
    struct token token;
    enum nt_column column; /* NT_COLUMNS: none */
};

static bool is_keyword(struct nt_bytes word)
{
    static const char *const words[] = { "and", "or", "not", "in", "glob", "between", "is", "null" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (same_word(word, words[i]))
            return true;
    }
    return false;
}

static struct operand parse_operand(struct parser *parser)
{
    struct operand operand = { .token = parser->token, .column = NT_COLUMNS };
    struct nt_bytes word = operand.token.source;
    if (parser->error != 0)
        return operand;
    if (operand.token.kind == END || operand.token.kind == SYMBOL || (operand.token.kind == WORD && is_keyword(word))) {
        fail_unexpected(parser, "a column or a value");
        return operand;
    }
    for (unsigned i = 0; operand.token.kind == WORD && i < NT_COLUMNS; i++) {
        if (same_word(word, nt_column_name(i)))
            operand.column = i;
    }
    if (operand.token.kind == WORD && operand.column == NT_COLUMNS)
        fail(parser, operand.token.at, "there is no column %.*s (texts stand in single quotes)", shown(word),
             word.data);
    next(parser);
    return operand;
}

/* A value: a number or a text. */
static struct token parse_value(struct parser *parser)
{
    struct token token = parser->token;
    if (parser->error != 0)
        return token;
    if (token.kind != NUMBER && token.kind != TEXT)
        fail_unexpected(parser, "a number or a text in quotes");
    else
        next(parser);
    return token;
}

static bool find_kind(struct nt_bytes name, uint64_t *ret_number)
{
    static const struct {
        const char *name;
        uint8_t number;
    } kinds[] = {
#define NT_KIND(number, symbol, name, unit, policy, text) { name, number },
#include <nt/kinds.def>
#undef NT_KIND
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].name) == name.size && memcmp(kinds[i].name, name.data, name.size) == 0) {
            *ret_number = kinds[i].number;
            return true;
        }
    }
    return false;
}

/* A text as the number that it stands for in a column; false: it stands for none there. */
static bool number_of_text(struct parser *parser, enum nt_column column, const struct token *token,
                           uint64_t *ret_number)
{
    enum filter_type type = filter_type_of(column);
    if (type == FILTER_KIND)
        return find_kind(token->text, ret_number);
    if (type == FILTER_ID || type == FILTER_NAMED_ID)
        return token->text.size == ID_DIGITS && read_hex(token->text, ret_number) == 0;
    if (type != FILTER_TIME)
        return false;
    int error = nt_time_parse(token->text.data, token->text.size, parser->now, ret_number);
    if (error != 0)
        fail(parser, token->at,
             error == -ERANGE ? "there is no such time" : "a time is written 2024-05-01T10:00:00Z, or -5s");
    return error == 0;
}

static void fail_text(struct parser *parser, enum nt_column column, const struct token *token)
{
    const char *name = nt_column_name(column);
    switch (filter_type_of(column)) {
    case FILTER_ID:
        fail(parser, token->at, "%s is an id: 16 hex digits", name);
        break;
    case FILTER_NUMBER:
        fail(parser, token->at, "%s is a number, not a text", name);
        break;
    default:
        fail(parser, token->at, "what %s says as text has no order: =, <>, IN or GLOB", name);
        break;
    }
}

/* What a value is in a column where only numbers make sense. */
static uint64_t to_number(struct parser *parser, enum nt_column column, const struct token *token)
{
    uint64_t number = 0;
    bool name = filter_type_of(column) == FILTER_NAME;
    if (parser->error != 0)
        return 0;
    if (name || (token->kind == TEXT && !number_of_text(parser, column, token, &number)) ||
        (token->kind == TEXT && filter_type_of(column) == FILTER_KIND))
        fail_text(parser, column, token);
    return token->kind == NUMBER ? token->number : number;
}

/* ---- Sets ---- */

enum { FLAGS = 16 };

static unsigned find_flag(struct nt_bytes text)
{
    unsigned bit = 0;
    for (; bit < FLAGS; bit++) {
        const char *name = nt_event_flag_name(bit);
        if (name && strlen(name) == text.size && memcmp(name, text.data, text.size) == 0)
            break;
    }
    return bit;
}

/* Adds a value to the set that a step is of. */
static void set_add(struct parser *parser, struct filter_step *step, const struct token *token)
{
    enum filter_type type = filter_type_of(step->column);
    uint64_t number = token->number;
    if (parser->error != 0)
        return;
    if (token->kind == NUMBER && type == FILTER_NAME) {
        /* Names may look like numbers: process ids do. */
        char *name = memcpy(parser->filter->bytes + parser->bytes_used, token->source.data, token->source.size);
        parser->bytes_used += token->source.size;
        add_text(parser, (struct nt_bytes){ name, token->source.size });
        step->text_count++;
    } else if (token->kind == NUMBER || number_of_text(parser, step->column, token, &number)) {
        add_number(parser, number);
        step->number_count++;
    } else if (type == FILTER_FLAGS) {
        unsigned bit = find_flag(token->text);
        if (bit == FLAGS)
            fail(parser, token->at, "there is no flag %.*s", shown(token->source), token->source.data);
        step->number |= UINT64_C(1) << bit;
    } else if (type == FILTER_NAME || type == FILTER_NAMED_ID || type == FILTER_KIND) {
        add_text(parser, token->text);
        step->text_count++;
    } else {
        fail_text(parser, step->column, token);
    }
}

static int compare_numbers(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static int compare_texts(const void *left, const void *right)
{
    return filter_compare_texts(*(const struct nt_bytes *)left, *(const struct nt_bytes *)right);
}

static struct filter_step set_begin(const struct parser *parser, enum nt_column column, bool negate)
{
    return (struct filter_step){ .operation = FILTER_SET,
                                 .column = (uint8_t)column,
                                 .other = NT_COLUMNS,
                                 .negate = negate,
                                 .numbers = parser->filter->number_count,
                                 .texts = parser->filter->text_count };
}

static struct part set_end(struct parser *parser, const struct filter_step *step)
{
    const struct nt_filter *filter = parser->filter;
    if (parser->error != 0)
        return (struct part){ 0 };
    if (step->number_count > 1)
        qsort(filter->numbers + step->numbers, step->number_count, sizeof *filter->numbers, compare_numbers);
    if (step->text_count > 1)
        qsort(filter->texts + step->texts, step->text_count, sizeof *filter->texts, compare_texts);
    return add_step(parser, step);
}

static struct part parse_in(struct parser *parser, enum nt_column column, bool negate)
{
    struct filter_step step = set_begin(parser, column, negate);
    expect_symbol(parser, "(");
    do {
        struct token value = parse_value(parser);
        set_add(parser, &step, &value);
    } while (take_symbol(parser, ","));
    expect_symbol(parser, ")");
    return set_end(parser, &step);
}

/* ---- Comparisons ---- */

static struct part compare_number(struct parser *parser, enum nt_column column, enum filter_operation operation,
                                  const struct token *value, bool negate)
{
    const struct filter_step step = { .operation = (uint8_t)operation,
                                      .column = (uint8_t)column,
                                      .other = NT_COLUMNS,
                                      .negate = negate,
                                      .number = to_number(parser, column, value) };
    return add_step(parser, &step);
}

static struct part compare_equal(struct parser *parser, enum nt_column column, const struct token *value, bool negate)
{
    struct filter_step step = set_begin(parser, column, negate);
    set_add(parser, &step, value);
    if (step.number_count == 1) { /* the usual case, at less cost */
        step.operation = FILTER_EQUAL;
        step.number = parser->error == 0 ? parser->filter->numbers[step.numbers] : 0;
    }
    return set_end(parser, &step);
}

static bool is_id(enum nt_column column)
{
    return filter_type_of(column) == FILTER_ID || filter_type_of(column) == FILTER_NAMED_ID;
}

static struct part compare_columns(struct parser *parser, const struct operand *left, enum filter_operation operation,
                                   const struct operand *right, bool negate)
{
    const struct operand *operands[] = { left, right };
    for (size_t i = 0; i < 2 && parser->error == 0; i++) {
        if (filter_type_of(operands[i]->column) == FILTER_NAME)
            fail(parser, operands[i]->token.at, "%s is compared with texts, not with another column",
                 nt_column_name(operands[i]->column));
    }
    if (is_id(left->column) != is_id(right->column))
        fail(parser, right->token.at, "an id and a number are not compared");
    const struct filter_step step = { .operation = (uint8_t)operation,
                                      .column = (uint8_t)left->column,
                                      .other = (uint8_t)right->column,
                                      .negate = negate };
    return add_step(parser, &step);
}

/* What stands between two operands. a > b is "not a <= b", and so on: of what is not NULL. */
static const struct relation {
    const char *symbol;
    uint8_t operation, swapped; /* with the operands the other way round */
    bool negate, swapped_negate;
} relations[] = {
    { "=", FILTER_EQUAL, FILTER_EQUAL, false, false },    { "==", FILTER_EQUAL, FILTER_EQUAL, false, false },
    { "<>", FILTER_EQUAL, FILTER_EQUAL, true, true },     { "!=", FILTER_EQUAL, FILTER_EQUAL, true, true },
    { "<", FILTER_LESS, FILTER_LESS_EQUAL, false, true }, { "<=", FILTER_LESS_EQUAL, FILTER_LESS, false, true },
    { ">", FILTER_LESS_EQUAL, FILTER_LESS, true, false }, { ">=", FILTER_LESS, FILTER_LESS_EQUAL, true, false },
};

static struct part parse_relation(struct parser *parser, const struct operand *left, bool negate)
{
    const struct relation *relation = relations;
    const struct relation *end = relations + sizeof relations / sizeof *relations;
    while (relation < end && !at_symbol(parser, relation->symbol))
        relation++;
    if (relation == end) {
        fail_unexpected(parser, "a comparison");
        return (struct part){ 0 };
    }
    size_t at = parser->token.at;
    next(parser);
    struct operand right = parse_operand(parser);
    if (parser->error != 0)
        return (struct part){ 0 };
    enum filter_operation operation = relation->operation;
    bool swap = left->column == NT_COLUMNS;
    if (left->column != NT_COLUMNS && right.column != NT_COLUMNS)
        return compare_columns(parser, left, operation, &right, negate != relation->negate);
    if (swap && right.column == NT_COLUMNS) {
        fail(parser, at, "neither side is a column");
        return (struct part){ 0 };
    }
    enum nt_column column = swap ? right.column : left->column;
    const struct token *value = swap ? &left->token : &right.token;
    if (operation == FILTER_EQUAL)
        return compare_equal(parser, column, value, negate != relation->negate);
    return compare_number(parser, column, swap ? relation->swapped : operation, value,
                          negate != (swap ? relation->swapped_negate : relation->negate));
}

/* low <= column AND column <= high */
static struct part parse_between(struct parser *parser, enum nt_column column, bool negate)
{
    struct token low = parse_value(parser);
    if (parser->error == 0 && !take_word(parser, "and"))
        fail_unexpected(parser, "AND");
    struct token high = parse_value(parser);
    struct part left = compare_number(parser, column, FILTER_LESS, &low, !negate);
    struct part right = compare_number(parser, column, FILTER_LESS_EQUAL, &high, negate);
    return combine(parser, left, right, negate);
}

static struct part parse_glob(struct parser *parser, enum nt_column column, bool negate)
{
    struct token pattern = parse_value(parser);
    struct filter_step step = set_begin(parser, column, negate);
    enum filter_type type = filter_type_of(column);
    if (parser->error != 0)
        return (struct part){ 0 };
    const char *wrong = pattern.kind == TEXT ? nt_glob_check(pattern.text) : "a pattern is a text in quotes";
    if (wrong)
        fail(parser, pattern.at, "%s", wrong);
    else if (type == FILTER_NUMBER || type == FILTER_TIME || type == FILTER_FLAGS)
        fail(parser, pattern.at, "%s has no text that a pattern could match", nt_column_name(column));
    step.operation = FILTER_GLOB;
    step.text_count = 1;
    add_text(parser, pattern.text);
    return add_step(parser, &step);
}

static struct part parse_is(struct parser *parser, enum nt_column column, bool negate)
{
    negate = negate != take_word(parser, "not");
    if (parser->error == 0 && !take_word(parser, "null"))
        fail_unexpected(parser, "NULL");
    const struct filter_step step = {
        .operation = FILTER_NULL, .column = (uint8_t)column, .other = NT_COLUMNS, .negate = negate
    };
    return add_step(parser, &step);
}

static struct part parse_comparison(struct parser *parser, bool negate)
{
    struct operand left = parse_operand(parser);
    if (parser->error != 0)
        return (struct part){ 0 };
    bool worded = at_word(parser, "not") || at_word(parser, "in") || at_word(parser, "glob") ||
                  at_word(parser, "between") || at_word(parser, "is");
    if (!worded)
        return parse_relation(parser, &left, negate);
    if (left.column == NT_COLUMNS) {
        fail(parser, left.token.at, "a column is expected, not %.*s", shown(left.token.source), left.token.source.data);
        return (struct part){ 0 };
    }
    if (take_word(parser, "is"))
        return parse_is(parser, left.column, negate);
    negate = negate != take_word(parser, "not");
    if (take_word(parser, "in"))
        return parse_in(parser, left.column, negate);
    if (take_word(parser, "glob"))
        return parse_glob(parser, left.column, negate);
    if (take_word(parser, "between"))
        return parse_between(parser, left.column, negate);
    fail_unexpected(parser, "IN, GLOB or BETWEEN");
    return (struct part){ 0 };
}

/* ---- AND, OR, NOT ---- */

static struct part parse_either(struct parser *parser, bool negate);

static struct part parse_single(struct parser *parser, bool negate)
{
    while (take_word(parser, "not"))
        negate = !negate;
    if (!at_symbol(parser, "("))
        return parse_comparison(parser, negate);
    if (parser->depth == NT_FILTER_DEPTH)
        fail(parser, parser->token.at, "more than %u parentheses inside each other", NT_FILTER_DEPTH);
    parser->depth++;
    next(parser);
    struct part part = parse_either(parser, negate);
    expect_symbol(parser, ")");
    parser->depth--;
    return part;
}

static struct part parse_both(struct parser *parser, bool negate)
{
    struct part part = parse_single(parser, negate);
    while (take_word(parser, "and"))
        part = combine(parser, part, parse_single(parser, negate), negate);
    return part;
}

static struct part parse_either(struct parser *parser, bool negate)
{
    if (parser->error != 0)
        return (struct part){ 0 };
    struct part part = parse_both(parser, negate);
    while (take_word(parser, "or"))
        part = combine(parser, part, parse_both(parser, negate), !negate);
    return part;
}

static int compile(struct parser *parser)
{
    next(parser);
    struct part part = parse_either(parser, false);
    if (parser->error == 0 && parser->token.kind != END)
        fail_unexpected(parser, "AND, OR or the end");
    if (parser->error != 0)
        return parser->error;
    holes_fill(parser, part.yes, FILTER_ACCEPT);
    holes_fill(parser, part.no, FILTER_REJECT);
    parser->filter->start = part.start;
    return 0;
}

int nt_filter_new(const char *text, size_t size, uint64_t now, struct nt_filter **ret_filter,
                  struct nt_filter_error *ret_error)
{
    if (size > NT_FILTER_BYTES) {
        ret_error->column = NT_FILTER_BYTES + 1;
        (void)snprintf(ret_error->text, sizeof ret_error->text, "it is longer than %u bytes", NT_FILTER_BYTES);
        return -NT_ESYNTAX;
    }
    struct nt_filter *filter = calloc(1, sizeof *filter);
    if (!filter)
        return -ENOMEM;
    /* Numbers are kept as they stand where they are names; texts are never longer than where they come from. */
    filter->bytes = malloc(2 * size + 1);
    struct parser parser = { .filter = filter, .text = text, .size = size, .now = now, .ret_error = ret_error };
    int error = filter->bytes ? compile(&parser) : -ENOMEM;
    if (error != 0) {
        nt_filter_free(filter);
        return error;
    }
    *ret_filter = filter;
    return 0;
}
