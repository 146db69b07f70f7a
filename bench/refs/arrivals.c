/* Opens many connections, holds them all, and asks on the last one: once that is answered, all have
 * been accepted. Usage: arrivals PATH COUNT <request
 * Prints: connections per second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    static char request[1 << 16], answer[1 << 16];
    if (argc < 3 || strlen(argv[1]) >= sizeof to.sun_path) return 2;
    strcpy(to.sun_path, argv[1]);
    int count = atoi(argv[2]), fd = -1;
    size_t size = fread(request, 1, sizeof request - 1, stdin);
    if (!size || count < 1) return 2;
    if (request[size - 1] != '\n') request[size++] = '\n';
    double began = now();
    for (int i = 0; i < count; i++) {
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) {
            perror("connect");
            return 1;
        }
    }
    if (write(fd, request, size) != (ssize_t)size) return 1;
    ssize_t got;
    do got = read(fd, answer, sizeof answer);
    while (got > 0 && answer[got - 1] != '\n');
    if (got <= 0) {
        fprintf(stderr, "the server closed the connection\n");
        return 1;
    }
    printf("%.1f\n", count / (now() - began));
    return 0;
}
