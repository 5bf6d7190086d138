/* endless.h - fake large allocations, for tests of bounds so large that writing that much
 * memory would take seconds.
 *
 * A large allocation is the same few pages mapped repeatedly: only the bytes written last
 * are there, and the contents must not be read. A test that includes
 * this is linked with --wrap (unit_wraps in meson.build). */
#ifndef ENDLESS_H
#define ENDLESS_H

#include <sys/mman.h>
#include <unistd.h>

#define ENDLESS_FROM (32u << 20)
#define ENDLESS_PAGES (2u << 20)

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void __real_free(void *p);
void __wrap_free(void *p);

static struct {
    char *at;
    size_t n;
} endless[8];

static char *endless_map(size_t n)
{
    static int fd = -1;
    char *at = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (fd < 0)
        fd = memfd_create("endless", MFD_CLOEXEC);
    CHECK_INT(ftruncate(fd, ENDLESS_PAGES), 0);
    for (size_t i = 0; i < n; i += ENDLESS_PAGES)
        CHECK(mmap(at + i, n - i < ENDLESS_PAGES ? n - i : ENDLESS_PAGES, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == at + i);
    return at;
}

void *__wrap_malloc(size_t n)
{
    if (n < ENDLESS_FROM)
        return __real_malloc(n);
    for (size_t i = 0; i < ARRAY_LEN(endless); i++)
        if (endless[i].at == NULL) {
            endless[i].n = n;
            return endless[i].at = endless_map(n);
        }
    return NULL;
}

void __wrap_free(void *p)
{
    for (size_t i = 0; i < ARRAY_LEN(endless); i++)
        if (p != NULL && endless[i].at == p) {
            munmap(p, endless[i].n);
            endless[i].at = NULL;
            return;
        }
    __real_free(p);
}

#endif
