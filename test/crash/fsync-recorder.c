/*
 * fsync-recorder.c: notes which bytes of which file are on the disk, for power cuts at the level of files; and makes
 * a disk that hangs.
 *
 * Preloaded into the daemon, it stands around fsync(), fdatasync() and unlink(). After the real call succeeded and
 * before it returns, one line goes to the file that FSYNC_RECORD names:
 *
 *   dev ino size    so many bytes of this file are durable; the size is taken before the call: what another
 *                   thread appends meanwhile may or may not be covered, so it does not count
 *   dev ino -1      the file is gone; its number may come again for another file, which has nothing durable yet
 *
 * A line is one write() with O_APPEND, so lines of several threads do not mix.
 *
 * The file that FSYNC_HOLD names has a number of milliseconds: so long fsync(), fdatasync(), rename() and statfs()
 * wait before the real call. It is read again all the time, so a call that waits goes on when the file is gone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static int record = -1;
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);
static int (*real_rename)(const char *, const char *);
static int (*real_statfs)(const char *, struct statfs *);
static const char *hold;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FSYNC_RECORD");
  *(void **)&real_fsync = dlsym(RTLD_NEXT, "fsync");
  *(void **)&real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  *(void **)&real_unlink = dlsym(RTLD_NEXT, "unlink");
  *(void **)&real_rename = dlsym(RTLD_NEXT, "rename");
  *(void **)&real_statfs = dlsym(RTLD_NEXT, "statfs");
  hold = getenv("FSYNC_HOLD");
  if (path != NULL) record = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static void note(const struct stat *file, long long size) {
  char line[96];
  int length = snprintf(line, sizeof line, "%llu %llu %lld\n", (unsigned long long)file->st_dev,
                        (unsigned long long)file->st_ino, size);
  if (record >= 0 && write(record, line, (size_t)length) != length) abort();
}

static void wait_for_disk(void) {
  for (long waited = 0; hold != NULL; waited += 10) {
    char text[32] = "";
    int fd = open(hold, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (read(fd, text, sizeof text - 1) < 0) abort();
    close(fd);
    if (waited >= atol(text)) return;
    usleep(10000);
  }
}

static int synced(int (*sync)(int), int fd) {
  wait_for_disk();
  struct stat file;
  int known = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
  int result = sync(fd);
  if (result == 0 && known) note(&file, (long long)file.st_size);
  return result;
}

int fsync(int fd) { return synced(real_fsync, fd); }

int fdatasync(int fd) { return synced(real_fdatasync, fd); }

int rename(const char *from, const char *to) {
  wait_for_disk();
  return real_rename(from, to);
}

int statfs(const char *path, struct statfs *found) {
  wait_for_disk();
  return real_statfs(path, found);
}

int statfs64(const char *path, struct statfs64 *found) { return statfs(path, (struct statfs *)found); }

int unlink(const char *path) {
  struct stat file;
  int known = lstat(path, &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 1;
  int result = real_unlink(path);
  if (result == 0 && known) note(&file, -1);
  return result;
}
