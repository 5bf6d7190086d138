/* replay.c - feeds every file named, or found in a directory named, to the
 * harness it is linked with: the seeds as a test, without libFuzzer. */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/own.h"
#include "fuzz.h"

#define INPUT_MAX (16u << 20)

static unsigned fed;

static int feed_file(const char *path)
{
    autobuf struct buf b = BUF_INIT(INPUT_MAX);
    FILE *f = fopen(path, "rb");
    size_t n = 1;

    if (f == NULL) {
        perror(path);
        return -1;
    }
    while (n > 0) {
        char *room = buf_room(&b, 65536);

        n = room != NULL ? fread(room, 1, 65536, f) : 0;
        buf_added(&b, n);
    }
    fclose(f);
    LLVMFuzzerTestOneInput((const uint8_t *)buf_data(&b), b.len);
    fed++;
    return 0;
}

static int feed_dir(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *ent;
    int r = d != NULL ? 0 : -1;

    while (r == 0 && (ent = readdir(d)) != NULL) {
        char file[4096];

        if (ent->d_name[0] == '.')
            continue;
        snprintf(file, sizeof(file), "%s/%s", path, ent->d_name);
        r = feed_file(file);
    }
    if (d != NULL)
        closedir(d);
    return r;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat st;

        if (stat(argv[i], &st) < 0 ||
            (S_ISDIR(st.st_mode) ? feed_dir(argv[i]) : feed_file(argv[i])) < 0)
            return 1;
    }
    printf("%u inputs\n", fed);
    return fed > 0 ? 0 : 1;
}
