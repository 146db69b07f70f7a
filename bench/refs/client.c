/* Sends one line over and over and times the answers (one line each).
 * Usage: client PATH CONNECTIONS INFLIGHT ROUNDS <lines
 * The last line is the request; those before it are sent once on each connection and answered by
 * one line each (a handshake). "@@@" in them becomes the connection's number.
 * In each round every connection writes INFLIGHT requests at once and then reads their answers.
 * Prints: p50 and p99 of a round in microseconds, messages per second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char answer[1 << 18];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void give(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t sent = write(fd, data, size);
        if (sent <= 0) {
            perror("write");
            exit(1);
        }
        data += sent;
        size -= sent;
    }
}

static void take(int fd, int lines) {
    while (lines > 0) {
        ssize_t size = read(fd, answer, sizeof answer);
        if (size <= 0) {
            fprintf(stderr, "the server closed the connection\n");
            exit(1);
        }
        for (char *at = answer; (at = memchr(at, '\n', answer + size - at)); at++) lines--;
    }
}

/* Send each line of the prelude and wait for its answer. */
static void greet(int fd, const char *from, size_t size, int number) {
    static char copy[1 << 16];
    char digits[4];
    memcpy(copy, from, size);
    copy[size] = 0;
    snprintf(digits, sizeof digits, "%03d", number % 1000);
    for (char *at = copy; (at = strstr(at, "@@@"));) memcpy(at, digits, 3);
    for (char *at = copy, *end; at < copy + size; at = end + 1) {
        end = memchr(at, '\n', copy + size - at);
        give(fd, at, end + 1 - at);
        take(fd, 1);
    }
}

int main(int argc, char **argv) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    static char line[1 << 16];
    if (argc < 5 || strlen(argv[1]) >= sizeof to.sun_path) return 2;
    strcpy(to.sun_path, argv[1]);
    int links = atoi(argv[2]), inflight = atoi(argv[3]), rounds = atoi(argv[4]);
    size_t size = fread(line, 1, sizeof line - 1, stdin);
    if (!size || links < 1 || inflight < 1 || rounds < 1) return 2;
    if (line[size - 1] != '\n') line[size++] = '\n';
    size_t prelude = size - 1;
    while (prelude && line[prelude - 1] != '\n') prelude--;
    char *request = line + prelude;
    size -= prelude;
    char *batch = malloc(size * inflight);
    for (int i = 0; i < inflight; i++) memcpy(batch + i * size, request, size);
    int *fd = malloc(links * sizeof *fd);
    for (int i = 0; i < links; i++) {
        fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd[i], (struct sockaddr *)&to, sizeof to)) {
            perror("connect");
            return 1;
        }
        greet(fd[i], line, prelude, i);
    }
    double *times = malloc(rounds * sizeof *times), began = now();
    for (int r = 0; r < rounds; r++) {
        double start = now();
        for (int i = 0; i < links; i++) give(fd[i], batch, size * inflight);
        for (int i = 0; i < links; i++) take(fd[i], inflight);
        times[r] = now() - start;
    }
    double all = now() - began;
    qsort(times, rounds, sizeof *times, order);
    printf("%.3f %.3f %.1f\n", times[rounds / 2], times[rounds - 1 - rounds / 100],
           1e6 * rounds * links * inflight / all);
    return 0;
}
