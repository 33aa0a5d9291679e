/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths from the command line, on a small model whose names are hostile too: whatever is picked must be found
   again by the path that is printed for it. */
#include <stdlib.h>
#include <string.h>

#include <nt/log.h>

#include "model/feed_test.h"
#include "model/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "", "tcp", "inbox", "orders", "a/b", "*", "\\", "**", "or\x1b[31mders", "\xff\xfe"
};

static void model_fill(struct nt_model *model, const uint8_t *data, size_t size)
{
    nt_model_source(model);
    for (uint32_t program = 0; program < 2; program++) {
        struct nt_source_program told = feed_program(program, program ? "node" : "no/de", "worker-1", 100 + program);
        nt_model_add_program(model, &told);
        for (uint32_t slot = 0; slot < sizeof(names) / sizeof(names[0]); slot++) {
            struct nt_source_object object = feed_object(program, slot, slot / 2, names[slot]);
            struct nt_source_tally tallies[] = { { NT_WRITE, slot, slot * 3, 2, 5 }, { NT_READ, 1, 2, 3, 4 } };
            object.tallies = tallies;
            object.tally_count = 2;
            if (slot == 3 && size) /* a name from the input as well */
                object.name = (struct nt_bytes){ (const char *)data, size < 255 ? size : 255 };
            nt_model_add_object(model, &object);
        }
    }
    nt_model_link(model);
}

static void picks_are_found_again(const struct nt_model *model, const struct nt_model_selection *selection)
{
    for (size_t i = 0; i < selection->number_count; i++) {
        struct nt_buffer text = { 0 };
        struct nt_model_path *path = NULL;
        struct nt_model_selection again;
        const char *reason;
        nt_model_pick_append(&text, model, &selection->numbers[i]);
        if (nt_model_path_new(text.data, text.size, &path, &reason) != 0)
            abort();
        if (nt_model_selection_init(&again, model) != 0 || nt_model_select(&again, path, true) < 1)
            abort();
        nt_model_selection_fini(&again);
        nt_model_path_free(path);
        nt_buffer_fini(&text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nt_model_path *path = NULL;
    const char *reason = NULL;
    if (nt_model_path_new((const char *)data, size, &path, &reason) != 0)
        return 0;
    struct nt_model model = { 0 };
    struct nt_model_selection selection;
    model_fill(&model, data, size);
    if (nt_model_selection_init(&selection, &model) == 0) {
        if (nt_model_select(&selection, path, size & 1) > 0)
            picks_are_found_again(&model, &selection);
        nt_model_selection_close(&selection);
        nt_model_selection_fini(&selection);
    }
    nt_model_fini(&model);
    nt_model_path_free(path);
    return 0;
}
