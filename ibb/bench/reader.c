/*
Reads binlog dumps from connections that are logged in already, and costs little while it does.

    reader --command HEX [--groups N] [--silence SECONDS] [--hash] [--arrivals FILE] [--apart SECONDS] FD...

HEX is the packet that asks for the dump, with the server id of the first connection; the next ones get the
numbers behind it, since servers end an earlier dump of the same id. Says "ready", waits for a line on its input, sends the packet on
each connection, and reads until all have ended or brought N groups, or until its input closes. Then
it prints a line for each connection,

    end bytes events groups shape content first_seq last_seq start_ns first_ns end_ns

and one "cpu NS". The end is one of: end (the server said so), full (N groups), stopped, closed, silent,
error. Bytes and events are those of groups alone, as sent, so that servers that add other things of their
own compare. Shape: a hash of the types and lengths of the events, in order. Content, with --hash: the
CRC-32 of the events as stored (no checksum, log_pos 0), after each event's own checksum was compared; 0
otherwise. Times are of CLOCK_MONOTONIC. Arrivals: for each whole group three u64: connection, sequence
number, time. Apart: the connections begin one at a time, that long behind the end of the one before.
*/
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    RECEIVE_BYTES = 256 << 10,
    CHUNK = 0xffffff, /* a packet of this length goes on in the next one */
    EVENT_HEADER = 19,
    GTID_EVENT = 162,
    XID_EVENT = 16,
    STATUS = 1,
    LOOK = STATUS + EVENT_HEADER + 8, /* status byte, event header, a GTID's number */
    CONNECTIONS_MAX = 20000,
    COMMAND_MAX = 1024,
    SERVER_ID_AT = 11, /* in the packet: its header, the command, a position, flags */
    EVENT_BYTES_MAX = 256 << 20,
    ARRIVALS_MAX = 16 << 20,
    READY_EVENTS = 256,
};

struct connection {
    int fd;
    unsigned char head[4 + LOOK];
    uint32_t have, want; /* bytes in head; 0 wanted: a packet begins */
    uint32_t left;       /* bytes of the packet behind what was looked at */
    unsigned char seq, continued, in_group, is_xid, wanted, is_whole;
    uint64_t bytes, events, groups, whole, shape, first_seq, last_seq, start, first, end;
    uint32_t content;
    unsigned char *event;
    size_t event_size, event_room;
    const char *status;
};

static struct connection *connections;
static int count, open_count, hashing;
static uint64_t groups_max = UINT64_MAX, now;
static double silence_seconds = 60, apart_seconds = -1; /* negative: all at once */
static unsigned char command[COMMAND_MAX];
static size_t command_size;
static uint64_t *arrivals;
static size_t arrivals_count;
static int poll_fd;
static uint32_t crc_table[8][256];

static uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "reader: %s: %s\n", what, errno ? strerror(errno) : "wrong argument");
    exit(2);
}

static void make_crc_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        crc_table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            crc_table[k][i] = crc_table[k - 1][i] >> 8 ^ crc_table[0][crc_table[k - 1][i] & 255];
}

static uint32_t crc32(uint32_t crc, const unsigned char *p, size_t n) {
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 4);
        low ^= crc;
        crc = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^ crc_table[5][low >> 16 & 255] ^
              crc_table[4][low >> 24] ^ crc_table[3][high & 255] ^ crc_table[2][high >> 8 & 255] ^
              crc_table[1][high >> 16 & 255] ^ crc_table[0][high >> 24];
    }
    while (n--) crc = crc >> 8 ^ crc_table[0][(crc ^ *p++) & 255];
    return ~crc;
}

