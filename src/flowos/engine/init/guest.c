#define _GNU_SOURCE
#include "guest.h"

#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "initrd.h"
#include "pump.h"
#include "run_folder.h"

enum { BEAT_MILLISECONDS = 2000, LOOK_MICROSECONDS = 1000, PATH_BYTES = 4096 };

static const char disk[] = "/dev/vda";
static const char share_options[] =
    "trans=virtio,version=9p2000.L,msize=512000,access=any,cache=mmap";

struct guest {
  int control, input, output, errors; /* ports */
  char* next;                         /* field of the request */
  int signals, lifeline;
  pid_t command; /* flowos-init */
  int status;
  bool reaped;
  unsigned long long input_bytes; /* of all there is, once `no_input` */
  bool no_input;
  time_t beat_at;
  struct message coming;
  size_t got;
};

static void open_ports(struct guest* guest) {
  guest->control = open_when_there("/dev/vport*p1", O_RDWR);
  guest->input = open_when_there("/dev/vport*p2", O_RDONLY | O_NONBLOCK);
  guest->output = open_when_there("/dev/vport*p3", O_WRONLY | O_NONBLOCK);
  guest->errors = open_when_there("/dev/vport*p4", O_WRONLY | O_NONBLOCK);
}

/* ---- the image ---- */

