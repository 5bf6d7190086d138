/* fuzz_image.c - the parsers of image archives: the first byte selects the parser, the rest is
 * its input. */
#include <sys/mman.h>
#include <unistd.h>

#include "front/engine/image.h"
#include "fuzz.h"
#include "helper/archive/tar.h"
#include "helper/image/manifest.h"
#include "helper/tree/path.h"

static void docker(const char *p, size_t n)
{
    static struct manifest m;
    struct err e;

    if (manifest_docker(p, n, &m, &e) == 0)
        FUZZ_MUST(m.nlayers > 0 && m.nlayers <= IMAGE_LAYERS_MAX && m.config[0] != '\0');
}

static void index_(const char *p, size_t n)
{
    struct manifest_ref r;
    struct err e;

    if (manifest_index(p, n, &r, &e) == 0)
        FUZZ_MUST(strlen(r.digest) == SHA256_HEX - 1);
}

static void oci(const char *p, size_t n)
{
    static struct manifest m;
    struct err e;

    if (manifest_oci(p, n, &m, &e) == 0)
        FUZZ_MUST(m.nlayers > 0 && m.nlayers <= IMAGE_LAYERS_MAX);
}

static void config(const char *p, size_t n)
{
    static struct manifest_config c;
    struct err e;

    if (manifest_config(p, n, &c, &e) == 0)
        FUZZ_MUST(c.nlayers > 0 && c.settings != NULL);
    manifest_config_free(&c);
}

static void result(const char *p, size_t n)
{
    struct image_result r;
    struct buf out = BUF_INIT(IMAGE_SETTINGS_MAX * 2);
    struct err e;

    image_result_init(&r);
    if (image_result_read(p, n, &r, &e) == 0)
        FUZZ_MUST(image_defaults(buf_data(&r.settings), r.settings.len, &out, &e) == 0);
    buf_free(&out);
    image_result_free(&r);
}

static void entries(struct tar *t)
{
    char path[PATH_ROOM];
    struct archive_entry *en;
    struct err e;

    while (tar_next(t, &en, &e) > 0) {
        const void *data;
        int64_t off;
        size_t n;

        if (path_clean(archive_entry_pathname(en), "name", path, &e) == 0)
            FUZZ_MUST(path[0] != '/' && strstr(path, "//") == NULL && strcmp(path, "..") != 0);
        while (tar_data(t, &data, &n, &off, &e) > 0)
            continue;
    }
}

static void archive(const char *p, size_t n)
{
    static struct tar t;
    struct source *s;
    struct err e;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    FUZZ_MUST(fd >= 0 && write(fd, p, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
    s = source_open(fd, NULL, &e);
    if (s != NULL && tar_open(&t, s, &e) == 0) {
        entries(&t);
        tar_close(&t);
    }
    source_close(s);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void (*const parts[])(const char *p, size_t n) = {docker, index_,  oci,
                                                             config, archive, result};
    char *p;

    if (n == 0)
        return 0;
    p = fuzz_copy(data + 1, n - 1);
    parts[data[0] % (sizeof(parts) / sizeof(parts[0]))](p, n - 1);
    free(p);
    return 0;
}
