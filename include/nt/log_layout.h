/* SPDX-License-Identifier: BSD-3-Clause */
/* The log file, byte by byte: what a program writes and what a reader finds. Bytes only: no calls, no
   policy. docs/format.md draws the same and changes in the same commit. All numbers are little-endian,
   all offsets are from the start of the file unless said otherwise; never a pointer. */
#ifndef NT_LOG_LAYOUT_H
#define NT_LOG_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define NT_LAYOUT_ASSERT(what) static_assert(what, #what)
#else
#define NT_LAYOUT_ASSERT(what) _Static_assert(what, #what)
#endif
__extension__ typedef unsigned __int128 nt_u128_;
#define NT_LAYOUT_AT(type, member, at) NT_LAYOUT_ASSERT(offsetof(struct type, member) == (at))

/* The last byte of the magic is the version. */
#define NT_LAYOUT_MAGIC "NTLOG\r\n\001"
#define NT_LAYOUT_VERSION 1u
#define NT_LAYOUT_PAGE 4096u

/* ---- Limits of version 1 ---- */
#define NT_LAYOUT_KINDS 256u         /* event kinds, 0 and 255 are none */
#define NT_LAYOUT_USER_KIND 64u      /* the first user-defined kind */
#define NT_LAYOUT_CONTINUATION 255u  /* "kind" of a continuation slot */
#define NT_LAYOUT_MASK_KINDS 48u     /* mask bits; kinds from 47 on share the last one */
#define NT_LAYOUT_SLOT_BITS 28u      /* object slots */
#define NT_LAYOUT_LOCKED 0x80000000u /* generation bit: counted with a locked 16-byte update */
#define NT_LAYOUT_FIELDS 16u         /* fields of a user-defined kind */
#define NT_LAYOUT_NAME 255u          /* bytes of an object's name */
#define NT_LAYOUT_PAYLOAD 4096u      /* bytes of a user event's fields */
#define NT_LAYOUT_LINK_KEY 4088u     /* bytes of a link's key */
#define NT_LAYOUT_OWNERS 12u         /* owners remembered of a ring */
#define NT_LAYOUT_CLOCK_PAIRS 64u

/* ---- Regions ---- */
enum nt_layout_region_id {
    NT_REGION_BITMAP = 1,      /* one bit a file page: set once the page is backed; a reader touches no other */
    NT_REGION_REDO = 2,        /* struct nt_layout_redo */
    NT_REGION_KINDS = 3,       /* struct nt_layout_kind[]: user-defined kinds */
    NT_REGION_CONTROL = 4,     /* uint64_t[]: a word an object; the only part that others may write, with: */
    NT_REGION_CHANGES = 5,     /* struct nt_layout_change[]: who changed it last */
    NT_REGION_OBJECTS = 6,     /* struct nt_layout_object[] */
    NT_REGION_BLOCKS = 7,      /* units of 64 bytes: further tallies, histograms; unit 0 is never used */
    NT_REGION_STRINGS = 8,     /* units of 16 bytes: names, struct nt_layout_note; unit 0 is never used */
    NT_REGION_RINGS = 9,       /* struct nt_layout_ring[]: the directory */
    NT_REGION_RECORDS = 10,    /* the rings themselves */
    NT_REGION_SESSIONS = 11,   /* struct nt_layout_session[]: names and parents of the newest sessions made here */
    NT_REGION_SETTLERS = 12,   /* struct nt_layout_settler[]: the directory of totals by session */
    NT_REGION_SETTLEMENT = 13, /* pages: their moves and cells; page 0 is never used */
    NT_REGION_GIVEN = 14       /* a bit set (Bloom) of what flags of sessions made elsewhere would say */
};
#define NT_LAYOUT_REGIONS 16u

struct nt_layout_region {
    uint32_t id;         /* enum nt_layout_region_id; a reader skips ids it does not know */
    uint32_t entry_size; /* bytes */
    uint64_t offset;     /* page-aligned */
    uint64_t size;       /* bytes, page-aligned, most of it never backed */
    uint64_t spare;
};

/* ---- Page 0: written once, before the file gets its name ---- */
enum {
    NT_HEADER_CLOCK_TSC = 1u, /* ticks are the processor's; else nanoseconds of CLOCK_MONOTONIC */
    NT_HEADER_FORKED = 2u     /* made by a child at its first count; `origin` is the parent's log */
};
enum { NT_HEADER_HOST, NT_HEADER_DOMAIN, NT_HEADER_NODE, NT_HEADER_PROGRAM, NT_HEADER_NAME, NT_HEADER_STRINGS };

