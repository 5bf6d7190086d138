/* journal.c - see journal.h. */
#include "init/run/journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "init/run/proc.h"

void journal_init(struct journal *j, struct loop *l, void (*on_lines)(struct journal *j))
{
    *j = (struct journal){.loop = l, .left = JOURNAL_BURST, .on_lines = on_lines};
    list_init(&j->lines);
    j->left_ms = clock_mono_ms();
}

/* ---- kept lines ---- */

static void on_tell(struct loop_timer *t)
{
    struct journal *j = CONTAINER_OF(t, struct journal, tell);

    j->on_lines(j);
}

static size_t cost_of(const struct journal_line *l)
{
    return l->m.data.len + JOURNAL_LINE_COST;
}

static void drop_first(struct journal *j)
{
    struct journal_line *l = LIST_FIRST(&j->lines, struct journal_line, link);

    j->kept -= cost_of(l);
    list_del(&l->link);
    free(l);
}

/* False: out of memory, the line is dropped. */
static bool append(struct journal *j, const struct init_line *m)
{
    size_t id = strlen(m->id) + 1;
    struct journal_line *l = malloc(sizeof(*l) + id + m->data.len);

    if (l == NULL)
        return false;
    l->m = *m;
    l->m.id = memcpy(l->text, m->id, id);
    l->m.data.p = l->text + id;
    if (m->data.len > 0)
        memcpy(l->text + id, m->data.p, m->data.len);
    list_add_tail(&j->lines, &l->link);
    j->kept += cost_of(l);
    while (j->kept > JOURNAL_KEPT_MAX)
        drop_first(j);
    if (j->tell.slot == 0)
        loop_timer_set(j->loop, &j->tell, JOURNAL_DELAY_MS, on_tell);
    return true;
}

/* ---- the rate limit ---- */

static bool may_take(struct journal *j, size_t cost)
{
    uint64_t now = clock_mono_ms(), more = (now - j->left_ms) * JOURNAL_RATE / 1000;

    if (more > 0) {
        j->left = j->left + more < JOURNAL_BURST ? j->left + more : JOURNAL_BURST;
        j->left_ms = now;
    }
    if (j->left < cost)
        return false;
    j->left -= cost;
    return true;
}

/* An empty line shows how many were dropped, also if no other line ever follows. */
static void on_unmute(struct loop_timer *t)
{
    struct journal *j = CONTAINER_OF(t, struct journal, mute);
    struct init_line m = {.seq = j->next++, .at_ms = clock_real_ms(), .id = "", .data = {"", 0}};

    j->muted = false;
    append(j, &m);
}

static void mute(struct journal *j)
{
    j->muted = loop_timer_set(j->loop, &j->mute, JOURNAL_MUTE_MS, on_unmute) == 0;
}

/* ---- lines ---- */

static void add(struct journal *j, const struct proc *p, unsigned stream, const char *text,
                size_t n)
{
    struct init_line m = {.seq = j->next++, .stream = stream, .pid = p->record.pid};

    if (n > 0 && text[n - 1] == '\r')
        n--;
    if (j->muted)
        return;
    m.id = p->record.id;
    m.at_ms = clock_real_ms();
    m.data = (struct wire_bytes){text, (uint32_t)n};
    if (!may_take(j, n + JOURNAL_LINE_COST) || !append(j, &m))
        mute(j);
}

/* A flood costs only the counting of its lines. */
static void drop(struct journal *j, struct journal_part *part, const char *at, size_t n)
{
    const char *end = at + n, *nl;

    for (const char *p = at; (nl = memchr(p, '\n', (size_t)(end - p))) != NULL; p = nl + 1)
        j->next++;
    buf_clear(&part->text);
    part->skip = n > 0 && end[-1] != '\n';
}

/* Up to the end of the line, or as much as a line may have. */
static size_t take_some(struct journal *j, const struct proc *p, struct journal_part *part,
                        unsigned stream, const char *at, size_t n)
{
    size_t room = INIT_LINE_MAX - part->text.len, len = n < room ? n : room;
    const char *nl = memchr(at, '\n', len);

    if (nl != NULL)
        len = (size_t)(nl - at);
    if (nl != NULL && part->text.len == 0) {
        add(j, p, stream, at, len);
        return len + 1;
    }
    if (buf_add(&part->text, at, len) < 0) {
        part->text.failed = false;
        mute(j);
    }
    if (nl != NULL) {
        add(j, p, stream, buf_data(&part->text), part->text.len);
        buf_clear(&part->text);
    } else if (part->text.len == INIT_LINE_MAX) { /* a piece; no character is cut */
        size_t whole = str_utf8_whole(buf_data(&part->text), part->text.len);

        whole = whole > 0 ? whole : part->text.len;
        add(j, p, stream, buf_data(&part->text), whole);
        buf_consume(&part->text, whole);
    }
    return len + (nl != NULL);
}

/* The rest of a line whose start was dropped. */
static size_t skip_rest(struct journal *j, struct journal_part *part, const char *at, size_t n)
{
    const char *nl = memchr(at, '\n', n);

    part->skip = nl == NULL;
    j->next += nl != NULL;
    return nl == NULL ? n : (size_t)(nl + 1 - at);
}

void journal_take(struct journal *j, const struct proc *p, struct journal_part *part,
                  unsigned stream, const char *at, size_t n)
{
    size_t done = part->skip && !j->muted ? skip_rest(j, part, at, n) : 0;

    while (done < n && !j->muted)
        done += take_some(j, p, part, stream, at + done, n - done);
    if (done < n)
        drop(j, part, at + done, n - done);
}

void journal_end(struct journal *j, const struct proc *p, struct journal_part *part,
                 unsigned stream)
{
    if (part->text.len > 0)
        add(j, p, stream, buf_data(&part->text), part->text.len);
    else if (part->skip)
        j->next++;
    part->skip = false;
    buf_free(&part->text);
}

void journal_hurry(struct journal *j)
{
    if (j->tell.slot == 0)
        return;
    loop_timer_stop(j->loop, &j->tell);
    j->on_lines(j);
}

/* ---- reading ---- */

/* From the end: a reader is usually close to it. */
const struct journal_line *journal_from(const struct journal *j, uint64_t since)
{
    const struct list *at = &j->lines;

    while (at->prev != &j->lines &&
           CONTAINER_OF(at->prev, struct journal_line, link)->m.seq >= since)
        at = at->prev;
    return at == &j->lines ? NULL : CONTAINER_OF(at, struct journal_line, link);
}

const struct journal_line *journal_after(const struct journal *j, const struct journal_line *l)
{
    return l->link.next == &j->lines ? NULL : CONTAINER_OF(l->link.next, struct journal_line, link);
}
