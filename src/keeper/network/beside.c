/* beside.c - see beside.h.
 *
 * The rules are read and written with the host's own iptables, in each of its two kinds that is in
 * use: a rule that was written by other means may be one that iptables cannot show, and then it
 * shows none. The older kind announces no changes, so both are looked at from time to time. */
#include "keeper/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <nftables/libnftables.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/network/firewall.h"
#include "loop/job.h"

#define LIST_MAX (256u << 10) /* of one chain, or the names of all; the rest is not read */
#define LINE_MAX_BYTES 512u
#define AGAIN_MS 30000
#define SOON_MS 300 /* Docker changes its chains one rule at a time */
#define USER "DOCKER-USER"

/* ---- what others have ---- */

struct host {
    struct nft_ctx *nft;
    struct buf text; /* of the last answer */
};

/* Output of a command for nftables in h->text. False: it failed, as for what does not exist. */
static bool ask_nft(struct host *h, const char *command)
{
    const char *out;
    bool done = nft_run_cmd_from_buffer(h->nft, command) == 0;

    buf_clear(&h->text);
    out = nft_ctx_get_output_buffer(h->nft);
    if (done && out != NULL)
        buf_add(&h->text, out, strnlen(out, LIST_MAX));
    nft_ctx_get_error_buffer(h->nft); /* which empties it */
    return done;
}

static void read_all(int fd, struct buf *out)
{
    char piece[4096];
    ssize_t n;

    while ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && out->len + (size_t)n <= LIST_MAX)
            buf_add(out, piece, (size_t)n);
}

/* Runs a program of the host; its output in `out`. False: it failed or is not there. */
static bool run(const char *const argv[], struct buf *out)
{
    static const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
    posix_spawn_file_actions_t fa;
    autofd int in = -1, to = -1;
    int pipes[2], status, r;
    pid_t pid;

    buf_clear(out);
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return false;
    in = pipes[0];
    to = pipes[1];
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, to, 1);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    r = posix_spawnp(&pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv,
                     (char *const *)(uintptr_t)envp);
    posix_spawn_file_actions_destroy(&fa);
    drop_fd(&to);
    if (r != 0)
        return false;
    read_all(in, out);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Newer kernels' tables; asked for first, since iptables would make them. */
static bool uses_nft(struct host *h)
{
    return h->nft != NULL && ask_nft(h, "list chain ip filter FORWARD");
}

static bool uses_legacy(struct host *h)
{
    autofd int fd = open("/proc/net/ip_tables_names", O_RDONLY | O_CLOEXEC);
    char names[256];
    ssize_t n = fd < 0 ? -1 : read(fd, names, sizeof(names) - 1);

    (void)h;
    names[n < 0 ? 0 : n] = '\0';
    return strstr(names, "filter\n") != NULL;
}

static const struct kind {
    const char *tool;
    bool (*is_used)(struct host *h);
} kinds[] = {{"iptables-nft", uses_nft}, {"iptables-legacy", uses_legacy}};

/* The rules of a chain as lines "-A CHAIN ..."; false: there is no such chain. */
static bool list(struct host *h, const struct kind *kind, const char *chain)
{
    const char *const argv[] = {kind->tool, "-w", "5", "-S", chain, NULL};

    return run(argv, &h->text);
}

static bool host_open(struct host *h)
{
    struct err ignored;

    *h = (struct host){.text = BUF_INIT(LIST_MAX + 1)};
    return firewall_open(&h->nft, &ignored) == 0;
}

static void host_close(struct host *h)
{
    firewall_close(h->nft);
    buf_free(&h->text);
}

/* Has the answer this line? */
static bool has_line(struct host *h, const char *line)
{
    size_t n = strlen(line);

    for (const char *p = buf_cstr(&h->text); p != NULL && *p != '\0';) {
        if (strncmp(p, line, n) == 0 && (p[n] == '\n' || p[n] == '\0'))
            return true;
        p = strchr(p, '\n');
        p = p == NULL ? NULL : p + 1;
    }
    return false;
}

/* ---- our rules in DOCKER-USER ---- */

static const char *const ways[] = {"-i", "-o"};

/* 1 for the first rule; 0: at the end. Docker used to put a RETURN at the end of the chain. */
static unsigned place_in(struct host *h)
{
    static const char end[] = "-A " USER " -j RETURN\n";
    const char *text = buf_cstr(&h->text);
    size_t n = strlen(text);
    unsigned rules = 0;

    for (const char *p = text; (p = strstr(p, "-A " USER)) != NULL; p++)
        rules++;
    return n >= strlen(end) && strcmp(text + n - strlen(end), end) == 0 ? rules : 0;
}

