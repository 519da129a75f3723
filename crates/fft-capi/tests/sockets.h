/* A process group over pairs of Unix sockets: each two ranks have one for collectives, which
 * blocks, and one for messages, which does not. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <thriffty.h>

#define MOST 4
#define PACKET 65536

/* A message that is to leave or to arrive, or has. */
struct request {
    int is_send, is_done, peer;
    uint32_t tag;
    char *at;
    size_t bytes;
};

/* A message that has arrived before it was requested. */
struct packet {
    struct packet *next;
    int from;
    uint32_t tag;
    size_t bytes;
    char data[];
};

struct group {
    int rank, size, collectives[MOST], mail[MOST];
    int has_messages, fails, lost;
    const char *host, *why;
    struct request *requests;
    size_t count;
    struct packet *arrived;
};

/* The sockets of all pairs: socket [r][s] is rank r's to rank s. */
static void connect_all(int all[MOST][MOST][2], int size) {
    for (int a = 0; a < size; a++)
        for (int b = 0; b < a; b++)
            for (int kind = 0; kind < 2; kind++) {
                int pair[2];
                if (socketpair(AF_UNIX, kind ? SOCK_SEQPACKET : SOCK_STREAM, 0, pair) != 0) _exit(1);
                all[a][b][kind] = pair[0];
                all[b][a][kind] = pair[1];
            }
}

/* Closes the sockets of the other ranks. */
static void close_others(int all[MOST][MOST][2], int rank, int size) {
    for (int a = 0; a < size; a++)
        for (int b = 0; b < size; b++)
            for (int kind = 0; kind < 2 && a != b && a != rank; kind++) close(all[a][b][kind]);
}

static void close_all(int all[MOST][MOST][2], int size) { close_others(all, -1, size); }

static struct group group_of(int all[MOST][MOST][2], int rank, int size) {
    struct group group = {0};
    close_others(all, rank, size);
    group.rank = rank, group.size = size, group.lost = -1;
    for (int peer = 0; peer < size; peer++) {
        group.collectives[peer] = peer == rank ? -1 : all[rank][peer][0];
        group.mail[peer] = peer == rank ? -1 : all[rank][peer][1];
    }
    return group;
}

/* The group of the other ranks. */
static struct group without(const struct group *group, int gone) {
    struct group rest = {0};
    rest.lost = -1;
    for (int peer = 0; peer < group->size; peer++) {
        if (peer == gone) continue;
        if (peer == group->rank) rest.rank = rest.size;
        rest.collectives[rest.size] = group->collectives[peer];
        rest.mail[rest.size++] = group->mail[peer];
    }
    return rest;
}

static int failed(struct group *group, int peer) {
    group->why = "a rank has ended";
    group->lost = peer;
    return 1;
}

static int send_all(struct group *group, int peer, const char *at, size_t bytes) {
    while (bytes > 0) {
        const ssize_t sent = send(group->collectives[peer], at, bytes, MSG_NOSIGNAL);
        if (sent <= 0) return failed(group, peer);
        at += sent, bytes -= (size_t)sent;
    }
    return 0;
}

static int receive_all(struct group *group, int peer, char *at, size_t bytes) {
    while (bytes > 0) {
        const ssize_t received = recv(group->collectives[peer], at, bytes, 0);
        if (received <= 0) return failed(group, peer);
        at += received, bytes -= (size_t)received;
    }
    return 0;
}

/* All ranks take their pairs in the same order, and the lower rank of a pair sends first, so that
 * none waits in a circle. */
static int32_t group_alltoallv(void *context, const void *send, const size_t *send_bytes, const size_t *send_offsets,
                               void *recv, const size_t *recv_bytes, const size_t *recv_offsets) {
    struct group *group = context;
    if (group->fails) {
        group->why = "the cable is broken";
        return 1;
    }
    for (int peer = 0; peer < group->size; peer++) {
        const char *from = (const char *)send + send_offsets[peer];
        char *to = (char *)recv + recv_offsets[peer];
        if (peer == group->rank) {
            memcpy(to, from, recv_bytes[peer]);
            continue;
        }
        if (group->rank < peer && send_all(group, peer, from, send_bytes[peer])) return 1;
        if (receive_all(group, peer, to, recv_bytes[peer])) return 1;
        if (group->rank > peer && send_all(group, peer, from, send_bytes[peer])) return 1;
    }
    return 0;
}