static void make_folders(const char* path, const char* last_is_file) {
  char part[PATH_BYTES];
  for (const char* end = path + 1;; end++) {
    if (*end != '/' && *end != '\0') continue;
    snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
    if (*end == '\0' && *last_is_file != '\0')
      close(open(part, O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
    else
      mkdir(part, S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH);
    if (*end == '\0') return;
  }
}

static void complete_devices(void) {
  mkdir("/dev/shm", S_IRWXU);
  mkdir("/dev/pts", S_IRWXU);
  must_mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  must_mount("pts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "mode=620,ptmxmode=666");
  (void)!symlink("/proc/self/fd", "/dev/fd");
  (void)!symlink("/proc/self/fd/0", "/dev/stdin");
  (void)!symlink("/proc/self/fd/1", "/dev/stdout");
  (void)!symlink("/proc/self/fd/2", "/dev/stderr");
  struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ioctl(any, SIOCSIFFLAGS, &lo);
  close(any);
}

/* ---- the request ---- */

static void read_whole(int fd, char* to, size_t size) {
  for (size_t have = 0; have < size;) {
    ssize_t got = read_some(fd, to + have, size - have);
    if (got > 0)
      have += (size_t)got;
    else
      usleep(LOOK_MICROSECONDS); /* the other end is not open yet */
  }
}

static void read_request(struct guest* guest) {
  unsigned size = 0;
  read_whole(guest->control, (char*)&size, sizeof size);
  guest->next = malloc(size + 1);
  if (guest->next == NULL) give_up("no memory for", "the request");
  read_whole(guest->control, guest->next, size);
}

static char* field(struct guest* guest) {
  char* found = guest->next;
  guest->next += strlen(found) + 1;
  return found;
}

static long long number(struct guest* guest) { return strtoll(field(guest), NULL, 10); }

struct user {
  uid_t uid;
  gid_t gid;
  gid_t groups[256];
  size_t n_groups;
};

static struct user read_user(struct guest* guest) {
  struct user user = {.uid = (uid_t)number(guest)};
  user.gid = (gid_t)number(guest);
  user.n_groups = (size_t)number(guest);
  for (size_t i = 0; i < user.n_groups; i++) user.groups[i] = (gid_t)number(guest);
  return user;
}

static void take_clock_and_name(struct guest* guest) {
  struct timespec now = {.tv_sec = (time_t)number(guest)};
  now.tv_nsec = (long)number(guest);
  clock_settime(CLOCK_REALTIME, &now);
  const char* name = field(guest);
  sethostname(name, strlen(name));
}

/* Of the node, in place of the image's. */
static void write_copies(struct guest* guest) {
  int count = (int)number(guest);
  for (int i = 0; i < count; i++) {
    const char* path = field(guest);
    const char* content = field(guest);
    make_folders(path, "file");
    int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (file < 0 || write(file, content, strlen(content)) < 0) give_up("cannot write", path);
    close(file);
  }
}

static void mount_share(int i, const char* target, const char* mode, const char* file) {
  char tag[16];
  char place[64];
  unsigned long flags = strcmp(mode, "ro") == 0 ? MS_RDONLY : 0;
  snprintf(tag, sizeof tag, "s%d", i);
  make_folders(target, file);
  if (*file == '\0') {
    must_mount(tag, target, "9p", flags, share_options);
    return;
  }
  char source[PATH_BYTES];
  snprintf(place, sizeof place, "/dev/.flowos-%d", i);
  snprintf(source, sizeof source, "%s/%s", place, file);
  mkdir(place, S_IRWXU);
  must_mount(tag, place, "9p", flags, share_options);
  must_mount(source, target, NULL, MS_BIND, NULL);
  umount2(place, MNT_DETACH);
  rmdir(place);
}

static void mount_shares(struct guest* guest) {
  int count = (int)number(guest);
  for (int i = 0; i < count; i++) {
    const char* target = field(guest);
    const char* mode = field(guest);
    mount_share(i, target, mode, field(guest));
  }
  mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
}

static char** read_words(struct guest* guest) {
  size_t count = (size_t)number(guest);
  char** words = (char**)calloc(count + 1, sizeof *words);
  if (words == NULL) give_up("no memory for", "the words");
  for (size_t i = 0; i < count; i++) words[i] = field(guest);
  return words;
}

/* ---- the command ---- */

/* Its own come from its supervisor, and cannot raise these. */
static void raise_limits(void) {
  for (int which = 0; which < RLIM_NLIMITS; which++) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (which == RLIMIT_NOFILE) limit = (struct rlimit){1 << 20, 1 << 20};
    setrlimit((unsigned)which, &limit);
  }
}

static _Noreturn void become_init(const struct user* user, int (*run)(char** argv), char** words,
                                  const int* streams) {
  setsid();
  for (int fd = 0; fd < 3; fd++) dup2(streams[fd], fd);
  raise_limits();
  if (setgroups(user->n_groups, user->groups) != 0 || setgid(user->gid) != 0 ||
      setuid(user->uid) != 0)
    _exit(EXIT_FAILURE);
  _exit(run(words));
}

static void start(struct guest* guest, const struct user* user, int (*run)(char** argv),
                  char** words, struct pump* pumps) {
  int ends[3][2];
  int streams[3];
  for (int fd = 0; fd < 3; fd++) {
    if (pipe2(ends[fd], O_CLOEXEC) != 0) give_up("no pipe for", "the streams");
    streams[fd] = ends[fd][fd == 0 ? 0 : 1];
    int ours = ends[fd][fd == 0 ? 1 : 0];
    fcntl(ours, F_SETFL, O_NONBLOCK);
    *(fd == 0 ? &pumps[0].to : &pumps[fd].from) = ours;
  }
  guest->command = fork();
  if (guest->command == 0) become_init(user, run, words, streams);
  if (guest->command < 0) give_up("cannot start", words[0]);
  for (int fd = 0; fd < 3; fd++) close(streams[fd]);
}

static void obey(struct guest* guest, struct pump* pumps) {
  if (!next_message(guest->control, &guest->coming, &guest->got)) return;
  const struct message* message = &guest->coming;
  if (message->what == SIGNAL && !guest->reaped) kill(guest->command, message->number);
  if (message->what == GONE && guest->lifeline >= 0) {
    close(guest->lifeline);
    guest->lifeline = -1;
  }
  if (message->what == NO_INPUT) {
    guest->no_input = true;
    guest->input_bytes = message->bytes[0];
  }
  if (message->what == CLOSED) {
    struct pump* pump = &pumps[message->number - INPUT];
    close(pump->from); /* what is written now fails, as it would without us */
    pump->ended = true;
  }
}

/* All of the input has gone to the command, or it reads no more. */
static void end_input(const struct guest* guest, struct pump* input) {
  bool all = guest->no_input && input->given >= guest->input_bytes;
  if ((all || guest->reaped) && !input->ended) {
    input->ended = true;
    input->have = 0;
    close(input->to);
  }
}

/* Whatever else there is to do: input alone is not heard on the other side. */
static void beat(struct guest* guest) {
  time_t now = time(NULL);
  if (now < guest->beat_at) return;
  guest->beat_at = now + BEAT_MILLISECONDS / 1000;
  send_message(guest->control, (struct message){BEAT, 0, {0}});
}

static void wait_once(struct guest* guest, struct pump* pumps) {
  struct signalfd_siginfo info;
  struct pollfd on[] = {{guest->control, POLLIN, 0},
                        {guest->signals, POLLIN, 0},
                        waits_for(&pumps[0]),
                        waits_for(&pumps[1]),
                        waits_for(&pumps[2])};
  poll(on, 5, BEAT_MILLISECONDS);
  beat(guest);
  if ((on[0].revents & POLLIN) != 0) obey(guest, pumps);
  if (on[1].revents != 0) (void)!read(guest->signals, &info, sizeof info);
  for (int i = 0; i < 3; i++) pump_some(&pumps[i], on[2 + i].revents);
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    if (pid == guest->command) {
      guest->reaped = true;
      guest->status = status;
    }
  end_input(guest, &pumps[0]);
}

static bool all_sent(const struct pump* pump) { return pump->ended && is_empty(pump); }

static _Noreturn void serve(struct guest* guest, struct pump* pumps) {
  while (!guest->reaped || !all_sent(&pumps[1]) || !all_sent(&pumps[2])) wait_once(guest, pumps);
  int code =
      WIFSIGNALED(guest->status) ? 128 + WTERMSIG(guest->status) : WEXITSTATUS(guest->status);
  sync();
  send_message(guest->control, (struct message){ENDED, code, {pumps[1].given, pumps[2].given}});
  for (;;) pause();
}

_Noreturn void be_guest(int (*run)(char** argv)) {
  static struct pump pumps[3]; /* from INPUT, to OUTPUT, to ERRORS */
  struct guest guest = {.next = NULL};
  sigset_t all;
  char lifeline[PATH_BYTES];
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  mount_own();
  fill_streams("/dev/null");
  load_modules();
  open_ports(&guest);
  close(open_when_there(disk, O_RDONLY));
  enter_image(disk);
  complete_devices();
  read_request(&guest);
  const struct user user = read_user(&guest);
  take_clock_and_name(&guest);
  write_copies(&guest);
  mount_shares(&guest);
  char** words = read_words(&guest);
  snprintf(lifeline, sizeof lifeline, "%s/lifeline", words[1]);
  /* a FIFO of this kernel's own */
  guest.lifeline = open(lifeline, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  guest.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  pumps[0].from = guest.input;
  pumps[0].is_port = true;
  pumps[1].to = guest.output;
  pumps[2].to = guest.errors;
  send_message(guest.control, (struct message){STARTED, 0, {0}});
  start(&guest, &user, run, words, pumps);
  serve(&guest, pumps);
}
