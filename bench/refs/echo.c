/* The floor: an epoll server on a Unix socket that sends back what it reads. Usage: echo PATH */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char buffer[1 << 18];

int main(int argc, char **argv) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct epoll_event want = {.events = EPOLLIN}, got[256];
    if (argc != 2 || strlen(argv[1]) >= sizeof at.sun_path) return 2;
    strcpy(at.sun_path, argv[1]);
    int door = socket(AF_UNIX, SOCK_STREAM, 0), poll = epoll_create1(0);
    if (bind(door, (struct sockaddr *)&at, sizeof at) || listen(door, 4096)) {
        perror("listen");
        return 1;
    }
    want.data.fd = door;
    epoll_ctl(poll, EPOLL_CTL_ADD, door, &want);
    for (;;) {
        int ready = epoll_wait(poll, got, 256, -1);
        for (int i = 0; i < ready; i++) {
            int fd = got[i].data.fd;
            if (fd == door) {
                want.data.fd = accept(door, NULL, NULL);
                if (want.data.fd >= 0) epoll_ctl(poll, EPOLL_CTL_ADD, want.data.fd, &want);
                continue;
            }
            ssize_t size = read(fd, buffer, sizeof buffer), done = 0;
            if (size <= 0) {
                close(fd);
                continue;
            }
            while (done < size) {
                ssize_t sent = write(fd, buffer + done, size - done);
                if (sent < 0 && errno != EINTR) break;
                if (sent > 0) done += sent;
            }
        }
    }
}