struct nt_layout_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t header_size; /* of this page: 4096 */
    uint64_t file_size;   /* bytes, most of them never backed */
    uint64_t cap;         /* bytes that may be backed */
    uint32_t region_count;
    uint32_t flags;  /* NT_HEADER_… */
    uint64_t id;     /* of this log, unlike any other's */
    uint64_t origin; /* id of the log of the process that this one was forked from, or 0 */
    uint32_t pid;    /* in its own pid namespace */
    uint32_t origin_pid;
    uint64_t start_time;    /* of the process: field 22 of /proc/PID/stat, clock ticks since boot */
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
    uint64_t image;         /* differs after every exec */
    uint8_t boot_id[16];
    uint64_t opened;     /* ticks */
    uint64_t ring_bytes; /* of an ordinary ring */
    uint32_t index;      /* of the log within its process, as handles carry it */
    uint32_t uid;
    uint64_t session_first; /* the low 48 bits of the first session made here; the next ones follow */
    uint64_t spare[3];
    struct nt_layout_region regions[NT_LAYOUT_REGIONS]; /* at 160 */
    uint16_t string_size[8];                            /* at 672: bytes of each string below */
    char host[256];
    char domain[256];
    char node[256];
    char program[64];
    char name[64];
    uint8_t unused[4096 - 688 - 896];
};
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_region) == 32);
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_header) == 4096);
NT_LAYOUT_AT(nt_layout_header, id, 40);
NT_LAYOUT_AT(nt_layout_header, start_time, 64);
NT_LAYOUT_AT(nt_layout_header, boot_id, 88);
NT_LAYOUT_AT(nt_layout_header, regions, 160);
NT_LAYOUT_AT(nt_layout_header, string_size, 672);
NT_LAYOUT_AT(nt_layout_header, host, 688);

/* ---- Page 1: what the program changes as it goes ---- */
enum { NT_STATE_RUNNING = 0, NT_STATE_CLOSED = 1 };

struct nt_layout_clock_pair { /* three clocks read at once */
    uint64_t ticks;
    uint64_t monotonic; /* ns */
    uint64_t realtime;  /* ns since 1970 */
};

struct nt_layout_live {
    uint32_t state;                            /* NT_STATE_…; release */
    uint32_t lock;                             /* of the writers of tables: thread id, 0 free; of no use to a reader */
    uint64_t closed;                           /* ticks */
    uint64_t backed;                           /* bytes backed so far, at most `cap` */
    uint32_t slots;                            /* objects: slots below this were used once; release */
    uint32_t rings;                            /* directory entries in use; release */
    uint32_t kinds;                            /* user-defined kinds; release */
    uint32_t living;                           /* objects not closed */
    uint32_t free_head, free_tail, free_count; /* closed slots, longest closed first */
    uint32_t blocks;                           /* units of the block region used so far */
    uint32_t strings;                          /* units of the string region used so far */
    uint32_t free_block[2];                    /* heads of the lists of free blocks: tally blocks, extra blocks */
    uint32_t free_string[12];                  /* heads of the lists of free strings: 16 << n bytes */
    uint32_t openers;                          /* copies of the library that hold the log open */
    uint64_t dropped_no_ring;                  /* events of threads that got no ring */
    uint64_t refused_objects;                  /* objects that found no room */
    uint64_t refused_tallies;                  /* counts that found no room for their tally */
    uint64_t stale;                            /* calls on objects that were closed */
    uint64_t ring_bytes;                       /* bytes of all rings */
    uint64_t sessions;                         /* made so far */
    uint64_t unsettled;                        /* times that sums of a session found no room and went to none */
    uint32_t settlers;                         /* directory entries in use; release */
    uint32_t settlement_pages;                 /* of the settlement region, used so far */
    uint64_t settlement_backed;                /* bytes of it that are backed */
    uint64_t given_unknown;                    /* not 0: some that were given up are not in NT_REGION_GIVEN */
    uint64_t clock_pairs;                      /* written so far, the newest NT_LAYOUT_CLOCK_PAIRS are kept; release */
    struct nt_layout_clock_pair clock[NT_LAYOUT_CLOCK_PAIRS];
    uint32_t free_histogram; /* head of the list of free histograms */
    uint8_t unused[4096 - 208 - 24 * NT_LAYOUT_CLOCK_PAIRS - 4];
};
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_live) == 4096);
NT_LAYOUT_AT(nt_layout_live, slots, 24);
NT_LAYOUT_AT(nt_layout_live, dropped_no_ring, 120);
NT_LAYOUT_AT(nt_layout_live, clock_pairs, 200);

