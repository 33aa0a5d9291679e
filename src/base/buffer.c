/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that grow, see buffer.h. */
#include "base/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nt_buffer_fini(struct nt_buffer *buffer)
{
    if (!buffer)
        return;
    free(buffer->data);
    *buffer = (struct nt_buffer){ 0 };
}

void nt_buffer_clear(struct nt_buffer *buffer)
{
    buffer->size = 0;
    buffer->error = 0;
}

int nt_buffer_fail(struct nt_buffer *buffer, int error)
{
    if (buffer->error == 0 && error != 0) {
        free(buffer->data);
        buffer->data = NULL;
        buffer->size = buffer->room = 0;
        buffer->error = error;
    }
    return buffer->error;
}

int nt_buffer_flush(struct nt_buffer *buffer)
{
    if (!buffer->drain || buffer->size == 0 || buffer->error != 0)
        return buffer->error;
    int error = buffer->drain(buffer->arg, buffer->data, buffer->size);
    buffer->size = 0;
    return nt_buffer_fail(buffer, error);
}

int nt_buffer_reserve(struct nt_buffer *buffer, size_t size)
{
    size_t need, room = buffer->room > 0 ? buffer->room : 256;
    if (buffer->error != 0)
        return buffer->error;
    if (buffer->drain && nt_buffer_flush(buffer) != 0)
        return buffer->error;
    if (buffer->drain && room < NT_BUFFER_DRAIN)
        room = NT_BUFFER_DRAIN;
    if (__builtin_add_overflow(buffer->size, size, &need) || need > SIZE_MAX / 4)
        return nt_buffer_fail(buffer, -ENOMEM);
    while (room < need)
        room *= 2;
    if (room == buffer->room)
        return 0;
    char *data = realloc(buffer->data, room);
    if (!data)
        return nt_buffer_fail(buffer, -ENOMEM);
    buffer->data = data;
    buffer->room = room;
    return 0;
}

void nt_buffer_repeat(struct nt_buffer *buffer, char byte, size_t times)
{
    if (times == 0 || (times > buffer->room - buffer->size && nt_buffer_reserve(buffer, times) != 0))
        return;
    memset(buffer->data + buffer->size, byte, times);
    buffer->size += times;
}

unsigned nt_buffer_digits(uint64_t number)
{
    static const uint64_t powers[] = {
        1,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        UINT64_C(10000000000000000000),
    };
    if (number == 0)
        return 1;
    /* 1233 / 4096 is a little more than log10(2). */
    unsigned guess = (64u - (unsigned)__builtin_clzll(number)) * 1233 >> 12;
    return guess + (number >= powers[guess]);
}

void nt_buffer_u64(struct nt_buffer *buffer, uint64_t number)
{
    static const char pairs[] = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940"
                                "4142434445464748495051525354555657585960616263646566676869707172737475767778798081"
                                "828384858687888990919293949596979899";
    unsigned size = nt_buffer_digits(number);
    if (size > buffer->room - buffer->size && nt_buffer_reserve(buffer, size) != 0)
        return;
    char *end = buffer->data + buffer->size + size;
    buffer->size += size;
    while (number >= 100) {
        end -= 2;
        memcpy(end, pairs + 2 * (number % 100), 2);
        number /= 100;
    }
    if (number >= 10)
        memcpy(end - 2, pairs + 2 * number, 2);
    else
        end[-1] = (char)('0' + number);
}

void nt_buffer_ratio(struct nt_buffer *buffer, uint64_t total, uint64_t count, unsigned decimals, bool trim)
{
    char digits[6];
    uint64_t scale = 1;
    assert(count > 0 && decimals <= sizeof digits);
    if (trim && total % count == 0) {
        nt_buffer_u64(buffer, total / count);
        return;
    }
    for (unsigned i = 0; i < decimals; i++)
        scale *= 10;
    unsigned __int128 scaled = ((unsigned __int128)total * scale + count / 2) / count;
    uint64_t fraction = (uint64_t)(scaled % scale);
    for (unsigned i = decimals; i > 0; i--) {
        digits[i - 1] = (char)('0' + fraction % 10);
        fraction /= 10;
    }
    while (trim && decimals > 0 && digits[decimals - 1] == '0')
        decimals--;
    nt_buffer_u64(buffer, (uint64_t)(scaled / scale));
    if (decimals > 0) {
        nt_buffer_byte(buffer, '.');
        nt_buffer_append(buffer, digits, decimals);
    }
}

void nt_buffer_hex64(struct nt_buffer *buffer, uint64_t number)
{
    char digits[16];
    for (size_t i = 0; i < sizeof digits; i++)
        digits[i] = "0123456789abcdef"[number >> (60 - 4 * i) & 15];
    nt_buffer_append(buffer, digits, sizeof digits);
}

void nt_buffer_print(struct nt_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    char small[256];
    va_start(arguments, format);
    int size = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (size < 0) {
        (void)nt_buffer_fail(buffer, -EINVAL);
        return;
    }
    if ((size_t)size < sizeof small) {
        nt_buffer_append(buffer, small, (size_t)size);
        return;
    }
    if ((size_t)size >= buffer->room - buffer->size && nt_buffer_reserve(buffer, (size_t)size + 1) != 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)size;
}
