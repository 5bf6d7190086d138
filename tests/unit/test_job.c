#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "loop/job.h"

struct task {
    struct job job;
    sem_t *hold; /* run waits for it, or NULL */
    pthread_t by;
    int ran, done;
};

static void run(struct job *w)
{
    struct task *j = CONTAINER_OF(w, struct task, job);

    if (j->hold != NULL)
        sem_wait(j->hold);
    j->by = pthread_self();
    j->ran++;
}

static void done(struct job *w)
{
    CONTAINER_OF(w, struct task, job)->done++;
}

static void until(struct loop *l, const int *n, int want)
{
    struct err e;

    for (int i = 0; *n < want && i < 2000; i++)
        CHECK_INT(loop_turn(l, 10, &e), 0);
    CHECK_INT(*n, want);
}

TEST(work_runs_in_a_thread_and_ends_on_the_loop)
{
    struct task j = {0};
    struct loop *l;
    struct err e;

    CHECK_INT(loop_new(&l, &e), 0);
    job_start(l, &j.job, run, done);
    CHECK(j.job.busy);
    until(l, &j.done, 1);
    CHECK_INT(j.ran, 1);
    CHECK(!pthread_equal(j.by, pthread_self()));
    CHECK(!j.job.busy);
    job_start(l, &j.job, run, done);
    until(l, &j.done, 2);
    loop_free(l);
}

TEST(lanes_that_are_opened_have_their_threads_and_run_beside_each_other)
{
    struct task hung = {.job.lane = JOB_FLUSH}, next = hung, other = {.job.lane = JOB_RESERVE};
    struct loop *l;
    struct err e;
    sem_t s;

    sem_init(&s, 0, 0);
    hung.hold = &s;
    CHECK_INT(loop_new(&l, &e), 0);
    CHECK(!job_is_busy(l));
    CHECK_INT(job_open(l, JOB_FLUSH, &e), 0);
    CHECK_INT(job_open(l, JOB_RESERVE, &e), 0);
    CHECK(!job_is_busy(l));
    job_start(l, &hung.job, run, done);
    job_start(l, &next.job, run, done);
    job_start(l, &other.job, run, done);
    until(l, &other.done, 1);
    CHECK_INT(next.ran, 0); /* the lane has one thread */
    CHECK(job_is_busy(l));
    sem_post(&s);
    until(l, &hung.done, 1);
    until(l, &next.done, 1);
    CHECK(!job_is_busy(l));
    loop_free(l);
    sem_destroy(&s);
}

TEST(a_job_that_hangs_does_not_delay_other_jobs)
{
    struct task hung = {0}, j = {0};
    struct loop *l;
    struct err e;
    sem_t s;

    sem_init(&s, 0, 0);
    hung.hold = &s;
    CHECK_INT(loop_new(&l, &e), 0);
    job_start(l, &hung.job, run, done);
    job_start(l, &j.job, run, done);
    until(l, &j.done, 1);
    CHECK_INT(hung.done, 0);
    sem_post(&s);
    until(l, &hung.done, 1);
    loop_free(l);
    sem_destroy(&s);
}

/* Jobs that hang, as many as `n`. */
struct hung {
    struct task tasks[JOB_THREADS_MAX];
    sem_t hold;
    unsigned n;
};

static void hang(struct loop *l, struct hung *h, unsigned n, enum job_lane lane, uint32_t share)
{
    sem_init(&h->hold, 0, 0);
    h->n = n;
    for (unsigned i = 0; i < n; i++) {
        h->tasks[i] = (struct task){.hold = &h->hold, .job.lane = lane, .job.share = share};
        job_start(l, &h->tasks[i].job, run, done);
    }
}

static void let_go(struct loop *l, struct hung *h)
{
    for (unsigned i = 0; i < h->n; i++)
        sem_post(&h->hold);
    for (unsigned i = 0; i < h->n; i++)
        until(l, &h->tasks[i].done, 1);
    sem_destroy(&h->hold);
}

TEST(closing_that_takes_its_time_holds_up_no_work)
{
    static struct hung h;
    struct task j = {0};
    struct loop *l;
    struct err e;

    CHECK_INT(loop_new(&l, &e), 0);
    hang(l, &h, JOB_THREADS_MAX, JOB_CLOSE, 0);
    job_start(l, &j.job, run, done);
    until(l, &j.done, 1);
    let_go(l, &h);
    loop_free(l);
}

TEST(one_key_cannot_take_all_threads_of_a_lane)
{
    const enum job_lane lanes[] = {JOB_WORK, JOB_CLOSE};

    for (size_t i = 0; i < ARRAY_LEN(lanes); i++) {
        static struct hung h;
        struct task other = {.job.lane = lanes[i], .job.share = job_share("other")};
        struct task ours = {.job.lane = lanes[i]}, same = other;
        struct loop *l;
        struct err e;

        CHECK_INT(loop_new(&l, &e), 0);
        hang(l, &h, JOB_THREADS_MAX, lanes[i], job_share("one"));
        job_start(l, &other.job, run, done);
        job_start(l, &ours.job, run, done);
        until(l, &other.done, 1);
        until(l, &ours.done, 1);
        same.job.share = job_share("one");
        job_start(l, &same.job, run, done);
        CHECK(job_is_awaited(l) == (lanes[i] == JOB_WORK));
        CHECK_INT(same.done, 0);
        let_go(l, &h);
        until(l, &same.done, 1);
        loop_free(l);
    }
}

TEST(keys_have_numbers_of_their_own)
{
    CHECK_INT(job_share(NULL), 0);
    CHECK(job_share("") != 0);
    CHECK(job_share("k1") != job_share("k2"));
    CHECK_INT(job_share("k1"), job_share("k1"));
}

TEST(a_job_that_no_thread_has_can_be_taken_back)
{
    struct task hung[JOB_THREADS_MAX], j = {0};
    struct loop *l;
    struct err e;
    sem_t s;

    sem_init(&s, 0, 0);
    CHECK_INT(loop_new(&l, &e), 0);
    for (unsigned i = 0; i < JOB_THREADS_MAX; i++) {
        hung[i] = (struct task){.hold = &s};
        job_start(l, &hung[i].job, run, done);
    }
    job_start(l, &j.job, run, done);
    /* The threads may take any of them first, but not more than they are. */
    if (job_cancel(l, &j.job))
        CHECK(!j.job.busy);
    for (unsigned i = 0; i < JOB_THREADS_MAX; i++)
        sem_post(&s);
    for (unsigned i = 0; i < JOB_THREADS_MAX; i++)
        until(l, &hung[i].done, 1);
    CHECK_INT(j.ran, 0);
    CHECK(!job_cancel(l, &j.job));
    loop_free(l);
    sem_destroy(&s);
}

TEST(an_fd_is_closed_by_a_thread)
{
    struct loop *l;
    struct err e;
    int pair[2], n = 0;
    char c;

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_INT(loop_new(&l, &e), 0);
    job_close(l, pair[0], 0);
    CHECK_INT(recv(pair[1], &c, 1, 0), 0);
    while (n++ < 3)
        CHECK_INT(loop_turn(l, 10, &e), 0);
    loop_free(l);
    close(pair[1]);
}
