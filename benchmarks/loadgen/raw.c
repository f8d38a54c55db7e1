/* Workloads that speak the protocol over plain sockets: the broker's limit without a client library in the way.
 * The requests are built beforehand by the caller; here they are only sent, counted and checked. */
#include "loadgen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PREFIX = 12, /* length, api key, version, correlation id: rewritten for each request */
    DEPTH_MAX = 64,
    FRAMES_MAX = 4096,
    EVENTS_MAX = 128,
};

typedef struct {
    unsigned char *bytes;
    size_t size;
} frame;

typedef struct {
    frame frames[FRAMES_MAX];
    size_t count;
} frame_list;

typedef struct {
    int fd;
    unsigned char prefix[PREFIX];
    const frame *sending;
    size_t sent;
    size_t next_frame;
    uint32_t next_correlation;
    uint32_t expected_correlation;
    int64_t started[DEPTH_MAX];
    unsigned char *answer;
    size_t answer_capacity;
    size_t answer_size;
    int writable_wanted;
    /* fetch only */
    int64_t offset;
    int finished;
    frame own;
} connection;

static uint32_t read_u32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t read_i64(const unsigned char *at) {
    return (int64_t)((uint64_t)read_u32(at) << 32 | read_u32(at + 4));
}

static void write_u32(unsigned char *at, uint32_t value) {
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
}

/* The file holds whole frames, one after the other, each with its length in front. */
static void load_frames(const char *path, frame_list *list) {
    int fd = open(path, O_RDONLY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        fail("cannot read %s", path);
    }
    size_t size = (size_t)status.st_size;
    unsigned char *bytes = malloc(size);
    for (size_t have = 0; have < size;) {
        ssize_t got = read(fd, bytes + have, size - have);
        if (got <= 0) {
            fail("cannot read %s", path);
        }
        have += (size_t)got;
    }
    close(fd);
    list->count = 0;
    for (size_t at = 0; at < size && list->count < FRAMES_MAX;) {
        size_t length = read_u32(bytes + at) + 4;
        list->frames[list->count++] = (frame){bytes + at, length};
        at += length;
    }
    if (list->count == 0) {
        fail("%s holds no frame", path);
    }
}

static void open_connection(connection *conn, const arguments *args, int epoll) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number_argument(args, "port", 9092))};
    inet_pton(AF_INET, text_argument(args, "host", "127.0.0.1"), &address.sin_addr);
    int yes = 1;
    conn->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (conn->fd < 0 || connect(conn->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        fail("cannot connect: %s", strerror(errno));
    }
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(conn->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    epoll_ctl(epoll, EPOLL_CTL_ADD, conn->fd, &event);
    conn->answer_capacity = 65536;
    conn->answer = malloc(conn->answer_capacity);
}

static void want_writable(connection *conn, int epoll, int wanted) {
    if (conn->writable_wanted != wanted) {
        struct epoll_event event = {.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = conn};
        epoll_ctl(epoll, EPOLL_CTL_MOD, conn->fd, &event);
        conn->writable_wanted = wanted;
    }
}

static void start_request(connection *conn, const frame *request) {
    memcpy(conn->prefix, request->bytes, PREFIX);
    write_u32(conn->prefix + 8, conn->next_correlation);
    conn->started[conn->next_correlation % DEPTH_MAX] = now_ns();
    conn->next_correlation++;
    conn->sending = request;
    conn->sent = 0;
}

/* Sends what the socket takes; returns 1 when the whole request is out. */
static int continue_request(connection *conn, int epoll) {
    while (conn->sent < conn->sending->size) {
        struct iovec parts[2];
        int count = 0;
        if (conn->sent < PREFIX) {
            parts[count++] = (struct iovec){conn->prefix + conn->sent, PREFIX - conn->sent};
        }
        size_t body = conn->sent < PREFIX ? PREFIX : conn->sent;
        parts[count++] = (struct iovec){conn->sending->bytes + body, conn->sending->size - body};
        ssize_t sent = writev(conn->fd, parts, count);
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            want_writable(conn, epoll, 1);
            return 0;
        }
        if (sent <= 0) {
            fail("the broker closed a connection while it was written to: %s", strerror(errno));
        }
        conn->sent += (size_t)sent;
    }
    conn->sending = NULL;
    want_writable(conn, epoll, 0);
    return 1;
}

