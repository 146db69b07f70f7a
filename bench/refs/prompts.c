/* Prompts on open connections, each again as soon as its turn has ended, so many turns on each.
 * Usage: prompts TURNS FIRST LAST FD... <lines
 * Line N is the prompt of descriptor N. FIRST is found in the first delta, LAST in the answer.
 * Prints: turns, seconds, p50 from a prompt to its first delta in microseconds. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEEP 64
#define MOST 1000000

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct line {
    char *prompt, tail[KEEP];
    size_t size, kept;
    double asked;
    int begun, turns;
};

static void ask(int fd, struct line *l) {
    l->kept = l->begun = 0;
    l->asked = now();
    if (write(fd, l->prompt, l->size) != (ssize_t)l->size) exit(1);
}

int main(int argc, char **argv) {
    static char data[KEEP + (1 << 18)];
    if (argc < 5) return 2;
    int most = atoi(argv[1]), working;
    const char *first = argv[2], *last = argv[3];
    int links = argc - 4;
    struct line *lines = calloc(links, sizeof *lines);
    struct pollfd *polled = calloc(links, sizeof *polled);
    double *times = malloc(MOST * sizeof *times);
    long turns = 0, begun = 0;
    for (int i = 0; i < links; i++) {
        size_t room = 0;
        ssize_t size = getline(&lines[i].prompt, &room, stdin);
        if (size <= 0) return 2;
        lines[i].size = size;
        polled[i] = (struct pollfd){.fd = atoi(argv[4 + i]), .events = POLLIN};
    }
    double began = now();
    for (int i = 0; i < links; i++) ask(polled[i].fd, &lines[i]);
    for (working = links; working;) {
        if (poll(polled, links, 5000) <= 0) return 1;
        for (int i = 0; i < links; i++) {
            struct line *l = &lines[i];
            if (!polled[i].revents) continue;
            memcpy(data, l->tail, l->kept);
            ssize_t got = read(polled[i].fd, data + l->kept, sizeof data - KEEP);
            if (got <= 0) return 1;
            size_t size = l->kept + got;
            if (!l->begun && memmem(data, size, first, strlen(first))) {
                l->begun = 1;
                if (begun < MOST) times[begun++] = now() - l->asked;
            }
            if (data[size - 1] == '\n' && memmem(data, size, last, strlen(last))) {
                turns++;
                if (++l->turns < most) {
                    ask(polled[i].fd, l);
                } else {
                    polled[i].fd = -1;
                    working--;
                }
                continue;
            }
            l->kept = size < KEEP ? size : KEEP;
            memcpy(l->tail, data + size - l->kept, l->kept);
        }
    }
    double all = (now() - began) / 1e6;
    qsort(times, begun, sizeof *times, order);
    printf("%ld %.3f %.3f\n", turns, all, begun ? times[begun / 2] : 0.0);
    return 0;
}
