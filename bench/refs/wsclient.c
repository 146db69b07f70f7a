/* Sends one text message over and over on a WebSocket and times the answers (one message each).
 * Usage: wsclient PORT/TARGET CONNECTIONS INFLIGHT ROUNDS <lines
 * The last line is the request; those before it are sent once and answered by one message each.
 * In each round every connection writes INFLIGHT requests at once and then reads their answers.
 * Prints: p50 and p99 of a round in microseconds, messages per second. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct link {
    int fd;
    size_t have;
    unsigned char got[1 << 17];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void give(int fd, const void *data, size_t size) {
    const char *at = data;
    while (size) {
        ssize_t sent = write(fd, at, size);
        if (sent <= 0) fail("the server closed the connection");
        at += sent;
        size -= sent;
    }
}

/* A masked text frame; returns its size. */
static size_t frame(unsigned char *to, const char *text, size_t size) {
    static const unsigned char key[4] = {1, 2, 3, 4};
    size_t head = 2;
    to[0] = 0x81;
    if (size < 126) {
        to[1] = 0x80 | size;
    } else {
        to[1] = 0x80 | 126;
        to[2] = size >> 8;
        to[3] = size;
        head = 4;
    }
    memcpy(to + head, key, 4);
    for (size_t i = 0; i < size; i++) to[head + 4 + i] = text[i] ^ key[i & 3];
    return head + 4 + size;
}

/* Read so many whole messages. */
static void take(struct link *l, int messages) {
    for (;;) {
        size_t at = 0;
        while (messages > 0 && l->have - at >= 2) {
            unsigned char *f = l->got + at;
            size_t size = f[1] & 0x7f, head = 2;
            if (size == 126) {
                if (l->have - at < 4) break;
                size = f[2] << 8 | f[3];
                head = 4;
            } else if (size == 127) {
                fail("an answer is too long");
            }
            if (l->have - at < head + size) break;
            if ((f[0] & 0x0f) == 8) fail("the server closed the WebSocket");
            if ((f[0] & 0x0f) == 1) messages--;
            at += head + size;
        }
        memmove(l->got, l->got + at, l->have -= at);
        if (messages <= 0) return;
        ssize_t size = read(l->fd, l->got + l->have, sizeof l->got - l->have);
        if (size <= 0) fail("the server closed the connection");
        l->have += size;
    }
}

static void reach(struct link *l, int port, const char *target) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    char head[4096];
    int yes = 1, size;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    l->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(l->fd, (struct sockaddr *)&to, sizeof to)) fail("cannot connect");
    size = snprintf(head, sizeof head,
                    "GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
                    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
                    target, port);
    give(l->fd, head, size);
    for (size = 0; size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4); size++)
        if (size == sizeof head - 1 || read(l->fd, head + size, 1) != 1) fail("no handshake");
    if (memcmp(head + 8, " 101 ", 5)) fail("refused");
}

int main(int argc, char **argv) {
    static char line[1 << 15];
    if (argc < 5 || !strchr(argv[1], '/')) return 2;
    int port = atoi(argv[1]), links = atoi(argv[2]), inflight = atoi(argv[3]);
    int rounds = atoi(argv[4]);
    const char *target = strchr(argv[1], '/') + 1;
    size_t size = fread(line, 1, sizeof line - 1, stdin);
    if (!size || links < 1 || inflight < 1 || rounds < 1) return 2;
    while (size && line[size - 1] == '\n') size--;
    line[size] = 0;
    char *request = strrchr(line, '\n') ? strrchr(line, '\n') + 1 : line;
    unsigned char *batch = malloc((strlen(request) + 8) * inflight);
    size_t full = 0;
    for (int i = 0; i < inflight; i++) full += frame(batch + full, request, strlen(request));
    struct link *l = calloc(links, sizeof *l);
    for (int i = 0; i < links; i++) {
        unsigned char first[sizeof line + 8];
        reach(&l[i], port, target);
        for (char *at = line, *end; at < request; at = end + 1) {
            end = strchr(at, '\n');
            give(l[i].fd, first, frame(first, at, end - at));
            take(&l[i], 1);
        }
    }
    double *times = malloc(rounds * sizeof *times), began = now();
    for (int r = 0; r < rounds; r++) {
        double start = now();
        for (int i = 0; i < links; i++) give(l[i].fd, batch, full);
        for (int i = 0; i < links; i++) take(&l[i], inflight);
        times[r] = now() - start;
    }
    double all = now() - began;
    qsort(times, rounds, sizeof *times, order);
    printf("%.3f %.3f %.1f\n", times[rounds / 2], times[rounds - 1 - rounds / 100],
           1e6 * rounds * links * inflight / all);
    return 0;
}