static void finish(struct connection *c, const char *status) {
    c->status = status;
    c->end = now;
    epoll_ctl(poll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    shutdown(c->fd, SHUT_RDWR); /* or the server would go on filling its buffers */
    open_count--;
}

static void keep(struct connection *c, const unsigned char *p, size_t n) {
    if (!hashing || !c->wanted) return;
    if (c->event_size + n > c->event_room) {
        c->event_room = (c->event_size + n) * 2;
        if (c->event_room > EVENT_BYTES_MAX) {
            errno = EMSGSIZE;
            fail("event");
        }
        c->event = realloc(c->event, c->event_room);
        if (!c->event) fail("memory");
    }
    memcpy(c->event + c->event_size, p, n);
    c->event_size += n;
}

/* Takes a whole event into the content's CRC; its own must be right. */
static int check_event(struct connection *c) {
    if (c->event_size < EVENT_HEADER + 4) return 0;
    size_t size = c->event_size - 4;
    uint32_t stored, length = (uint32_t)size;
    memcpy(&stored, c->event + size, 4);
    if (crc32(0, c->event, size) != stored) return 0;
    memcpy(c->event + 9, &length, 4);
    memset(c->event + 13, 0, 4);
    c->content = crc32(c->content, c->event, size);
    return 1;
}

/* The packet is over. Returns 0 when the connection is. */
static int packet_ended(struct connection *c) {
    if (c->continued || !c->wanted) return 1;
    if (hashing && !check_event(c)) {
        finish(c, "error");
        fprintf(stderr, "reader: wrong checksum of an event of group %llu\n", (unsigned long long)c->last_seq);
        return 0;
    }
    if (!c->is_xid) return 1;
    c->in_group = 0;
    c->whole++;
    if (arrivals && arrivals_count < ARRIVALS_MAX) {
        uint64_t *place = arrivals + 3 * arrivals_count++;
        place[0] = (uint64_t)(c - connections);
        place[1] = c->last_seq;
        place[2] = now;
    }
    if (c->whole < groups_max) return 1;
    finish(c, "full");
    return 0;
}

/* Looks at the beginning of a packet: its 4 bytes and up to LOOK more. Returns 0 at the end. */
static int look(struct connection *c, const unsigned char *p, uint32_t length) {
    uint32_t seen = length < LOOK ? length : LOOK;
    int goes_on = c->continued;
    c->left = length - seen;
    c->continued = length == CHUNK;
    if (p[3] != c->seq++) {
        fprintf(stderr, "reader: packet %d where %d was due\n", p[3], (unsigned char)(c->seq - 1));
        finish(c, "error");
        return 0;
    }
    p += 4;
    if (goes_on) {
        c->bytes += c->wanted ? length : 0;
        keep(c, p, seen);
        return 1;
    }
    if (length && p[0] == 0xfe && length < 9) {
        finish(c, "end");
        return 0;
    }
    if (length < STATUS + EVENT_HEADER || p[0] != 0) {
        fprintf(stderr, "reader: not an event: %.*s\n", (int)(length > 3 ? seen - 3 : 0), (const char *)p + 3);
        finish(c, "error");
        return 0;
    }
    uint32_t size;
    unsigned type = p[STATUS + 4];
    memcpy(&size, p + STATUS + 9, 4);
    if (!c->continued && size != length - STATUS) {
        fprintf(stderr, "reader: an event of %u bytes says %u\n", length - STATUS, size);
        finish(c, "error");
        return 0;
    }
    if (type == GTID_EVENT && length >= LOOK) {
        memcpy(&c->last_seq, p + STATUS + EVENT_HEADER, 8);
        if (!c->groups++) {
            c->first = now;
            c->first_seq = c->last_seq;
        }
        c->in_group = 1;
    }
    c->wanted = c->in_group;
    c->is_xid = type == XID_EVENT;
    c->event_size = 0;
    if (c->wanted) {
        c->bytes += length - STATUS;
        c->events++;
        c->shape = (c->shape ^ ((uint64_t)size << 8 | type)) * 0x100000001b3u;
        keep(c, p + STATUS, seen - STATUS);
    }
    return 1;
}

/* Returns 0 when the connection has ended. */
static int take(struct connection *c, const unsigned char *p, size_t n) {
    while (n) {
        if (c->left) {
            uint32_t part = n < c->left ? (uint32_t)n : c->left;
            keep(c, p, part);
            p += part;
            n -= part;
            if ((c->left -= part)) return 1;
            if (!packet_ended(c)) return 0;
            continue;
        }
        const unsigned char *head = p;
        uint32_t length, used;
        if (!c->have && n >= 4 + LOOK) {
            length = (uint32_t)(p[0] | p[1] << 8 | p[2] << 16);
            used = 4 + (length < LOOK ? length : LOOK);
        } else { /* cut by the end of what was received: gather it */
            if (c->have < 4) {
                c->head[c->have++] = *p++;
                n--;
                if (c->have < 4) continue;
                length = (uint32_t)(c->head[0] | c->head[1] << 8 | c->head[2] << 16);
                c->want = 4 + (length < LOOK ? length : LOOK);
                if (c->want > 4) continue;
            } else {
                uint32_t part = c->want - c->have;
                if (part > n) part = (uint32_t)n;
                memcpy(c->head + c->have, p, part);
                c->have += part;
                p += part;
                n -= part;
                if (c->have < c->want) return 1;
            }
            length = (uint32_t)(c->head[0] | c->head[1] << 8 | c->head[2] << 16);
            head = c->head;
            used = 0;
            c->have = 0;
        }
        if (!look(c, head, length)) return 0;
        p += used;
        n -= used;
        if (!c->left && !packet_ended(c)) return 0;
    }
    return 1;
}

static void begin(struct connection *c) {
    uint32_t server_id;
    unsigned char own[COMMAND_MAX];
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = c};
    c->start = clock_ns();
    c->seq = 1;
    memcpy(own, command, command_size);
    memcpy(&server_id, own + SERVER_ID_AT, 4);
    server_id += (uint32_t)(c - connections);
    memcpy(own + SERVER_ID_AT, &server_id, 4);
    if (send(c->fd, own, command_size, MSG_NOSIGNAL) != (ssize_t)command_size) fail("send");
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &wanted)) fail("epoll_ctl");
    open_count++;
}

