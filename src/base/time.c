/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 3339 and lengths of time, see time.h. Days are counted as in the proleptic Gregorian calendar. */
#include "base/time.h"

#include <stdbool.h>
#include <string.h>

#include <nt/error.h>

#include "base/parse.h"

#define SECOND UINT64_C(1000000000)
#define DAY_SECONDS 86400
#define NANO_DIGITS 9u

/* ---- The calendar ---- */

/* Days from the first of March of the year 0 to that day; March is month 0, so that a leap day ends a year. */
static int64_t days_from_march(int64_t year, int64_t month, int64_t day)
{
    return year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
}

static int64_t days_since_1970(int64_t year, int64_t month, int64_t day)
{
    bool early = month <= 2; /* January and February end the year before */
    return days_from_march(year - early, early ? month + 9 : month - 3, day) - days_from_march(1969, 10, 1);
}

static int64_t month_days(int64_t year, int64_t month)
{
    static const int8_t days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* ---- Reading ---- */

struct reader {
    const char *data;
    size_t size, at;
    bool wrong;
};

static bool reader_take(struct reader *reader, const char *accepted)
{
    if (reader->at == reader->size || !strchr(accepted, reader->data[reader->at]) || !reader->data[reader->at])
        return false;
    reader->at++;
    return true;
}

static void reader_expect(struct reader *reader, const char *accepted)
{
    reader->wrong = reader->wrong || !reader_take(reader, accepted);
}

static bool reader_digit(struct reader *reader, unsigned *ret_digit)
{
    if (reader->at == reader->size || reader->data[reader->at] < '0' || reader->data[reader->at] > '9')
        return false;
    *ret_digit = (unsigned)(reader->data[reader->at++] - '0');
    return true;
}

/* Exactly that many digits. */
static int64_t reader_number(struct reader *reader, unsigned digits)
{
    unsigned number = 0, digit = 0;
    for (unsigned i = 0; i < digits; i++) {
        reader->wrong = reader->wrong || !reader_digit(reader, &digit);
        number = number * 10 + digit;
    }
    return number;
}

/* A fraction, as nanoseconds; none: 0. */
static int64_t reader_fraction(struct reader *reader)
{
    unsigned digits = 0, digit;
    int64_t number = 0;
    if (!reader_take(reader, "."))
        return 0;
    for (; reader_digit(reader, &digit); digits++) {
        if (digits < NANO_DIGITS)
            number = number * 10 + digit;
    }
    reader->wrong = reader->wrong || digits == 0;
    for (; digits < NANO_DIGITS; digits++)
        number *= 10;
    return number;
}

/* What the clock there is ahead of UTC, in seconds. */
static int64_t reader_offset(struct reader *reader, bool *ret_range)
{
    if (reader_take(reader, "Zz"))
        return 0;
    bool west = reader_take(reader, "-");
    if (!west)
        reader_expect(reader, "+");
    int64_t hours = reader_number(reader, 2);
    reader_expect(reader, ":");
    int64_t minutes = reader_number(reader, 2);
    *ret_range = *ret_range && hours <= 23 && minutes <= 59;
    return (west ? -1 : 1) * (hours * 3600 + minutes * 60);
}

static int parse_point(const char *data, size_t size, uint64_t *ret_time)
{
    struct reader reader = { .data = data, .size = size };
    int64_t hour = 0, minute = 0, second = 0, fraction = 0, offset = 0;
    int64_t year = reader_number(&reader, 4);
    reader_expect(&reader, "-");
    int64_t month = reader_number(&reader, 2);
    reader_expect(&reader, "-");
    int64_t day = reader_number(&reader, 2);
    bool range = month >= 1 && month <= 12 && day >= 1 && day <= month_days(year, month);
    if (!reader.wrong && reader.at < size) {
        reader_expect(&reader, "Tt ");
        hour = reader_number(&reader, 2);
        reader_expect(&reader, ":");
        minute = reader_number(&reader, 2);
        reader_expect(&reader, ":");
        second = reader_number(&reader, 2);
        fraction = reader_fraction(&reader);
        offset = reader_offset(&reader, &range);
        range = range && hour <= 23 && minute <= 59 && second <= 60; /* 60: a leap second */
    }
    if (reader.wrong || reader.at < size)
        return -NT_ESYNTAX;
    __int128 time = (__int128)(days_since_1970(year, range ? month : 1, day) * DAY_SECONDS + hour * 3600 + minute * 60 +
                               second - offset) *
                        (int64_t)SECOND +
                    fraction;
    if (!range || time < 0 || time > UINT64_MAX)
        return -ERANGE;
    *ret_time = (uint64_t)time;
    return 0;
}

static uint64_t unit_of(const char *data, size_t size)
{
    static const struct {
        char name[3];
        uint64_t length;
    } units[] = {
        { "ns", 1 },
        { "us", 1000 },
        { "ms", 1000000 },
        { "s", SECOND },
        { "m", 60 * SECOND },
        { "h", 3600 * SECOND },
        { "d", DAY_SECONDS * SECOND },
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].name) == size && memcmp(units[i].name, data, size) == 0)
            return units[i].length;
    }
    return 0;
}

