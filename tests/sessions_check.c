/* SPDX-License-Identifier: BSD-3-Clause */
/* sessions_check LOGS: prints what the logs in that directory, of programs that rest or are dead, hold of sessions, as
   JSON. Finds it by docs/format.md alone, apart from the library and from the reader, and slowly: what both are held
   against. Of the ids on standard input, one a line, it says which ones each log may have too little of, as some was
   given up, and too much, as they got that of others.
   Exit 0, 1: a file cannot be read, 2: usage. */
#include <dirent.h>
#include <inttypes.h>

#include "log/session_test.h"
#include "truth.h"

enum { ROOM_LEFT = 65536 }; /* with less than that a log may not remember all that it could */

static const char *const comma_or[] = { "", "," };

/* ---- the file ---- */

static bool view_map(const char *path, struct view *ret_view)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *map = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 2 * (off_t)NT_LAYOUT_PAGE)
        map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED || memcmp(map, NT_LAYOUT_MAGIC, 8) != 0) {
        fprintf(stderr, "sessions_check: %s: no log\n", path);
        return false;
    }
    *ret_view = (struct view){ map, (size_t)status.st_size, map, (const void *)((char *)map + NT_LAYOUT_PAGE) };
    return true;
}

static uint64_t region_entries(const struct view *view, uint32_t id)
{
    const struct nt_layout_region *region = view_region(view, id);
    return region->size / region->entry_size;
}

/* ---- sessions that the log knows ---- */

static const struct nt_layout_session *find_session(const struct view *view, uint64_t id)
{
    uint64_t mask = (UINT64_C(1) << NT_LAYOUT_SESSION_BITS) - 1, room = region_entries(view, NT_REGION_SESSIONS);
    uint64_t number = (id - view->header->session_first) & mask;
    if (number >= view->live->sessions) /* an old one is known until another is put in its place */
        return NULL;
    const struct nt_layout_session *entry = view_at(view, NT_REGION_SESSIONS, number % room);
    return entry->id == id ? entry : NULL;
}

static void print_made(const struct view *view)
{
    uint64_t made = view->live->sessions, room = region_entries(view, NT_REGION_SESSIONS);
    bool more = false;
    printf(",\"made\":%" PRIu64 ",\"room\":%" PRIu64 ",\"sessions\":[", made, room);
    for (uint64_t place = 0; place < made && place < room; place++) {
        const struct nt_layout_session *entry = view_at(view, NT_REGION_SESSIONS, place);
        if (!entry->id || find_session(view, entry->id) != entry)
            continue;
        printf("%s\n  {\"id\":\"%016" PRIx64 "\",\"parent\":\"%016" PRIx64 "\",\"name\":\"%.*s\"", comma_or[more],
               entry->id, entry->parent, (int)entry->name_size, entry->name);
        printf(",\"stands\":%d,\"ended\":%d}", (entry->flags & NT_SESSION_STANDS) != 0, entry->ended != 0);
        more = true;
    }
    printf("]");
}

static uint64_t *asked;
static size_t asked_count;

static void read_asked(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        uint64_t *grown = realloc(asked, (asked_count + 1) * sizeof *asked);
        if (!grown)
            abort();
        asked = grown;
        asked[asked_count++] = strtoull(line, NULL, 16);
    }
}

static void print_flagged(const struct view *view, uint8_t flag, const char *name)
{
    bool more = false;
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < asked_count; i++) {
        if (!session_has(view, asked[i], flag))
            continue;
        printf("%s\"%016" PRIx64 "\"", comma_or[more], asked[i]);
        more = true;
    }
    printf("]");
}

/* ---- sums ---- */

static void print_sums(const struct session_sums *sums)
{
    bool more = false;
    printf(",\"sums\":[");
    for (size_t i = 0; i < sums->room; i++) {
        const struct session_sum *sum = &sums->sums[i];
        if (!sum->kind || (!sum->count && !sum->total))
            continue;
        printf("%s\n  [\"%016" PRIx64 "\",\"%s\",%" PRIu64 ",%" PRIu64 ",%d]", comma_or[more], sum->session,
               truth_kind_name(sum->kind), sum->count, sum->total, sum->older);
        more = true;
    }
    printf("]");
}

/* ---- what the end of the program interrupted ---- */