/* ---- Tallies ---- */
struct nt_layout_pair { /* stored and loaded as 16 bytes at once */
    uint64_t count;
    uint64_t total; /* sum of all values, modulo 2^64 */
} __attribute__((aligned(16)));

struct nt_layout_tally {
    struct nt_layout_pair sum;
    uint64_t max;  /* largest value; may be one event behind */
    uint64_t last; /* ticks of the last event whose time was known; may be one event behind */
};

/* ---- Objects ---- */
enum { NT_LIFE_FREE = 0, NT_LIFE_OPEN = 1, NT_LIFE_CLOSED = 2, NT_LIFE_FOLDED = 3 };
enum {
    NT_DESCRIBED_FORKED = 1u, /* stands for the parent's object of the same slot and generation */
    NT_DESCRIBED_LATE = 2u,   /* its base was read while the parent could still count */
    NT_DESCRIBED_UNKNOWN = 4u /* the parent's object was gone: no name, no base */
};

enum { NT_OBJECT_MIXED = 1u /* some counts went to sessions that were not the object's */ };

struct nt_layout_object {
    /* hot line */
    uint32_t live;         /* generation, without NT_LAYOUT_LOCKED, while it may be counted on, else 0 */
    uint8_t tally_kind[3]; /* kinds of the tallies in this entry, 0 none; release */
    uint8_t flags;         /* NT_OBJECT_MIXED */
    uint64_t session;      /* of what is counted now, 0 none; of a shared object: 0 */
    uint64_t spare0;
    uint32_t blocks; /* first struct nt_layout_tally_block, in units, 0 none; release */
    uint32_t extras; /* first struct nt_layout_extra, in units, 0 none; release */
    struct nt_layout_tally tally[3];
    /* at 128: of each tally what is settled: the rest belongs to `session` */
    struct nt_layout_pair settled[3];
    uint64_t spare1;
    uint32_t next_free; /* slot */
    uint32_t epoch;     /* number of predecessors */
    /* at 192: the description, fixed while `generation` stands */
    uint32_t generation;          /* of the life described here, 0 while it is being written; release */
    uint8_t kind;                 /* NT_OBJECT_… */
    uint8_t discipline;           /* 0 exclusive, 1 shared */
    uint8_t life;                 /* NT_LIFE_… */
    uint8_t described;            /* NT_DESCRIBED_… */
    uint32_t parent;              /* slot */
    uint32_t parent_generation;   /* 0: no parent */
    uint32_t previous;            /* slot */
    uint32_t previous_generation; /* 0: no predecessor */
    uint32_t name;                /* in units of the string region */
    uint16_t name_size;           /* bytes, any of them, not terminated */
    uint16_t name_room;           /* bytes of its cell */
    uint64_t opened;              /* ticks */
    uint64_t closed;              /* ticks, 0 while open */
    uint32_t notes;               /* first struct nt_layout_note, in string units, 0 none; release */
    uint32_t spare2;
    uint32_t last_generation; /* of the slot's latest life, also when nothing is described any more */
    uint32_t folded;          /* low bits of the number of the slot's latest fold; release, before it begins */
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_tally) == 32);
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_object) == 256);
NT_LAYOUT_AT(nt_layout_object, session, 8);
NT_LAYOUT_AT(nt_layout_object, tally, 32);
NT_LAYOUT_AT(nt_layout_object, settled, 128);
NT_LAYOUT_AT(nt_layout_object, generation, 192);
NT_LAYOUT_AT(nt_layout_object, name, 216);
NT_LAYOUT_AT(nt_layout_object, opened, 224);
NT_LAYOUT_AT(nt_layout_object, notes, 240);
NT_LAYOUT_AT(nt_layout_object, folded, 252);