static void receive(struct connection *c) {
    static unsigned char buffer[RECEIVE_BYTES];
    ssize_t n = recv(c->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    now = clock_ns();
    if (n > 0)
        take(c, buffer, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        finish(c, "closed");
}

static void read_all(void) {
    struct epoll_event ready[READY_EVENTS], input = {.events = EPOLLIN, .data.ptr = NULL};
    int next = 0, stopped = 0;
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, 0, &input)) fail("epoll_ctl");
    while (!stopped && (open_count || next < count)) {
        while (next < count && !(apart_seconds >= 0 && open_count)) {
            if (apart_seconds > 0) usleep((useconds_t)(apart_seconds * 1e6));
            begin(connections + next++);
        }
        int n = epoll_wait(poll_fd, ready, READY_EVENTS, (int)(silence_seconds * 1000));
        if (n < 0 && errno != EINTR) fail("epoll_wait");
        if (n == 0) break;
        for (int i = 0; i < n; i++) {
            if (ready[i].data.ptr)
                receive(ready[i].data.ptr);
            else
                stopped = 1;
        }
    }
    now = clock_ns();
    for (int i = 0; i < count; i++)
        if (!connections[i].status) {
            connections[i].status = stopped ? "stopped" : "silent";
            connections[i].end = now;
        }
}

static void print_results(void) {
    struct rusage used;
    for (int i = 0; i < count; i++) {
        struct connection *c = connections + i;
        printf("%s %llu %llu %llu %llu %u %llu %llu %llu %llu %llu\n", c->status, (unsigned long long)c->bytes,
               (unsigned long long)c->events, (unsigned long long)c->whole, (unsigned long long)c->shape,
               c->content, (unsigned long long)c->first_seq, (unsigned long long)c->last_seq,
               (unsigned long long)c->start, (unsigned long long)c->first, (unsigned long long)c->end);
    }
    getrusage(RUSAGE_SELF, &used);
    printf("cpu %llu\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000ull +
                             (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000ull);
}

static void read_command(const char *hex) {
    unsigned byte;
    for (; *hex && command_size < COMMAND_MAX; hex += 2) {
        if (sscanf(hex, "%2x", &byte) != 1) fail("command");
        command[command_size++] = (unsigned char)byte;
    }
}

int main(int argc, char **argv) {
    const char *arrivals_path = NULL;
    connections = calloc(CONNECTIONS_MAX, sizeof *connections);
    if (!connections) fail("memory");
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--hash")) hashing = 1;
        else if (!strcmp(argv[i], "--apart")) apart_seconds = atof(value), i++;
        else if (!strcmp(argv[i], "--command")) read_command(value), i++;
        else if (!strcmp(argv[i], "--groups")) groups_max = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--silence")) silence_seconds = atof(value), i++;
        else if (!strcmp(argv[i], "--arrivals")) arrivals_path = value, i++;
        else if (count == CONNECTIONS_MAX || argv[i][0] < '0' || argv[i][0] > '9') fail(argv[i]);
        else {
            connections[count].shape = 0xcbf29ce484222325u;
            connections[count++].fd = atoi(argv[i]);
        }
    }
    if (command_size < SERVER_ID_AT + 4 || !count) fail("--command HEX FD");
    if (arrivals_path && !(arrivals = malloc(ARRIVALS_MAX * 3 * sizeof *arrivals))) fail("memory");
    make_crc_table();
    if ((poll_fd = epoll_create1(0)) < 0) fail("epoll_create1");
    puts("ready");
    fflush(stdout);
    for (char byte = 0; byte != '\n';)
        if (read(0, &byte, 1) != 1) return 0;
    read_all();
    if (arrivals) {
        FILE *file = fopen(arrivals_path, "wb");
        if (!file || fwrite(arrivals, 24, arrivals_count, file) != arrivals_count || fclose(file)) fail(arrivals_path);
    }
    print_results();
    return 0;
}