static int parse_ago(const char *data, size_t size, uint64_t now, uint64_t *ret_time)
{
    size_t digits = 0;
    uint64_t number, length;
    while (digits < size && data[digits] >= '0' && data[digits] <= '9')
        digits++;
    uint64_t unit = unit_of(data + digits, size - digits);
    int error = nt_parse_u64(data, digits, &number);
    if (unit == 0 || error == -NT_ESYNTAX)
        return -NT_ESYNTAX;
    if (error != 0 || __builtin_mul_overflow(number, unit, &length) || length > now)
        return -ERANGE;
    *ret_time = now - length;
    return 0;
}

int nt_time_parse(const char *data, size_t size, uint64_t now, uint64_t *ret_time)
{
    if (size > 0 && data[0] == '-')
        return parse_ago(data + 1, size - 1, now, ret_time);
    return parse_point(data, size, ret_time);
}

/* ---- Writing ---- */

/* Year, month and day of a day since 1970. */
static void date_of(uint64_t days, unsigned ret_date[3])
{
    uint64_t since = days + (uint64_t)days_from_march(1969, 10, 1); /* from the first of March of the year 0 */
    uint64_t year = since / 366;                                    /* that one, or a little later */
    while ((uint64_t)days_from_march((int64_t)year + 1, 0, 1) <= since)
        year++;
    uint64_t day = since - (uint64_t)days_from_march((int64_t)year, 0, 1);
    uint64_t month = (5 * day + 2) / 153;
    ret_date[0] = (unsigned)(year + (month >= 10));
    ret_date[1] = (unsigned)(month < 10 ? month + 3 : month - 9);
    ret_date[2] = (unsigned)(day - (153 * month + 2) / 5 + 1);
}

static char *put_digits(char *to, uint64_t number, unsigned digits)
{
    for (unsigned i = digits; i > 0; i--, number /= 10)
        to[i - 1] = (char)('0' + number % 10);
    return to + digits;
}

void nt_time_append(struct nt_buffer *buffer, uint64_t time)
{
    static const unsigned digits[3] = { 4, 2, 2 };
    char text[30], *to = text;
    unsigned date[3];
    uint64_t seconds = time / SECOND;
    date_of(seconds / DAY_SECONDS, date);
    for (unsigned i = 0; i < 3; i++) {
        to = put_digits(to, date[i], digits[i]);
        *to++ = "--T"[i];
    }
    to = put_digits(to, seconds / 3600 % 24, 2);
    *to++ = ':';
    to = put_digits(to, seconds / 60 % 60, 2);
    *to++ = ':';
    to = put_digits(to, seconds % 60, 2);
    *to++ = '.';
    to = put_digits(to, time % SECOND, NANO_DIGITS);
    *to++ = 'Z';
    nt_buffer_append(buffer, text, sizeof text);
}