struct nt_layout_tally_block { /* 4 units: tallies of further kinds */
    uint32_t next;             /* units, 0 none */
    uint32_t owner;            /* slot */
    uint8_t kind[4];           /* 0 none; release */
    uint32_t histogram[4];     /* of each tally, in units, 0 none; fixed while its kind stands */
    uint32_t spare0;
    struct nt_layout_tally tally[4];
    struct nt_layout_pair settled[4];
    uint64_t spare1[4];
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_tally_block) == 256);

/* A histogram of a tally's values: how many lie in each bucket. Bucket 0 is for 0; bucket n for what is above
   2^((n - 2) / 8) and not above 2^((n - 1) / 8), which is the exponential histogram of scale 3 (of OpenTelemetry, of
   Prometheus' native ones) with index n - 2. Bucket 1 is for 1, and 513 ends at 2^64. A tally that has one lies in a
   tally block, never in the object's entry. */
#define NT_LAYOUT_BUCKETS 514u
#define NT_LAYOUT_HISTOGRAM_UNITS 65u
struct nt_layout_histogram {
    uint32_t next;  /* while it is free: units, 0 none */
    uint32_t owner; /* slot */
    uint8_t kind;
    uint8_t scale; /* 3 */
    uint8_t spare0[6];
    uint64_t count[NT_LAYOUT_BUCKETS]; /* the sum of these may be one event behind the tally's count */
    uint64_t spare1[4];
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_histogram) == NT_LAYOUT_HISTOGRAM_UNITS * 64);
NT_LAYOUT_AT(nt_layout_histogram, count, 16);

/* 2^(j / 8) for j = 0 … 7, times 2^63, rounded down: all but the first are irrational, so that what is above the one
   is above the other. Behind them the largest number there is. */
static inline uint64_t nt_layout_root_(uint32_t j)
{
    static const uint64_t roots[9] = {
        UINT64_C(0x8000000000000000), UINT64_C(0x8b95c1e3ea8bd6e6), UINT64_C(0x9837f0518db8a96f),
        UINT64_C(0xa5fed6a9b15138ea), UINT64_C(0xb504f333f9de6484), UINT64_C(0xc5672a115506dadd),
        UINT64_C(0xd744fccad69d6af4), UINT64_C(0xeac0c6e7dd24392e), UINT64_MAX,
    };
    return roots[j];
}

/* The bucket of a value. Each eighth of the way from a power of two to the next but the last has one root in it, so
   that one comparison tells on which side of it the value is. */
static inline uint32_t nt_layout_bucket_(uint64_t value)
{
    if (!value)
        return 0;
    uint32_t zeros = (uint32_t)__builtin_clzll(value);
    uint64_t mantissa = value << zeros;
    uint32_t eighth = (uint32_t)(mantissa >> 60) & 7;
    uint32_t above = eighth + (mantissa > nt_layout_root_(eighth + 1)); /* roots that it is above, but for the first */
    return 8 * (63 - zeros) + above + 1 + (mantissa > nt_layout_root_(0));
}

/* The largest value of a bucket; one more than the largest of the bucket before it is its smallest. Where that is more,
   no value falls into the bucket. */
static inline uint64_t nt_layout_bucket_high_(uint32_t bucket)
{
    if (!bucket)
        return 0;
    uint32_t power = (bucket - 1) / 8;
    return power < 64 ? nt_layout_root_((bucket - 1) % 8) >> (63 - power) : UINT64_MAX;
}

enum {
    NT_EXTRA_BASE = 1u,   /* `base` holds */
    NT_EXTRA_CLOSED = 2u, /* `closed` holds */
    NT_EXTRA_LINEAGE = 4u /* `lineage` holds */
};

struct nt_layout_extra { /* 2 units: sums about one kind of an object that are not its own counts */
    uint32_t next;       /* units, 0 none */
    uint32_t owner;      /* slot */
    uint8_t kind;
    uint8_t holds; /* NT_EXTRA_…; release */
    uint16_t spare0;
    uint32_t spare2;
    struct nt_layout_pair base;    /* counted before this log knew the object */
    struct nt_layout_pair closed;  /* of children that are gone */
    struct nt_layout_pair lineage; /* of all predecessors */
    uint64_t closed_max;
    uint64_t closed_last; /* ticks */
    uint64_t spare1[4];
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_extra) == 128);

