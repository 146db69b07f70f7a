/* Times one request after the other on a child's standard input and output.
 * Usage: stdio ROUNDS COMMAND [ARGUMENT...] <request
 * Prints: p50 and p99 of a round trip in microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static char request[1 << 16], answer[1 << 16];
    int to[2], from[2];
    if (argc < 3) return 2;
    int rounds = atoi(argv[1]), warm = 300;
    size_t size = fread(request, 1, sizeof request - 1, stdin);
    if (!size || rounds < 1 || pipe(to) || pipe(from)) return 2;
    if (request[size - 1] != '\n') request[size++] = '\n';
    pid_t child = fork();
    if (!child) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    close(to[0]), close(from[1]);
    double *times = malloc(rounds * sizeof *times);
    for (int r = -warm; r < rounds; r++) {
        double start = now();
        if (write(to[1], request, size) != (ssize_t)size) return 1;
        ssize_t got;
        do {
            got = read(from[0], answer, sizeof answer);
            if (got <= 0) {
                fprintf(stderr, "the program closed its output\n");
                return 1;
            }
        } while (answer[got - 1] != '\n');
        if (r >= 0) times[r] = now() - start;
    }
    close(to[1]);
    waitpid(child, NULL, 0);
    qsort(times, rounds, sizeof *times, order);
    printf("%.3f %.3f\n", times[rounds / 2], times[rounds - 1 - rounds / 100]);
    return 0;
}
