/* SPDX-License-Identifier: BSD-3-Clause */
/* A tracepoint of LTTng-UST with five integers, what our record tells of an event. Read several times by
   <lttng/tracepoint-event.h>, which is why its guard looks as it does. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ntscope_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_tracepoint.h"

#if !defined(NT_BENCH_LTTNG_TRACEPOINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define NT_BENCH_LTTNG_TRACEPOINT_H

#include <stdint.h>

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(ntscope_bench, message,
    LTTNG_UST_TP_ARGS(uint64_t, object, uint32_t, kind, uint64_t, value, uint64_t, count, uint64_t, total),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, object, object)
        lttng_ust_field_integer(uint32_t, kind, kind)
        lttng_ust_field_integer(uint64_t, value, value)
        lttng_ust_field_integer(uint64_t, count, count)
        lttng_ust_field_integer(uint64_t, total, total)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