/* ---- Notes: what a program said of an object, each once in its life ---- */
/* Bits: no two notes of an object share one. */
enum {
    NT_NOTE_LINK_WRITE = 1u, /* the key of the link that it writes to */
    NT_NOTE_LINK_READ = 2u,  /* … that it reads from; both bits: of one link, of which it is both ends */
    NT_NOTE_REMOTE_NODE = 4u,
    NT_NOTE_REMOTE_PROCESS = 8u
};
/* How the messages of a link's two ends belong together. */
enum {
    NT_PAIR_NONE = 0,  /* they do not */
    NT_PAIR_COUNT = 1, /* the n-th written is the n-th read */
    NT_PAIR_BYTES = 2, /* the n-th byte written is the n-th read */
    NT_PAIR_ID = 3     /* the arguments of both are the message's id */
};
struct nt_layout_note { /* in the string region, its bytes behind it */
    uint32_t next;      /* string units, 0 none */
    uint16_t size;      /* of its bytes: NT_LAYOUT_LINK_KEY, NT_LAYOUT_NAME at most, never 0 */
    uint8_t what;       /* NT_NOTE_… */
    uint8_t pairing;    /* of a link: NT_PAIR_… */
};
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_note) == 8);

/* ---- Redo: one object's sums on their way into its parent's `closed` ---- */
struct nt_layout_redo_entry {
    uint8_t kind;
    uint8_t spare[7];
    uint64_t max;                 /* new value of closed_max */
    struct nt_layout_pair closed; /* new value */
    uint64_t last;                /* new value of closed_last */
    uint64_t spare1;
};
struct nt_layout_redo {
    uint64_t sequence; /* even: at rest. odd: being applied; the entries hold, the object's own do not. release */
    uint32_t slot, generation;          /* the object */
    uint32_t parent, parent_generation; /* where it goes */
    uint32_t count;                     /* of entries */
    uint32_t spare[9];
    struct nt_layout_redo_entry entries[NT_LAYOUT_KINDS];
};
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_redo_entry) == 48);
NT_LAYOUT_ASSERT(offsetof(struct nt_layout_redo, entries) == 64);

/* ---- Sessions ---- */
/* A session's number is its id's low 48 bits less the header's session_first; its entry is at that number modulo the
   entries that there are, until a later one takes the place. */
#define NT_LAYOUT_SESSION_BITS 48u
enum {
    NT_SESSION_STANDS = 1u, /* standing: not one flow's */
    NT_SESSION_FOLDED = 2u, /* some of its sums were put into its parent's, or into `older` */
    NT_SESSION_GOT = 4u     /* has sums of its parts that were given up */
};
struct nt_layout_session {
    uint64_t id;     /* 0 while it is being written; release */
    uint64_t parent; /* 0 none */
    uint64_t opened; /* ticks */
    uint64_t ended;  /* ticks of the last end of an activation, 0 none */
    uint8_t flags;   /* NT_SESSION_… */
    uint8_t name_size;
    char name[94];
};
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_session) == 128);

/* Totals by session: a thread that changes sessions has a settler. A change appends moves to its buffer: what was
   counted since the last one, and to which session it goes. Moves are folded into cells in the order of their numbers.
   A session's sum is that of its cells in all settlers, of the moves that are not in them yet, and of what its objects
   counted since they were settled. */
#define NT_LAYOUT_MOVES 128u /* of a buffer: move n lies at n modulo that */
enum {
    NT_MOVE_GIVEN = 1u, /* taken from the session `from`, which is given up: if its cell is gone nothing is taken */
    NT_MOVE_OLDER = 2u  /* goes to `older`, whatever `session` says */
};
struct nt_layout_move {
    uint64_t session;            /* where it goes, never 0 */
    uint64_t commit;             /* bits 0-7 kind, 8-15 NT_MOVE_…, 16-63 number + 1; release */
    uint64_t from;               /* the object, slot | generation << 32; 0: a shared one; with GIVEN: a session */
    uint64_t home;               /* the program's own */
    struct nt_layout_pair sum;   /* how much */
    struct nt_layout_pair after; /* of an object: its `settled` after this, stored there next */
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_move) == 64);

/* A cell of one session and kind. Its state word: bits 0-7 kind, 8-15 NT_CELL_…, 16-63 how many moves, from the
   first one ever, are in it. 0: empty. */
enum {
    NT_CELL_BUSY = 1u /* being changed: what it will hold is in the settler's `redo` */
};
struct nt_layout_cell {
    uint64_t session;
    uint64_t state;
    struct nt_layout_pair sum;
} __attribute__((aligned(32)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_cell) == 32);

