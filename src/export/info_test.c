/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a file, as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/export.h"
#include "model/feed_test.h"

static struct nt_model model;

static int begin(void **state)
{
    (void)state;
    struct nt_source_program program = feed_program(0, "n", "p", 7);
    struct nt_source_object root = feed_object(0, 0, 0, "p"), gone = feed_object(0, 1, 0, "gone");
    program.dropped = 2;
    program.backed = 512;
    gone.closed = true;
    model = (struct nt_model){ 0 };
    nt_model_source(&model);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    assert_int_equal(nt_model_add_object(&model, &root), 0);
    assert_int_equal(nt_model_add_object(&model, &gone), 0);
    return nt_model_link(&model);
}

static int end(void **state)
{
    (void)state;
    nt_model_fini(&model);
    return 0;
}

static struct nt_export_info recording(void)
{
    return (struct nt_export_info){
        .path = "a\x1b.ntrec",
        .model = &model,
        .recording = true,
        .ended = true,
        .version = 1,
        .id = 0x12,
        .created = 1000000000,
        .bytes = 300,
        .blocks = 3,
        .event_blocks = 1,
        .event_bytes = 70,
        .table_blocks = 2,
        .table_bytes = 60,
        .events = 10,
        .first = 2000000000,
        .last = 3500000000,
    };
}

static void assert_shown(const struct nt_export_format *format, const struct nt_export_info *info, const char *expected)
{
    struct nt_buffer out = { 0 };
    format->info(info, &out);
    nt_buffer_byte(&out, '\0');
    assert_int_equal(out.error, 0);
    assert_string_equal(out.data, expected);
    nt_buffer_fini(&out);
}

static void whole_recording(void **state)
{
    (void)state;
    const struct nt_export_info info = recording();
    assert_shown(&nt_export_text, &info,
                 "a\\x1b.ntrec\n"
                 "  format     recording, version 1, id 0000000000000012\n"
                 "  begun      1970-01-01T00:00:01.000000000Z, ended by its recorder\n"
                 "  span       1970-01-01T00:00:02.000000000Z to 1970-01-01T00:00:03.500000000Z, 1.5s\n"
                 "  programs   1: n/p.7 (running)\n"
                 "  objects    2, 1 of them closed\n"
                 "  sessions   0\n"
                 "  events     10\n"
                 "  loss       0 slots overwritten or never finished, 2 events dropped\n"
                 "  exact      totals are exact; no event was left out on purpose\n"
                 "  blocks     3, 1 of events, 2 of tables\n"
                 "  bytes      300, of events 70, 7.00 an event\n"
                 "  checks     the checksums of all blocks hold\n");
}

static void damaged_recording(void **state)
{
    (void)state;
    struct nt_export_info info = recording();
    info.ended = false;
    info.thinned = true;
    info.id = info.created = 0;
    info.events = 0;
    info.first = info.last = 0;
    info.lost = 4;
    info.not_logged = 5;
    info.overwritten = 1;
    info.damages = "damaged at offset 8\nends at offset 9\n";
    info.damages_size = strlen(info.damages);
    assert_shown(&nt_export_text, &info,
                 "a\\x1b.ntrec\n"
                 "  format     recording, version 1\n"
                 "  begun      not known: the header is damaged, has no end: it was cut, or its recorder stopped\n"
                 "  span       no events\n"
                 "  programs   1: n/p.7 (running)\n"
                 "  objects    2, 1 of them closed\n"
                 "  sessions   0\n"
                 "  events     0, 4 left out or lost between them, 5 not logged, as masks said\n"
                 "  loss       1 slot overwritten or never finished, 2 events dropped\n"
                 "  exact      totals are exact; events were left out on purpose\n"
                 "  blocks     3, 1 of events, 2 of tables\n"
                 "  bytes      300\n"
                 "  checks     2 damages\n"
                 "             damaged at offset 8\n"
                 "             ends at offset 9\n");
}

static void as_json(void **state)
{
    (void)state;
    struct nt_export_info info = recording();
    struct nt_buffer out = { 0 };
    info.damages = "damaged at offset 8\n";
    info.damages_size = strlen(info.damages);
    nt_export_json.info(&info, &out);
    nt_buffer_byte(&out, '\0');
    const char expected[] =
        "{\"file\":\"a\\u001b.ntrec\",\"format\":\"recording\",\"version\":1,\"bytes\":300,"
        "\"id\":\"0000000000000012\",\"created\":1000000000,\"ended\":true,\"blocks\":3,\"event_blocks\":1,"
        "\"event_bytes\":70,\"table_blocks\":2,\"table_bytes\":60,\"first\":2000000000,\"last\":3500000000,"
        "\"events\":10,\"lost\":0,\"not_logged\":0,\"overwritten\":0,\"dropped\":2,\"refused_objects\":0,"
        "\"refused_tallies\":0,\"thinned\":false,\"exact\":true,\"objects\":2,\"closed\":1,\"sessions\":0,"
        "\"damages\":[\"damaged at offset 8\"],\"processes\":[{\"node\":\"n\",";
    assert_memory_equal(out.data, expected, sizeof expected - 1);
    nt_buffer_fini(&out);
}

static void log_file(void **state)
{
    (void)state;
    const struct nt_export_info info = { .path = "a.ntlog",
                                         .model = &model,
                                         .version = 1,
                                         .bytes = 4096,
                                         .events = 1,
                                         .first = 1000000000,
                                         .last = 1000000000 };
    struct nt_buffer out = { 0 };
    nt_export_text.info(&info, &out);
    nt_buffer_byte(&out, '\0');
    assert_non_null(strstr(out.data, "  format     log, version 1\n  span "));
    assert_non_null(strstr(
        out.data,
        "  bytes      4096, 512 of them in use\n  checks     a log has no checksums; all of it could be read\n"));
    assert_null(strstr(out.data, "block"));
    nt_buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_recording, begin, end),
        cmocka_unit_test_setup_teardown(damaged_recording, begin, end),
        cmocka_unit_test_setup_teardown(as_json, begin, end),
        cmocka_unit_test_setup_teardown(log_file, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
