// A library to be preloaded by a server, which sets the server's wall clock
// ahead or behind, and makes its flushes to disk late, by the values in a file.
// The file is shared with the process that injects the fault: clock_shim.go
// writes it, and has the same layout.
//
// The kernel is asked without the C library: an allocator that asks for the time
// while it is set up must neither be called from here nor wait for the dynamic
// linker. Clocks that no administrator can set are passed on as they are.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(long) == 8, "times are kept in one word: this needs a 64-bit system");

struct state {
	int64_t ahead;   // of the wall clock, in nanoseconds; behind if negative
	int64_t late;    // by which each flush is, in nanoseconds
	int64_t read;    // readings of the wall clock
	int64_t flushed; // flushes that were late
};

static struct state *state;

static const int64_t second = 1000000000;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("LOCKBENCH_SHIM");
	if (!path)
		return;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	long at = syscall(SYS_mmap, 0L, sizeof(struct state), (long)(PROT_READ | PROT_WRITE), (long)MAP_SHARED, (long)fd, 0L);
	syscall(SYS_close, fd);
	if (at != -1)
		__atomic_store_n(&state, (struct state *)at, __ATOMIC_RELEASE);
}

static struct state *now(void) { return __atomic_load_n(&state, __ATOMIC_ACQUIRE); }

static int64_t ahead(void)
{
	struct state *s = now();
	return s ? __atomic_load_n(&s->ahead, __ATOMIC_RELAXED) : 0;
}

// shift moves a time by so many nanoseconds, and not before 1970.
static void shift(struct timespec *t, int64_t by)
{
	int64_t sum = t->tv_nsec + by % second;
	t->tv_sec += by / second;
	if (sum < 0) {
		sum += second;
		t->tv_sec--;
	} else if (sum >= second) {
		sum -= second;
		t->tv_sec++;
	}
	t->tv_nsec = sum;
	if (t->tv_sec < 0)
		t->tv_sec = t->tv_nsec = 0;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	long failed = syscall(SYS_clock_gettime, clock, t);
	if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return (int)failed;
	struct state *s = now();
	if (s) {
		__atomic_fetch_add(&s->read, 1, __ATOMIC_RELAXED);
		shift(t, ahead());
	}
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	struct timespec t;
	if (tz && syscall(SYS_gettimeofday, 0L, tz))
		return -1;
	if (clock_gettime(CLOCK_REALTIME, &t))
		return -1;
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec t;
	if (clock_gettime(CLOCK_REALTIME_COARSE, &t))
		return -1;
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

// A program that waits until a time of the wall clock has computed it from the
// clock above, and the kernel knows only its own. Without the functions below, a
// wait for one second would be longer by as much as the clock is ahead. (Waits
// under way when the clock is set keep their length.)

// kernel is the kernel's time for one of ours.
static struct timespec kernel(const struct timespec *t)
{
	struct timespec k = *t;
	shift(&k, -ahead());
	return k;
}

// A condition may wait by either clock, as set in its attributes, which cannot be
// read. The time itself shows which: no machine has been up for thirty years.
static const int64_t thirty_years = 946080000;

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict t)
{
	if (t->tv_sec < thirty_years)
		return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, t);
	struct timespec k = kernel(t);
	return pthread_cond_clockwait(cond, mutex, CLOCK_REALTIME, &k);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict t)
{
	struct timespec k = kernel(t);
	return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &k);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict t)
{
	struct timespec k = kernel(t);
	return sem_clockwait(sem, CLOCK_REALTIME, &k);
}

static int64_t late(void)
{
	struct state *s = now();
	return s ? __atomic_load_n(&s->late, __ATOMIC_RELAXED) : 0;
}

// wait_late delays a flush for as long as the file specifies, and reads the file
// again and again, so that waits end when the disk is fast once more.
static void wait_late(void)
{
	const int64_t look = second / 100;
	int64_t waited = 0, left;
	if (late() > 0)
		__atomic_fetch_add(&now()->flushed, 1, __ATOMIC_RELAXED);
	while ((left = late() - waited) > 0) {
		struct timespec t = {0, left < look ? left : look};
		while (syscall(SYS_nanosleep, &t, &t) && errno == EINTR)
			;
		waited += look;
	}
}

int fsync(int fd)
{
	wait_late();
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	wait_late();
	return (int)syscall(SYS_fdatasync, fd);
}
