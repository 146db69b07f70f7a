/* Connects, asks once, reads the answer and closes, 16 at a time.
 * Usage: visits PATH ROUNDS <request
 * Prints: connections per second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MANY 16

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    static char request[1 << 16], answer[1 << 16];
    int fd[MANY];
    if (argc < 3 || strlen(argv[1]) >= sizeof to.sun_path) return 2;
    strcpy(to.sun_path, argv[1]);
    int rounds = atoi(argv[2]);
    size_t size = fread(request, 1, sizeof request - 1, stdin);
    if (!size || rounds < 1) return 2;
    if (request[size - 1] != '\n') request[size++] = '\n';
    double began = now();
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < MANY; i++) {
            fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
            if (connect(fd[i], (struct sockaddr *)&to, sizeof to) ||
                write(fd[i], request, size) != (ssize_t)size) {
                perror("connect");
                return 1;
            }
        }
        for (int i = 0; i < MANY; i++) {
            ssize_t got;
            do got = read(fd[i], answer, sizeof answer);
            while (got > 0 && answer[got - 1] != '\n');
            if (got <= 0) {
                fprintf(stderr, "the server closed the connection\n");
                return 1;
            }
            close(fd[i]);
        }
    }
    printf("%.1f\n", rounds * MANY / (now() - began));
    return 0;
}