/* Cells lie in groups of a page, a cell within the group that its hash names; groups are split one after the other
   (linear hashing: W. Litwin 1980). Extent e holds groups 2^(e-1) to 2^e - 1, extent 0 group 0. While cells change
   places one may be found twice: the one with more moves in it counts. */
#define NT_LAYOUT_CELLS 128u /* of a group: the search begins at twice the hash's upper 6 bits and goes round */
#define NT_LAYOUT_EXTENTS 24u
struct nt_layout_settler {
    uint64_t folded; /* moves with smaller numbers are in the cells; release */
    uint32_t groups; /* in use, 0 none yet; release */
    uint32_t state;  /* NT_RING_… */
    uint32_t moves;  /* page of the buffer */
    uint32_t tid;
    uint64_t copy; /* which copy of the library in the process */
    struct nt_layout_pair redo;
    uint64_t redo_state; /* state word that belongs to `redo` */
    uint64_t
        shifts; /* cells that changed their places within a group; raised before the old place is changed; release */
    /* the program's own from here */
    uint64_t position;     /* while idle: the number of the next move */
    uint64_t idle_since;   /* ticks */
    uint64_t cells;        /* in use */
    uint64_t given_parent; /* cells put into their parent's */
    uint64_t given_older;  /* cells put into `older` */
    uint32_t backed;       /* groups whose pages are backed */
    uint32_t older;        /* first of the two pages with the cells of `older`, one a kind at its number */
    uint64_t folding;      /* not 0: moves are on their way into cells; left like this nobody goes on with it */
    uint32_t extent[NT_LAYOUT_EXTENTS]; /* first page of each, 0 none; release */
    uint64_t spare2[4];
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_settler) == 256);
NT_LAYOUT_AT(nt_layout_settler, redo, 32);

/* The hash of a cell: both halves of a product, so that all bits of the id have a part in the lower ones, which name
   the group: hash modulo the smallest power of two that is not below the number of groups, or modulo its half if there
   is no such group. */
static inline uint64_t nt_layout_hash_(uint64_t session, uint32_t kind)
{
    nt_u128_ product = (nt_u128_)(session ^ (uint64_t)kind << 56) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Sessions that are in the table no more, or never were, and were given up or got the sums of others: each sets these
   bits of the region's `words`, for its hash with kind 0 where it was given up, with kind 1 where it got. */
#define NT_LAYOUT_GIVEN_BITS 3
static inline uint64_t nt_layout_given_(uint64_t hash, int number, uint64_t words)
{
    return (uint64_t)((nt_u128_)((hash >> 7 * number | hash << (64 - 7 * number) % 64) * UINT64_C(0x9e3779b97f4a7c15)) *
                          (words * 64) >>
                      64);
}

/* ---- Control ---- */
/* A control word: bits 0 to 47 say which kinds are logged, bits 48 to 63 are the generation's low bits, so
   that a compare-and-swap from outside cannot hit another life of the slot. Any value is harmless.
   Who changes one, in the program or outside: reads the clock that the log's ticks are of; compare-and-swaps the word,
   its generation bits as they were, and begins again if it was changed in between; stores the change beside it, its
   check last; adds one to the count of changes, with release. No lock: two setters at once, or one that dies, leave a
   change whose check is wrong, and no reader believes it. */
#define NT_LAYOUT_MASK_BITS ((UINT64_C(1) << NT_LAYOUT_MASK_KINDS) - 1)

struct nt_layout_changes { /* entry 0 of the region; entry n + 1 is of the object in slot n */
    uint64_t count;        /* changes of all objects so far; release */
    uint64_t spare[3];
};
struct nt_layout_change { /* all zeros: none in this life */
    uint64_t time;        /* ticks, before the word was changed */
    uint64_t before;      /* control word */
    uint64_t after;       /* control word */
    uint32_t setter;      /* pid, in the setter's pid namespace */
    uint32_t check;       /* nt_layout_change_check of the others */
};
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_changes) == sizeof(struct nt_layout_change));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_change) == 32);