static int32_t group_allgather(void *context, const void *mine, void *all, size_t bytes) {
    const struct group *group = context;
    size_t lens[MOST], here[MOST] = {0}, there[MOST];
    for (int peer = 0; peer < group->size; peer++) lens[peer] = bytes, there[peer] = bytes * (size_t)peer;
    return group_alltoallv(context, mine, lens, here, all, lens, there);
}

/* Sends what waits for a rank, in order, as far as there is room. */
static int32_t flush(struct group *group, int peer) {
    for (size_t at = 0; at < group->count; at++) {
        struct request *it = &group->requests[at];
        if (!it->is_send || it->is_done || it->peer != peer) continue;
        struct iovec parts[] = {{&it->tag, sizeof it->tag}, {it->at, it->bytes}};
        struct msghdr message = {0};
        message.msg_iov = parts, message.msg_iovlen = 2;
        if (sendmsg(group->mail[peer], &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return errno == EAGAIN ? 0 : failed(group, peer);
        it->is_done = 1;
    }
    return 0;
}

/* Takes what a rank has sent; whether it may send more. */
static int take(struct group *group, int peer) {
    for (;;) {
        struct packet *packet = malloc(sizeof *packet + PACKET), **last = &group->arrived;
        struct iovec parts[] = {{&packet->tag, sizeof packet->tag}, {packet->data, PACKET}};
        struct msghdr message = {0};
        message.msg_iov = parts, message.msg_iovlen = 2;
        const ssize_t bytes = recvmsg(group->mail[peer], &message, MSG_DONTWAIT);
        if (bytes <= 0) {
            free(packet);
            return bytes < 0 && errno == EAGAIN;
        }
        while (*last != NULL) last = &(*last)->next;
        packet->next = NULL, packet->from = peer, packet->bytes = (size_t)bytes - sizeof packet->tag;
        *last = packet;
    }
}

static uint64_t begin(struct group *group, struct request request) {
    group->requests = realloc(group->requests, (group->count + 1) * sizeof request);
    group->requests[group->count] = request;
    return group->count++;
}

static int32_t group_isend(void *context, int32_t to, uint32_t tag, const void *message, size_t bytes, uint64_t *number) {
    const struct request request = {1, 0, to, tag, (char *)message, bytes};
    *number = begin(context, request);
    return flush(context, to);
}

static int32_t group_irecv(void *context, int32_t from, uint32_t tag, void *room, size_t bytes, uint64_t *number) {
    const struct request request = {0, 0, from, tag, room, bytes};
    *number = begin(context, request);
    return 0;
}

static int32_t group_test(void *context, uint64_t number, int32_t *done, size_t *bytes) {
    struct group *group = context;
    struct request *it = &group->requests[number];
    if (it->is_send) {
        const int32_t status = flush(group, it->peer);
        *done = it->is_done;
        return status;
    }
    const int is_open = take(group, it->peer);
    for (struct packet **at = &group->arrived; *at != NULL; at = &(*at)->next) {
        struct packet *packet = *at;
        if (packet->from != it->peer || packet->tag != it->tag || packet->bytes > it->bytes) continue;
        memcpy(it->at, packet->data, packet->bytes);
        *bytes = packet->bytes, *done = 1, *at = packet->next;
        free(packet);
        return 0;
    }
    *done = 0;
    return is_open ? 0 : failed(group, it->peer);
}

static const char *group_host(void *context) { return ((struct group *)context)->host; }

static int32_t group_lost(void *context) { return ((struct group *)context)->lost; }

static const char *group_error(void *context) { return ((struct group *)context)->why; }

static void group_abandon(void *context) {
    const struct group *group = context;
    for (int peer = 0; peer < group->size; peer++)
        if (peer != group->rank) {
            shutdown(group->collectives[peer], SHUT_RDWR);
            shutdown(group->mail[peer], SHUT_RDWR);
        }
}

static thriffty_group_callbacks callbacks_of(const struct group *group) {
    thriffty_group_callbacks callbacks = {0};
    callbacks.struct_size = sizeof callbacks;
    callbacks.allgather = group_allgather;
    callbacks.alltoallv = group_alltoallv;
    if (group->has_messages) {
        callbacks.isend = group_isend;
        callbacks.irecv = group_irecv;
        callbacks.test = group_test;
    }
    callbacks.host = group_host;
    callbacks.lost = group_lost;
    callbacks.abandon = group_abandon;
    callbacks.error = group_error;
    return callbacks;
}