struct met {
    unsigned waiting; /* moves that were not folded yet */
    unsigned holes;   /* moves that were begun and not written */
    unsigned busy;    /* cells in the middle of a change */
    unsigned half;    /* tallies whose move is written and that are not marked as settled */
};

static void meet_cells(const struct view *view, const struct nt_layout_settler *settler, struct met *met)
{
    for (uint32_t group = 0; group < settler->groups; group++) {
        uint32_t extent = group ? 32u - (uint32_t)__builtin_clz(group) : 0;
        uint64_t page = settler->extent[extent] + (uint64_t)group - (group ? UINT64_C(1) << (extent - 1) : 0);
        const struct nt_layout_cell *cells = (const void *)settlement_page(view, page);
        for (uint32_t i = 0; i < NT_LAYOUT_CELLS; i++)
            met->busy += (cells[i].state >> 8 & NT_CELL_BUSY) != 0;
    }
}

static void meet_moves(const struct view *view, const struct nt_layout_settler *settler, struct met *met)
{
    unsigned hole = 0;
    for (uint64_t number = settler->folded; number < settler->folded + NT_LAYOUT_MOVES; number++) {
        bool written = move_at(view, settler, number);
        hole += !written;
        if (written) {
            met->holes += hole;
            hole = 0;
            met->waiting++;
        }
    }
}

static void meet_objects(const struct view *view, struct met *met)
{
    for (uint32_t slot = 0; slot < view->live->slots; slot++) {
        const struct nt_layout_object *entry = view_entry(view, slot);
        for (int i = 0; entry->generation && entry->life == NT_LIFE_OPEN && i < 3; i++) {
            if (!entry->tally_kind[i])
                continue;
            struct nt_layout_pair settled = settled_of(view, slot, entry->generation, entry->tally_kind[i],
                                                       entry->settled[i]);
            met->half += settled.count != entry->settled[i].count;
        }
    }
}

static void print_met(const struct view *view)
{
    struct met met = { 0 };
    uint64_t given_parent = 0, given_older = 0, cells = 0;
    for (uint32_t i = 0; i < view->live->settlers; i++) {
        const struct nt_layout_settler *settler = view_at(view, NT_REGION_SETTLERS, i);
        meet_cells(view, settler, &met);
        meet_moves(view, settler, &met);
        given_parent += settler->given_parent;
        given_older += settler->given_older;
        cells += settler->cells;
    }
    meet_objects(view, &met);
    const struct nt_layout_redo *redo = view_at(view, NT_REGION_REDO, 0);
    printf(",\"settlers\":%" PRIu32 ",\"cells\":%" PRIu64 ",\"given_parent\":%" PRIu64 ",\"given_older\":%" PRIu64
           ",\"waiting\":%u,\"holes\":%u,\"busy\":%u,\"half\":%u,\"folding\":%d",
           view->live->settlers, cells, given_parent, given_older, met.waiting, met.holes, met.busy, met.half,
           (int)(redo->sequence % 2));
}

/* ---- ---- */

static bool print_log(const char *path, bool more)
{
    struct view view;
    if (!view_map(path, &view))
        return false;
    printf("%s\n {\"pid\":%" PRIu32 ",\"full\":%d,\"unsettled\":%" PRIu64 ",\"refused_tallies\":%" PRIu64,
           comma_or[more], view.header->pid, view.live->backed + ROOM_LEFT > view.header->cap, view.live->unsettled,
           view.live->refused_tallies);
    struct session_sums sums = session_sums(&view);
    print_met(&view);
    print_made(&view);
    print_flagged(&view, NT_SESSION_FOLDED, "given");
    print_flagged(&view, NT_SESSION_GOT, "got");
    print_sums(&sums);
    printf("}");
    session_sums_fini(&sums);
    munmap(view.base, view.size);
    return true;
}

static int is_log(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 6 && strcmp(entry->d_name + length - 6, ".ntlog") == 0 && entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    if (argc != 2) {
        fputs("usage: sessions_check LOGS\n", stderr);
        return 2;
    }
    read_asked();
    int count = scandir(argv[1], &entries, is_log, alphasort);
    bool good = count >= 0;
    printf("{\"programs\":[");
    for (int i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
        good = print_log(path, i > 0) && good;
        free(entries[i]);
    }
    printf("\n]}\n");
    if (count >= 0)
        free(entries);
    free(asked);
    return !good;
}
