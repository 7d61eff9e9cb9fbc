/*
Commits the same transaction again and again at a steady rate, over connections that are logged in already.

    committer --command HEX --count N --rate PER_SECOND FD...

HEX is the packet of one statement that commits by itself. Says "ready", waits for a line on its input, and
commits N times, each when it is due (number / rate seconds after the beginning) on a connection that is
free; one that is late waits for nothing. In the end it prints

    committed start_ns end_ns p50_ns p99_ns

with the times from sending a statement to its answer. An answer that is an error ends it with status 1.
*/
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1024, COMMAND_MAX = 65536, ANSWER_MAX = 65536, COUNT_MAX = 16 << 20, SILENCE_MS = 60000 };

static uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "committer: %s: %s\n", what, errno ? strerror(errno) : "wrong argument");
    exit(1);
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    static unsigned char command[COMMAND_MAX], answer[ANSWER_MAX];
    static struct pollfd polled[CONNECTIONS_MAX];
    static uint64_t sent_at[CONNECTIONS_MAX]; /* 0: free */
    size_t size = 0;
    uint64_t total = 0, sent = 0, done = 0;
    double rate = 0;
    int connections = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--count")) total = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--rate")) rate = atof(value), i++;
        else if (!strcmp(argv[i], "--command")) {
            unsigned byte;
            for (; *value && size < COMMAND_MAX; value += 2, command[size++] = (unsigned char)byte)
                if (sscanf(value, "%2x", &byte) != 1) fail("command");
            i++;
        } else if (connections == CONNECTIONS_MAX) fail("connections");
        else polled[connections++] = (struct pollfd){.fd = atoi(argv[i]), .events = POLLIN};
    }
    if (!size || !total || total > COUNT_MAX || rate <= 0 || !connections) fail("--command, --count, --rate, FD");
    uint32_t *taken = malloc(total * sizeof *taken);
    if (!taken) fail("memory");
    puts("ready");
    fflush(stdout);
    for (char byte = 0; byte != '\n';)
        if (read(0, &byte, 1) != 1) return 0;
    uint64_t start = clock_ns(), now = start;
    while (done < total) {
        int busy = 0, idle = 0;
        for (int i = 0; i < connections; i++) {
            uint64_t due = start + (uint64_t)((double)sent * 1e9 / rate);
            if (!sent_at[i] && sent < total && due <= now) {
                sent_at[i] = clock_ns();
                if (send(polled[i].fd, command, size, MSG_NOSIGNAL) != (ssize_t)size) fail("send");
                sent++;
            }
            if (sent_at[i]) busy++;
            else idle++;
        }
        uint64_t due = start + (uint64_t)((double)sent * 1e9 / rate);
        struct timespec wait = {SILENCE_MS / 1000, 0};
        if (idle && sent < total) {
            now = clock_ns();
            uint64_t left = due > now ? due - now : 0;
            wait = (struct timespec){(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        }
        int ready = ppoll(polled, (nfds_t)connections, &wait, NULL);
        if (ready < 0 && errno != EINTR) fail("poll");
        if (ready == 0 && busy && !(idle && sent < total)) errno = ETIMEDOUT, fail("answer");
        now = clock_ns();
        for (int i = 0; ready > 0 && i < connections; i++) {
            if (!polled[i].revents) continue;
            ssize_t n = recv(polled[i].fd, answer, sizeof answer, 0);
            if (n < 5 || !sent_at[i]) fail("connection");
            if (answer[4] == 0xff) {
                fprintf(stderr, "committer: %.*s\n", (int)(n > 13 ? n - 13 : 0), (char *)answer + 13);
                return 1;
            }
            taken[done++] = (uint32_t)(now - sent_at[i]);
            sent_at[i] = 0;
        }
    }
    qsort(taken, total, sizeof *taken, ascending);
    printf("%llu %llu %llu %u %u\n", (unsigned long long)done, (unsigned long long)start, (unsigned long long)now,
           taken[total / 2], taken[total * 99 / 100]);
    return 0;
}