static void change(struct host *h, const struct kind *kind, const char *tag, const char *way,
                   bool add)
{
    char line[64], interfaces[32], place[16];
    unsigned at;

    if (!list(h, kind, USER))
        return;
    str_fmt(interfaces, sizeof(interfaces), "cv%s+", tag);
    str_fmt(line, sizeof(line), "-A " USER " %s %s -j ACCEPT", way, interfaces);
    if (has_line(h, line) == add)
        return;
    at = add ? place_in(h) : 0;
    str_fmt(place, sizeof(place), "%u", at);
    if (at > 0)
        run((const char *const[]){kind->tool, "-w", "5", "-I", USER, place, way, interfaces, "-j",
                                  "ACCEPT", NULL},
            &h->text);
    else
        run((const char *const[]){kind->tool, "-w", "5", add ? "-A" : "-D", USER, way, interfaces,
                                  "-j", "ACCEPT", NULL},
            &h->text);
}

static void change_all(const char *tag, bool add)
{
    struct host h;

    if (host_open(&h))
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
            for (size_t j = 0; kinds[i].is_used(&h) && j < ARRAY_LEN(ways); j++)
                change(&h, &kinds[i], tag, ways[j], add);
    host_close(&h);
}

void beside_give_back(const struct keeper *k)
{
    change_all(k->tag, false);
}

/* ---- what is in the way ---- */

#define SAY(...) (snprintf(text, BESIDE_TEXT_MAX, __VA_ARGS__), BESIDE_BLOCKED)

static bool drops(struct host *h)
{
    return has_line(h, "-P FORWARD DROP") || has_line(h, "-A FORWARD -j DROP") ||
           has_line(h, "-A FORWARD -j REJECT --reject-with icmp-port-unreachable") ||
           has_line(h, "-A FORWARD -j REJECT --reject-with icmp-host-prohibited");
}

/* A rule of the chain accepts what comes from our interfaces. */
static bool accepts(struct host *h, const struct kind *kind, const char *chain, const char *tag)
{
    char ours[40];

    str_fmt(ours, sizeof(ours), " -i cv%s", tag);
    return list(h, kind, chain) && (strstr(buf_cstr(&h->text), ours) != NULL ||
                                    strstr(buf_cstr(&h->text), " -i cv+") != NULL);
}

static enum beside look_at(struct host *h, const struct kind *kind, const char *tag, char *text)
{
    bool docker, ufw;

    if (!kind->is_used(h) || !list(h, kind, "FORWARD") || !drops(h))
        return BESIDE_FREE;
    docker = has_line(h, "-A FORWARD -j " USER);
    if (docker && (*tag == '\0' || accepts(h, kind, USER, tag)))
        return BESIDE_FREE; /* `cove serve` adds its rules */
    ufw = list(h, kind, "ufw-user-forward");
    if (accepts(h, kind, "FORWARD", tag) || (ufw && accepts(h, kind, "ufw-user-forward", tag)))
        return BESIDE_FREE;
    if (ufw)
        return SAY("ufw drops what the host forwards (policy of FORWARD); `ufw route allow in on "
                   "cv%s+` lets sandboxes out",
                   tag);
    return SAY("%s: chain FORWARD of table filter drops by default%s; `%s -A FORWARD -i cv%s+ -j "
               "ACCEPT` and the same with -o let sandboxes out",
               kind->tool, docker ? ", and DOCKER-USER could not be changed" : "", kind->tool, tag);
}

/* A chain of nftables outside iptables, from the list of all: "table inet filter {", "\tchain
 * forward {", "\t\ttype filter hook forward priority filter; policy drop;". */
static enum beside look_at_chains(struct host *h, const char *tag, char *text)
{
    char table[128] = "", chain[128] = "", command[160], ours[40];
    autobuf struct buf all = BUF_INIT(LIST_MAX + 1);
    char *next;