/* Reads what is there. Returns 1 with the whole answer in conn->answer, 0 when more has to come. */
static int continue_answer(connection *conn) {
    for (;;) {
        size_t wanted = conn->answer_size < 4 ? 4 : read_u32(conn->answer) + 4;
        if (conn->answer_size >= 4 && conn->answer_size == wanted) {
            if (read_u32(conn->answer + 4) != conn->expected_correlation) {
                fail("answers are out of order");
            }
            conn->expected_correlation++;
            return 1;
        }
        if (wanted > conn->answer_capacity) {
            conn->answer_capacity = wanted;
            conn->answer = realloc(conn->answer, wanted);
            if (conn->answer == NULL) {
                fail("out of memory for an answer of %zu bytes", wanted);
            }
        }
        ssize_t got = read(conn->fd, conn->answer + conn->answer_size, wanted - conn->answer_size);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return 0;
        }
        if (got <= 0) {
            fail("the broker closed a connection");
        }
        conn->answer_size += (size_t)got;
    }
}

typedef struct {
    const frame_list *list;
    int epoll;
    int depth;
    long long limit;
    int64_t deadline;
    long long started;
    long long finished;
    long long sent_bytes;
    size_t error_at;
    samples latencies;
} replay;

static void fill_pipeline(replay *run, connection *conn) {
    for (;;) {
        if (conn->sending == NULL) {
            int in_flight = (int)(conn->next_correlation - conn->expected_correlation);
            if (in_flight >= run->depth || run->started >= run->limit || now_ns() >= run->deadline) {
                return;
            }
            const frame *request = &run->list->frames[conn->next_frame++ % run->list->count];
            start_request(conn, request);
            run->started++;
            run->sent_bytes += (long long)request->size;
        }
        if (!continue_request(conn, run->epoll)) {
            return;
        }
    }
}

static void take_answers(replay *run, connection *conn) {
    while (continue_answer(conn)) {
        if (run->error_at + 2 > conn->answer_size) {
            fail("an answer of %zu bytes is too short", conn->answer_size);
        }
        int error = (int16_t)(conn->answer[run->error_at] << 8 | conn->answer[run->error_at + 1]);
        if (error != 0) {
            fail("the broker answered with error %d", error);
        }
        add_sample(&run->latencies, now_ns() - conn->started[(conn->expected_correlation - 1) % DEPTH_MAX]);
        conn->answer_size = 0;
        run->finished++;
    }
}