/* Never 0. Each word is mixed into what was made of those before it. */
static inline uint32_t nt_layout_change_check(const struct nt_layout_change *change)
{
    const uint64_t words[4] = { change->time, change->before, change->after, change->setter };
    uint64_t hash = 0;
    for (int i = 0; i < 4; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash | 1;
}

/* ---- Rings ---- */
enum { NT_RING_FREE = 0, NT_RING_OWNED = 1, NT_RING_IDLE = 2, NT_RING_RETIRED = 3 };

struct nt_layout_owner {
    uint64_t from;  /* position of its first slot */
    uint64_t since; /* ticks */
    uint32_t tid;
    uint32_t spare;
    uint64_t copy; /* which copy of the library in the process */
};

struct nt_layout_ring {
    uint64_t reserved;   /* positions below may be overwritten or written: raised, with a release fence behind,
                          before any slot of a chunk is touched; never lowered */
    uint64_t dropped;    /* events refused */
    uint64_t position;   /* while idle: where the next owner goes on */
    uint64_t idle_since; /* ticks */
    uint64_t spare0[4];
    uint64_t offset; /* in the record region, page-aligned */
    uint64_t size;   /* bytes, a power of two */
    uint64_t chunk;  /* bytes, a power of two, at most size / 8 */
    uint64_t backed; /* bytes from the start that are backed; release */
    uint32_t state;  /* NT_RING_… */
    uint32_t owners; /* so far; the newest NT_LAYOUT_OWNERS are kept, at number modulo that; release */
    uint64_t spare1[3];
    struct nt_layout_owner owner[NT_LAYOUT_OWNERS];
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_owner) == 32);
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_ring) == 512);
NT_LAYOUT_AT(nt_layout_ring, offset, 64);
NT_LAYOUT_AT(nt_layout_ring, owner, 128);

/* A record is one slot of 64 bytes. Positions are in bytes, start at 0, never go back, and are divisible by 64; a
   slot lies at position modulo ring size. The commit word is stored last, with release:
   bits 0-7 kind, 8-15 flags, 16-63 slot number = position / 64 + 1 (0: never written). */
#define NT_LAYOUT_SLOT 64u
#define NT_LAYOUT_RING_START 0u /* the first position */
#define NT_LAYOUT_COMMIT(position, kind_flags) (((position) << 10) + 65536u + (kind_flags))
enum {
    NT_RECORD_FIRST = 1u,     /* first of its kind since the object's session changed: that one began at
                                (count - 1, total - value) */
    NT_RECORD_DATA = 2u,      /* fields follow in continuation slots; argument: bytes | slots << 32 */
    NT_RECORD_TRUNCATED = 4u, /* the fields were longer than fits */
    NT_RECORD_IN = 8u         /* of that session alone: what its object counts before and after belongs to another */
};

struct nt_layout_record {
    uint64_t time; /* ticks */
    uint64_t commit;
    uint64_t session;
    uint64_t value;
    struct nt_layout_pair sum; /* this event included */
    uint64_t argument;
    uint32_t object; /* slot in the low 28 bits; the others are the program's own */
    uint32_t generation;
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_record) == 64);
NT_LAYOUT_AT(nt_layout_record, commit, 8);
NT_LAYOUT_AT(nt_layout_record, sum, 32);
NT_LAYOUT_AT(nt_layout_record, object, 56);

/* A continuation slot: 56 bytes of the fields, its own commit word in the usual place. */
struct nt_layout_continuation {
    uint8_t first[8];
    uint64_t commit;
    uint8_t rest[48];
} __attribute__((aligned(64)));
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_continuation) == 64);
#define NT_LAYOUT_CONTINUED 56u

/* ---- User-defined kinds ---- */
/* Fields in the order declared: u64, i64, f64 and id as 8 bytes; bytes and string as a 16-bit size and that
   many bytes. A truncated event ends within a field or before one. */
enum nt_layout_field_type {
    NT_FIELD_U64 = 1,
    NT_FIELD_I64 = 2,
    NT_FIELD_F64 = 3,
    NT_FIELD_BYTES = 4,
    NT_FIELD_STRING = 5,
    NT_FIELD_ID = 6
};

struct nt_layout_field {
    uint8_t type;
    uint8_t name_size;
    char name[30];
};

struct nt_layout_kind { /* entry n describes kind NT_LAYOUT_USER_KIND + n */
    uint8_t number;
    uint8_t field_count;
    uint8_t name_size;
    uint8_t policy; /* 0 merge, 1 keep */
    uint32_t spare;
    char name[56];
    struct nt_layout_field fields[NT_LAYOUT_FIELDS];
};
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_kind) == 576);

#endif