    if (h->nft == NULL || !ask_nft(h, "list chains"))
        return BESIDE_FREE;
    buf_add(&all, buf_data(&h->text), h->text.len);
    str_fmt(ours, sizeof(ours), "\"cv%s", tag);
    for (char *line = (char *)(uintptr_t)buf_cstr(&all); line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (sscanf(line, "table %127[^{]", table) == 1 ||
            sscanf(line, " chain %127[^ {]", chain) == 1 || strstr(line, "hook forward") == NULL ||
            strstr(line, "policy drop") == NULL)
            continue;
        table[strcspn(table, "{")] = '\0';
        if ((strncmp(table, "ip filter ", 10) == 0 && list(h, &kinds[0], "FORWARD")) ||
            (strncmp(table, "ip ", 3) != 0 && strncmp(table, "inet ", 5) != 0))
            continue; /* was looked at, or is not for IPv4 */
        str_fmt(command, sizeof(command), "list table %.120s", table);
        if (!ask_nft(h, command) || strstr(buf_cstr(&h->text), ours) != NULL ||
            strstr(buf_cstr(&h->text), "\"cv*") != NULL)
            continue;
        return SAY("chain %.40s of nftables' table %.40sdrops by default; add to it `iifname "
                   "\"cv%s*\" accept` and `oifname \"cv%s*\" accept`",
                   chain, table, tag, tag);
    }
    return BESIDE_FREE;
}

static enum beside look_at_firewalld(struct host *h, const char *tag, char *text)
{
    if (h->nft == NULL || !ask_nft(h, "list table inet firewalld") ||
        strstr(buf_cstr(&h->text), "\"cv") != NULL)
        return BESIDE_FREE;
    snprintf(text, BESIDE_TEXT_MAX,
             "firewalld decides what the host forwards; if sandboxes have no network: "
             "`firewall-cmd --permanent --zone=trusted --add-interface=cv%s+`, then `firewall-cmd "
             "--reload`",
             tag);
    return BESIDE_PERHAPS;
}

enum beside beside_look(const char *tag, char text[BESIDE_TEXT_MAX])
{
    enum beside r = BESIDE_FREE;
    struct host h;

    *text = '\0';
    if (host_open(&h)) {
        for (size_t i = 0; r == BESIDE_FREE && i < ARRAY_LEN(kinds); i++)
            r = look_at(&h, &kinds[i], tag, text);
        if (r == BESIDE_FREE)
            r = look_at_chains(&h, tag, text);
        if (r == BESIDE_FREE)
            r = look_at_firewalld(&h, tag, text);
    }
    host_close(&h);
    return r;
}

/* ---- now, and when something changes ---- */

struct looking {
    struct job job;
    struct keeper *k;
    char tag[TAG_LEN + 1], text[BESIDE_TEXT_MAX];
};

static void look_run(struct job *w)
{
    struct looking *l = CONTAINER_OF(w, struct looking, job);

    change_all(l->tag, true);
    if (beside_look(l->tag, l->text) != BESIDE_BLOCKED)
        l->text[0] = '\0';
}

static void look_again(struct loop_timer *t);

static void look_done(struct job *w)
{
    struct looking *l = CONTAINER_OF(w, struct looking, job);
    struct network *n = &l->k->network;

    if (strcmp(n->beside, l->text) != 0 && l->text[0] != '\0')
        log_warn("network: sandboxes reach nothing: %s", l->text);
    else if (strcmp(n->beside, l->text) != 0)
        log_info("network: no other firewall is in the way of sandboxes any more");
    str_fmt(n->beside, sizeof(n->beside), "%s", l->text);
    n->looking = false;
    if (n->egress)
        loop_timer_set(l->k->loop, &n->beside_timer, n->look_again ? SOON_MS : AGAIN_MS,
                       look_again);
    n->look_again = false;
    free(l);
}

static struct looking *looking_new(struct keeper *k)
{
    struct looking *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return NULL;
    l->job.lane = JOB_DISK;
    l->k = k;
    str_fmt(l->tag, sizeof(l->tag), "%s", k->tag);
    return l;
}

static void look_again(struct loop_timer *t)
{
    struct keeper *k = CONTAINER_OF(t, struct keeper, network.beside_timer);
    struct looking *l = looking_new(k);

    if (l == NULL) {
        loop_timer_set(k->loop, t, AGAIN_MS, look_again);
        return;
    }
    k->network.looking = true;
    job_start(k->loop, &l->job, look_run, look_done);
}

/* At once: the first sandbox may be a moment away. */
void beside_start(struct keeper *k)
{
    struct looking *l = looking_new(k);

    if (l == NULL)
        return;
    look_run(&l->job);
    look_done(&l->job);
}

bool beside_is_chain(const char *chain)
{
    return strcmp(chain, USER) == 0 || strcmp(chain, "FORWARD") == 0 ||
           strcmp(chain, "forward") == 0 || strcmp(chain, "ufw-user-forward") == 0;
}

void beside_changed(struct keeper *k)
{
    if (k->network.looking)
        k->network.look_again = true;
    else if (k->network.egress)
        loop_timer_set(k->loop, &k->network.beside_timer, SOON_MS, look_again);
}

void beside_stop(struct keeper *k)
{
    loop_timer_stop(k->loop, &k->network.beside_timer);
}