/* Sends prepared requests over some connections, each with up to `depth` unanswered, until `requests` or `seconds`. */
int run_replay(const arguments *args) {
    static frame_list list;
    load_frames(text_argument(args, "frames", NULL), &list);
    int count = (int)number_argument(args, "connections", 1);
    long long records_each = number_argument(args, "records_per_request", 1);
    replay run = {
        .list = &list,
        .epoll = epoll_create1(0),
        .depth = (int)number_argument(args, "depth", 1),
        .limit = number_argument(args, "requests", 1LL << 60),
        .error_at = (size_t)number_argument(args, "error_at", 0),
    };
    if (run.depth < 1 || run.depth > DEPTH_MAX) {
        fail("depth has to be 1 to %d", DEPTH_MAX);
    }
    connection *connections = calloc((size_t)count, sizeof(connection));
    for (int i = 0; i < count; i++) {
        open_connection(&connections[i], args, run.epoll);
        connections[i].next_frame = (size_t)i;
    }
    int64_t start = now_ns();
    double cpu_start = cpu_seconds();
    run.deadline = start + number_argument(args, "seconds", 3600) * 1000000000;
    for (int i = 0; i < count; i++) {
        fill_pipeline(&run, &connections[i]);
    }
    struct epoll_event events[EVENTS_MAX];
    while (run.finished < run.started) {
        int ready = epoll_wait(run.epoll, events, EVENTS_MAX, 30000);
        if (ready == 0) {
            fail("no answer for 30 seconds");
        }
        for (int i = 0; i < ready; i++) {
            connection *conn = events[i].data.ptr;
            take_answers(&run, conn);
            fill_pipeline(&run, conn);
        }
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{\"requests\": %lld, \"requests_per_second\": %.1f, ", run.finished, (double)run.finished / seconds);
    print_throughput(run.finished * records_each, run.sent_bytes, seconds, cpu_seconds() - cpu_start);
    print_percentiles(&run.latencies);
    printf("}\n");
    return 0;
}

/* A varint as flexible messages use it for lengths. */
static size_t read_unsigned(const unsigned char **at) {
    size_t value = 0;
    for (int shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (size_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
}

typedef struct {
    size_t error_at;
    size_t watermark_at;
    size_t aborted_at;
    size_t offset_at;
    long long records;
    long long bytes;
} fetching;

/* Walks the batches of a Fetch v12 answer for one partition and moves the connection's offset behind the last whole one. */
static void take_batches(fetching *run, connection *conn) {
    int error = (int16_t)(conn->answer[run->error_at] << 8 | conn->answer[run->error_at + 1]);
    if (error != 0) {
        fail("the broker answered a fetch with error %d", error);
    }
    int64_t watermark = read_i64(conn->answer + run->watermark_at);
    const unsigned char *at = conn->answer + run->aborted_at;
    if (read_unsigned(&at) > 1) {
        fail("aborted transactions were not expected");
    }
    at += 4; /* preferred read replica */
    size_t left = read_unsigned(&at);
    left = left == 0 ? 0 : left - 1;
    while (left >= 61) {
        size_t size = read_u32(at + 8) + 12;
        if (size > left) {
            break;
        }
        conn->offset = read_i64(at) + read_u32(at + 23) + 1;
        run->records += read_u32(at + 57);
        run->bytes += (long long)size;
        at += size;
        left -= size;
    }
    conn->finished = conn->offset >= watermark;
}

static void ask(fetching *run, connection *conn, int epoll) {
    write_u32(conn->own.bytes + run->offset_at, (uint32_t)(conn->offset >> 32));
    write_u32(conn->own.bytes + run->offset_at + 4, (uint32_t)conn->offset);
    start_request(conn, &conn->own);
    continue_request(conn, epoll);
}

/* Reads every partition from its start to its high watermark, one connection and one prepared Fetch v12 for each. */
int run_fetch(const arguments *args) {
    static frame_list list;
    load_frames(text_argument(args, "frames", NULL), &list);
    int epoll = epoll_create1(0);
    fetching run = {
        .error_at = (size_t)number_argument(args, "error_at", 0),
        .watermark_at = (size_t)number_argument(args, "watermark_at", 0),
        .aborted_at = (size_t)number_argument(args, "aborted_at", 0),
        .offset_at = (size_t)number_argument(args, "offset_at", 0),
    };
    connection *connections = calloc(list.count, sizeof(connection));
    for (size_t i = 0; i < list.count; i++) {
        open_connection(&connections[i], args, epoll);
        connections[i].own = list.frames[i];
    }
    int64_t start = now_ns();
    double cpu_start = cpu_seconds();
    for (size_t i = 0; i < list.count; i++) {
        ask(&run, &connections[i], epoll);
    }
    struct epoll_event events[EVENTS_MAX];
    for (size_t unfinished = list.count; unfinished > 0;) {
        int ready = epoll_wait(epoll, events, EVENTS_MAX, 30000);
        if (ready == 0) {
            fail("no answer for 30 seconds");
        }
        for (int i = 0; i < ready; i++) {
            connection *conn = events[i].data.ptr;
            if (!continue_answer(conn)) {
                continue;
            }
            take_batches(&run, conn);
            conn->answer_size = 0;
            if (conn->finished) {
                unfinished--;
            } else {
                ask(&run, conn, epoll);
            }
        }
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{");
    print_throughput(run.records, run.bytes, seconds, cpu_seconds() - cpu_start);
    printf("}\n");
    return 0;
}
