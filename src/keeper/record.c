/* record.c - what exists, on disk: one fixed file per sandbox.
 *
 * One pwrite within one page replaces the whole record, so a reader never
 * sees half of one; the sum catches the rest. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "keeper/file.h"
#include "keeper/host.h"

static uint64_t record_sum(const struct record *r)
{
    return file_sum(r, offsetof(struct record, sum));
}

int record_save(struct sandbox *sb, bool durable, struct err *e)
{
    int fd = sb->record_fd;

    if (fd < 0)
        fd = sb->record_fd = openat(sb->k->records_fd, sb->rec.id,
                                    O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(e, "record %s", sb->rec.id);
    sb->rec.sum = record_sum(&sb->rec);
    if (pwrite(fd, &sb->rec, sizeof(sb->rec), 0) != (ssize_t)sizeof(sb->rec))
        return err_sys(e, "write record %s", sb->rec.id);
    if (!durable)
        return 0;
    /* fsync, not fdatasync: for a file just made it commits the directory entry
     * too on the file systems we care about (ext4, btrfs, xfs). */
    if (fsync(fd) < 0)
        return err_sys(e, "fsync record %s", sb->rec.id);
    return 0;
}

int record_load(struct keeper *k, const char *id, struct record *ret, struct err *e)
{
    autofd int fd = openat(k->records_fd, id, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return err_sys(e, "record %s", id);
    if (pread(fd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret) || ret->magic != RECORD_MAGIC ||
        ret->version != RECORD_VERSION || ret->sum != record_sum(ret) || strcmp(ret->id, id) != 0 ||
        ret->phase >= PHASE_COUNT || ret->stage > stage_count)
        return err_set(e, ERR_INTERNAL, "record %s is damaged", id);
    return 0;
}

void record_remove(struct sandbox *sb)
{
    drop_fd(&sb->record_fd);
    if (unlinkat(sb->k->records_fd, sb->rec.id, 0) < 0 && errno != ENOENT)
        log_warn("remove record %s: %s", sb->rec.id, strerror(errno));
}
