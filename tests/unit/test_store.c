/* test_store.c - the database survives a crash. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "front/store/internal.h"

static char dir[64];

static const char *fresh(const char *name)
{
    static char path[128];

    if (dir[0] == '\0') {
        strcpy(dir, "/tmp/cove-unit-XXXXXX");
        CHECK(mkdtemp(dir) != NULL);
    }
    snprintf(path, sizeof(path), "%s/%s.db", dir, name);
    return path;
}

static void __attribute__((destructor)) clean(void)
{
    char cmd[128];

    if (dir[0] == '\0')
        return;
    snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
    if (system(cmd) != 0)
        perror(cmd);
}

static struct store *open_ok(const char *path)
{
    struct store *s = NULL;
    struct err e = {0};

    if (store_open(path, &s, &e) < 0)
        print_error("%s\n", e.msg);
    CHECK(s != NULL);
    return s;
}

static struct store_sandbox row_of(const char *id)
{
    return (struct store_sandbox){.id = id,
                                  .key = "root",
                                  .state = STORE_RUNNING,
                                  .template = "base",
                                  .network = "none",
                                  .metadata = "{\"a\":\"b\"}",
                                  .env = {"A=1\0B=2", 8},
                                  .memory = 1ull << 40,
                                  .created_ms = 1234,
                                  .boot_id = "boot"};
}

struct found {
    int n;
    char ids[256];
    struct store_sandbox last;
    char env[16];
};

static int each(void *arg, const struct store_sandbox *row, struct err *e)
{
    struct found *f = arg;

    (void)e;
    f->n++;
    strcat(strcat(f->ids, row->id), " ");
    f->last = *row;
    memcpy(f->env, row->env.p, row->env.len < sizeof(f->env) ? row->env.len : sizeof(f->env));
    return 0;
}

static struct found all(struct store *s)
{
    struct found f = {0};
    struct err e;

    CHECK_INT(store_sandbox_each(s, each, &f, &e), 0);
    return f;
}

TEST(a_row_is_read_back_unchanged_after_reopening)
{
    const char *path = fresh("back");
    struct store *s = open_ok(path);
    struct store_sandbox row = row_of("one");
    struct found f;
    struct err e;

    CHECK_INT(store_sandbox_insert(s, &row, &e), 0);
    store_close(s);
    s = open_ok(path);
    f = all(s);
    CHECK_INT(f.n, 1);
    CHECK_STR(f.ids, "one ");
    CHECK_INT(f.last.memory, 1ull << 40);
    CHECK_INT(f.last.env.len, 8);
    CHECK(memcmp(f.env, "A=1\0B=2", 8) == 0);
    store_close(s);
}

TEST(rows_come_in_the_order_of_creation_and_numbers_are_never_used_twice)
{
    struct store *s = open_ok(fresh("order"));
    struct store_sandbox a = row_of("zz"), b = row_of("aa"), c = row_of("mm");
    struct err e;

    CHECK_INT(store_sandbox_insert(s, &a, &e), 0);
    CHECK_INT(store_sandbox_insert(s, &b, &e), 0);
    CHECK_STR(all(s).ids, "zz aa ");
    CHECK_INT(store_sandbox_delete(s, "aa", &e), 0);
    CHECK_INT(store_sandbox_insert(s, &c, &e), 0);
    CHECK(c.seq > b.seq);
    CHECK_STR(all(s).ids, "zz mm ");
    store_close(s);
}

TEST(a_change_of_a_missing_row_is_not_found)
{
    struct store *s = open_ok(fresh("change"));
    struct err e;

    CHECK_INT(store_sandbox_set_life(s, "no", &(struct store_life){.state = STORE_STOPPED}, &e),
              -1);
    CHECK_INT(e.kind, ERR_NOT_FOUND);
    CHECK_INT(store_sandbox_set_ends(s, "no", 1, &e), -1);
    CHECK_INT(e.kind, ERR_NOT_FOUND);
    CHECK_INT(store_sandbox_delete(s, "no", &e), 0);
    store_close(s);
}

TEST(one_id_is_one_row)
{
    struct store *s = open_ok(fresh("unique"));
    struct store_sandbox a = row_of("same"), b = row_of("same");
    struct err e;

    CHECK_INT(store_sandbox_insert(s, &a, &e), 0);
    CHECK_INT(store_sandbox_insert(s, &b, &e), -1);
    CHECK_INT(all(s).n, 1);
    store_close(s);
}

TEST(a_rollback_leaves_nothing)
{
    struct store *s = open_ok(fresh("rollback"));
    struct store_sandbox a = row_of("gone");
    struct err e;

    CHECK_INT(store_begin(s, &e), 0);
    CHECK_INT(store_sandbox_insert(s, &a, &e), 0);
    store_rollback(s);
    CHECK_INT(all(s).n, 0);
    CHECK_INT(store_begin(s, &e), 0);
    CHECK_INT(store_sandbox_insert(s, &a, &e), 0);
    CHECK_INT(store_commit(s, &e), 0);
    CHECK_INT(all(s).n, 1);
    store_close(s);
}

/* Without a flush it is in the kernel's hands all the same. */
TEST(a_light_commit_survives_the_process_and_the_next_commit_is_flushed)
{
    const char *path = fresh("light");
    struct store *s = open_ok(path);
    int status = 1;
    pid_t pid;

    store_close(s);
    pid = fork();
    if (pid == 0) {
        struct store_sandbox a = row_of("light");
        struct err e;

        s = open_ok(path);
        _exit(store_begin_light(s, &e) == 0 && store_sandbox_insert(s, &a, &e) == 0 &&
                      store_commit(s, &e) == 0 && !s->light && store_flush(s, &e) == 0
                  ? 0
                  : 1);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    s = open_ok(path);
    CHECK_INT(all(s).n, 1);
    CHECK_INT(store_begin_light(s, &(struct err){0}), 0);
    store_rollback(s);
    CHECK(!s->light);
    store_close(s);
}

TEST(a_counter_never_gives_a_number_twice_even_after_a_crash)
{
    const char *path = fresh("counter");
    struct store *s = open_ok(path);
    uint64_t first;
    struct err e;
    pid_t pid;

    CHECK_INT(store_reserve(s, "events", 1000, &first, &e), 0);
    CHECK_INT(first, 1);
    store_close(s);
    pid = fork();
    if (pid == 0) {
        s = open_ok(path);
        _exit(store_reserve(s, "events", 10, &first, &e) == 0 && first == 1001 ? 0 : 1);
    }
    CHECK_INT(waitpid(pid, &(int){0}, 0), pid);
    s = open_ok(path);
    CHECK_INT(store_reserve(s, "events", 1, &first, &e), 0);
    CHECK_INT(first, 1011);
    store_close(s);
}

TEST(a_second_process_is_refused_with_a_reason)
{
    const char *path = fresh("locked");
    struct store *s = open_ok(path);
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct store *other = NULL;
        struct err e = {0};
        int r = store_open(path, &other, &e);

        _exit(r < 0 && e.kind == ERR_CONFLICT && strstr(e.msg, "another process") ? 0 : 1);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    store_close(s);
}

TEST(a_damaged_file_is_an_error_at_open)
{
    const char *path = fresh("damaged");
    struct store *s = NULL;
    struct err e = {0};
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    CHECK(write(fd,
                "this is not a database, but long enough to be looked at........"
                "................................................................",
                128) == 128);
    close(fd);
    CHECK_INT(store_open(path, &s, &e), -1);
    CHECK_HAS(e.msg, "damaged");
}

TEST(a_database_of_a_newer_cove_is_refused)
{
    const char *path = fresh("newer");
    struct store *s = open_ok(path);
    struct err e = {0};
    unsigned char version[4] = {0, 0, 0, 99};
    int fd;

    store_close(s);
    fd = open(path, O_WRONLY);
    CHECK_INT(pwrite(fd, version, 4, 60), 4); /* user_version in the file's head */
    close(fd);
    CHECK_INT(store_open(path, &s, &e), -1);
    CHECK_HAS(e.msg, "newer");
}

TEST(a_directory_fd_is_enough_to_open_it)
{
    char path[128];
    struct store *s;
    int fd;

    fresh("x");
    fd = open(dir, O_RDONLY | O_DIRECTORY);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/by-fd.db", fd);
    s = open_ok(path);
    store_close(s);
    close(fd);
    snprintf(path, sizeof(path), "%s/by-fd.db", dir);
    CHECK_INT(access(path, F_OK), 0);
}

/* ---- points and logs are kept within bounds ---- */

static void count_point(void *arg, const struct store_point *p)
{
    uint64_t *last = arg;

    CHECK(p->at_ms > last[1]); /* oldest first */
    last[0]++;
    last[1] = p->at_ms;
    last[2] = last[2] == 0 ? p->at_ms : last[2];
}

static uint64_t oldest_point; /* of the last points_of() */

static uint64_t points_of(struct store *s, uint64_t sandbox, size_t limit)
{
    struct store_span span = {.sandbox = sandbox, .until_ms = UINT64_MAX, .limit = limit};
    uint64_t seen[3] = {0};
    struct err e;

    CHECK_INT(store_point_each(s, &span, count_point, seen, &e), 0);
    oldest_point = seen[2];
    return seen[0];
}

TEST(samples_that_are_too_old_or_too_many_are_pruned_oldest_first)
{
    struct store *s = open_ok(fresh("points"));
    struct err e;

    for (uint64_t i = 1; i <= 100; i++)
        CHECK_INT(store_point_add(s, &(struct store_point){.sandbox = 1 + i % 2, .at_ms = i}, &e),
                  0);
    CHECK_INT(points_of(s, 1, 1000), 50);
    CHECK_INT(points_of(s, 1, 7), 7);
    CHECK_INT(store_points_prune(s, 41, 1000, &e), 0);
    CHECK_INT(points_of(s, 1, 1000) + points_of(s, 2, 1000), 60);
    CHECK_INT(oldest_point, 41);
    CHECK_INT(store_points_prune(s, 0, 10, &e), 0);
    CHECK_INT(points_of(s, 1, 1000) + points_of(s, 2, 1000), 10);
    CHECK_INT(oldest_point, 91);
    store_close(s);
}

static bool count_log(void *arg, const struct store_log *l)
{
    uint64_t *n = arg;

    n[1] = n[1] * 10 + l->at_ms;
    return ++n[0] < 3;
}

TEST(a_log_is_read_from_either_end_until_the_reader_has_enough)
{
    struct store *s = open_ok(fresh("logs"));
    struct store_log_span span = {.sandbox = 1, .limit = 100};
    uint64_t n[2] = {0};
    bool more;
    struct err e;

    for (uint64_t i = 1; i <= 9; i++)
        CHECK_INT(store_log_add(
                      s,
                      &(struct store_log){.sandbox = 1, .at_ms = i, .message = "x", .fields = "{}"},
                      &e),
                  0);
    CHECK_INT(store_log_each(s, &span, count_log, n, &e), 0);
    CHECK_INT(n[1], 123);
    span = (struct store_log_span){
        .sandbox = 1, .limit = 100, .backward = true, .from = 8, .from_ms = UINT64_MAX};
    memset(n, 0, sizeof(n));
    CHECK_INT(store_log_each(s, &span, count_log, n, &e), 0);
    CHECK_INT(n[1], 765);
    CHECK_INT(store_logs_prune(s, 0, 2, &more, &e), 0);
    CHECK(!more);
    memset(n, 0, sizeof(n));
    span = (struct store_log_span){.sandbox = 1, .limit = 100};
    CHECK_INT(store_log_each(s, &span, count_log, n, &e), 0);
    CHECK_INT(n[1], 89);
    store_close(s);
}

static bool count_all(void *arg, const struct store_log *l)
{
    uint64_t *n = arg;

    n[0]++;
    n[1] += l->message[0] == '1';
    return true;
}

/* How many entries a sandbox has, and how many of them are output. */
static uint64_t logs_of(struct store *s, uint64_t sandbox, uint64_t *ret_output)
{
    struct store_log_span span = {.sandbox = sandbox, .limit = 1000};
    uint64_t n[2] = {0};
    struct err e;

    CHECK_INT(store_log_each(s, &span, count_all, n, &e), 0);
    *ret_output = n[1];
    return n[0];
}

TEST(logged_output_has_a_maximum_per_sandbox_and_is_pruned_before_events)
{
    struct store *s = open_ok(fresh("output"));
    struct store_sandbox row = row_of("sb");
    uint64_t a, b;
    bool more;
    struct err e;

    CHECK_INT(store_sandbox_insert(s, &row, &e), 0);
    for (uint64_t i = 0; i < 100; i++)
        CHECK_INT(store_log_add(s,
                                &(struct store_log){.sandbox = 1 + i % 2,
                                                    .at_ms = 1 + i,
                                                    .output = i % 10 != 0,
                                                    .message = i % 10 != 0 ? "1" : "0",
                                                    .fields = "{}"},
                                &e),
                  0);
    CHECK_INT(logs_of(s, 1, &a), 50);
    CHECK_INT(store_output_prune(s, 1, 20, &e), 0);
    CHECK_INT(logs_of(s, 1, &a), 10 + 20); /* what happened stays */
    CHECK_INT(logs_of(s, 2, &b), 50);      /* and so do others */
    CHECK_INT(a + b, 20 + 50);
    CHECK_INT(store_logs_prune(s, 0, 20, &more, &e), 0);
    CHECK(!more);
    CHECK_INT(logs_of(s, 1, &a) + logs_of(s, 2, &b), 20);
    CHECK_INT(a + b, 10); /* nothing that happened is gone */
    CHECK_INT(store_logs_prune(s, 0, 5, &more, &e), 0);
    CHECK_INT(logs_of(s, 1, &a) + logs_of(s, 2, &b), 5);
    CHECK_INT(a + b, 0);
    CHECK_INT(store_log_mark(s, 1, "boot", 42, &e), 0);
    CHECK_INT(store_log_mark(s, 99, "boot", 42, &e), 0); /* of no sandbox */
    CHECK_INT(all(s).n, 1);
    store_close(s);
}

TEST(a_tunnel_is_found_by_its_port_and_goes_with_its_sandbox)
{
    struct store *s = open_ok(fresh("tunnels"));
    struct store_sandbox row = row_of("sb");
    struct store_tunnel t = {.port = 8080, .token = "0123456789abcdef", .name = "app"}, got;
    uint64_t n = 9;
    struct err e;

    CHECK_INT(store_tunnel_put(s, "sb", &t, &e), -1); /* of no sandbox */
    CHECK_INT(store_sandbox_insert(s, &row, &e), 0);
    CHECK_INT(store_tunnel_get(s, "sb", 8080, &got, &e), 0);
    CHECK_INT(store_tunnel_put(s, "sb", &t, &e), 0);
    CHECK_INT(store_tunnel_put(s, "sb", &t, &e), -1);
    CHECK_INT(store_tunnel_get(s, "sb", 8080, &got, &e), 1);
    CHECK_STR(got.token, t.token);
    CHECK_STR(got.name, "app");
    CHECK_INT(store_tunnel_get(s, "sb", 8081, &got, &e), 0);
    CHECK_INT(store_tunnel_count(s, "sb", &n, &e), 0);
    CHECK_INT(n, 1);
    CHECK_INT(store_tunnel_delete(s, "sb", 1, &e), 0);
    CHECK_INT(store_sandbox_delete(s, "sb", &e), 0);
    CHECK_INT(store_tunnel_count(s, "sb", &n, &e), 0);
    CHECK_INT(n, 0);
    store_close(s);
}
