// SPDX-License-Identifier: Apache-2.0
// A server of a known timetable, whose own log is the truth that load clients are held against.
//
// usage: exact_server --log FILE [--ttft MS] [--itl MS] [--tokens N] [--per K] [--role none|early|late] [--fail K]
//
// Every POST of completions is answered with a stream of N tokens (or the request's max_tokens when fewer), K to a chunk: the chunk of token t is
// due at arrival + ttft + t * itl, whatever happened to the ones before it. A path that ends in chat/completions gets deltas,
// with a role chunk at once (early), beside the first token (late) or never; every K-th request of --fail gets status 500.
// The first token of a reply is " r" and the request's number, by which clients' records are matched. GET answers
// /v1/models. One thread, epoll, no waiting by turning. Nothing is buffered for a client that does not read: the socket's send
// buffer has to hold a reply, or the reply is given up and logged as failed.
//
// On SIGTERM the log is written: a JSON line per request, {"request", "arrival", "failed", "tokens": per full chunk, "due": [],
// "sent": []} with CLOCK_MONOTONIC in nanoseconds, "arrival" when the kernel received the last of the request (SO_TIMESTAMPING;
// the read that completed it where there is no stamp), "sent" right before the send() of each chunk of tokens, so that a server
// that loses the processor behind either is not charged to its client; at last a line {"requests", "late_us": {"mean", "p99", "max"}, "peak", "cpu_us"}.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CONNECTIONS = 16384, INPUT_BYTES = 1 << 20, EVENTS = 256 };
static const int64_t NANOSECONDS = 1000000000;
static const char role_delta[] = "{\"role\":\"assistant\",\"content\":\"\"}";

struct Request {
  int64_t arrival, tokens, chunks, sent_chunks;
  int failed, chat, wants_usage;
  int64_t *sent;
};

struct Connection {
  char *input;
  size_t have;
  int64_t request, due;  // the request under way or -1
  int64_t arrival;       // of what was read last
};

static double ttft_ms = 50, itl_ms = 10;
static int64_t most_tokens = 100, per_chunk = 1, fail_each = 0;
static const char *role = "none", *log_name = NULL;
static struct Connection connections[MOST_CONNECTIONS];  // by descriptor
static struct Request *requests = NULL;
static int64_t request_count = 0, request_room = 0, running = 0, peak = 0;
static int heap[MOST_CONNECTIONS], heap_size = 0, poller = -1;
static volatile sig_atomic_t stopped = 0;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static void stop(int number) {
  (void)number;
  stopped = 1;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static int64_t due_of(const struct Request *request, int64_t chunk) {
  return request->arrival + (int64_t)((ttft_ms + itl_ms * (double)(chunk * per_chunk)) * 1e6);
}

static void swap(int a, int b) {
  int other = heap[a];
  heap[a] = heap[b];
  heap[b] = other;
}

static void sink(int at) {
  for (;;) {
    int least = at;
    for (int child = 2 * at + 1; child <= 2 * at + 2 && child < heap_size; ++child)
      if (connections[heap[child]].due < connections[heap[least]].due) least = child;
    if (least == at) return;
    swap(at, least);
    at = least;
  }
}

static void push(int descriptor) {
  int at = heap_size++;
  heap[at] = descriptor;
  for (; at > 0 && connections[heap[at]].due < connections[heap[(at - 1) / 2]].due; at = (at - 1) / 2) swap(at, (at - 1) / 2);
}

static void drop_from_heap(int descriptor) {
  for (int at = 0; at < heap_size; ++at) {
    if (heap[at] != descriptor) continue;
    heap[at] = heap[--heap_size];
    for (int start = heap_size / 2; start >= 0; --start) sink(start);
    return;
  }
}

static void close_connection(int descriptor) {
  struct Connection *connection = &connections[descriptor];
  if (connection->request >= 0) {
    requests[connection->request].failed = 1;
    drop_from_heap(descriptor);
    --running;
  }
  free(connection->input);
  *connection = (struct Connection){.request = -1};
  close(descriptor);
}

// All of it or nothing is sent; 0 when the connection is gone.
static int send_all(int descriptor, const char *bytes, size_t size) {
  if (send(descriptor, bytes, size, MSG_NOSIGNAL) == (ssize_t)size) return 1;
  close_connection(descriptor);
  return 0;
}

// Appends one server-sent event, as one chunk of chunked coding.
static size_t add_event(char *to, size_t room, const char *format, ...) {
  char event[1024];
  va_list values;
  va_start(values, format);
  int size = vsnprintf(event, sizeof event, format, values);
  va_end(values);
  return (size_t)snprintf(to, room, "%x\r\ndata: %s\n\n\r\n", size + 8, event);
}

static size_t add_choice(char *to, size_t room, const struct Request *request, int64_t id, const char *text, const char *finish) {
  if (request->chat)
    return add_event(to, room,
                     "{\"id\":\"c%lld\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"exact\",\"choices\":[{"
                     "\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}",
                     (long long)id, text, finish);
  return add_event(to, room,
                   "{\"id\":\"c%lld\",\"object\":\"text_completion\",\"created\":1,\"model\":\"exact\",\"choices\":[{\"index\":0,"
                   "\"text\":%s,\"logprobs\":null,\"finish_reason\":%s}]}",
                   (long long)id, text, finish);
}

// The text of a chunk, as JSON: " r17 t t t" or " t t t t".
static void write_text(char *to, size_t room, const struct Request *request, int64_t id, int64_t first, int64_t count) {
  size_t size = (size_t)snprintf(to, room, request->chat ? "{\"content\":\"" : "\"");
  for (int64_t token = first; token < first + count && size + 32 < room; ++token)
    size += token == 0 ? (size_t)snprintf(to + size, room - size, " r%lld", (long long)id)
                       : (size_t)snprintf(to + size, room - size, " t");
  snprintf(to + size, room - size, request->chat ? "\"}" : "\"");
}

static int finish_reply(int descriptor, const struct Request *request) {
  char bytes[2048];
  size_t size = 0;
  if (request->wants_usage)
    size = add_event(bytes, sizeof bytes,
                     "{\"id\":\"u\",\"object\":\"%s\",\"created\":1,\"model\":\"exact\",\"choices\":[],\"usage\":{\"prompt_tokens\":8,"
                     "\"completion_tokens\":%lld,\"total_tokens\":%lld}}",
                     request->chat ? "chat.completion.chunk" : "text_completion", (long long)request->tokens,
                     (long long)request->tokens + 8);
  size += add_event(bytes + size, sizeof bytes - size, "[DONE]");
  size += (size_t)snprintf(bytes + size, sizeof bytes - size, "0\r\n\r\n");
  return send_all(descriptor, bytes, size);
}

static int begin_input(int descriptor);

// Sends the chunk that is due on the connection that stands first in the heap.
static void send_chunk(void) {
  int descriptor = heap[0];
  struct Connection *connection = &connections[descriptor];
  struct Request *request = &requests[connection->request];
  int64_t chunk = request->sent_chunks, first = chunk * per_chunk;
  int64_t count = request->tokens - first < per_chunk ? request->tokens - first : per_chunk;
  int last = chunk + 1 == request->chunks;
  char text[512], bytes[4096];
  size_t size = 0;
  if (chunk == 0 && request->chat && strcmp(role, "late") == 0)
    size = add_choice(bytes, sizeof bytes, request, connection->request, role_delta, "null");
  write_text(text, sizeof text, request, connection->request, first, count);
  size += add_choice(bytes + size, sizeof bytes - size, request, connection->request, text, last ? "\"length\"" : "null");
  int64_t sent = now();
  if (!send_all(descriptor, bytes, size)) return;
  request->sent[request->sent_chunks++] = sent;
  if (!last) {
    connection->due = due_of(request, request->sent_chunks);
    sink(0);
    return;
  }
  heap[0] = heap[--heap_size];
  sink(0);
  connection->request = -1;
  --running;
  if (finish_reply(descriptor, request)) begin_input(descriptor);
}

static int64_t new_request(int64_t arrival, const char *head, const char *body) {
  if (request_count == request_room) {
    request_room = request_room ? request_room * 2 : 1024;
    requests = realloc(requests, (size_t)request_room * sizeof *requests);
    if (!requests) die("realloc");
  }
  const char *asked = strstr(body, "\"max_tokens\":");
  if (!asked) asked = strstr(body, "\"max_completion_tokens\":");
  int64_t tokens = asked ? strtoll(strchr(asked, ':') + 1, NULL, 10) : most_tokens;
  if (tokens < 1 || tokens > most_tokens) tokens = most_tokens;
  struct Request request = {.arrival = arrival, .tokens = tokens, .chunks = (tokens + per_chunk - 1) / per_chunk};
  request.chat = strstr(head, "chat/completions") != NULL;
  request.wants_usage = strstr(body, "\"include_usage\"") != NULL;
  request.failed = fail_each > 0 && (request_count + 1) % fail_each == 0;
  request.sent = malloc((size_t)request.chunks * sizeof *request.sent);
  if (!request.sent) die("malloc");
  requests[request_count] = request;
  return request_count++;
}

static int answer_post(int descriptor, int64_t arrival, const char *head, const char *body) {
  const char *path_end = strstr(head, " HTTP/");
  if (!path_end || path_end - head < 16 || strncmp(path_end - 11, "completions", 11) != 0) {
    static const char unknown[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    return send_all(descriptor, unknown, sizeof unknown - 1);
  }
  int64_t id = new_request(arrival, head, body);
  struct Request *request = &requests[id];
  if (request->failed) {
    static const char refused[] =
        "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: 53\r\n\r\n"
        "{\"error\":{\"message\":\"as ordered\",\"type\":\"timetable\"}}";
    return send_all(descriptor, refused, sizeof refused - 1);
  }
  char bytes[1024];
  size_t size = (size_t)snprintf(bytes, sizeof bytes,
                                 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  if (request->chat && strcmp(role, "early") == 0) 
    size += add_choice(bytes + size, sizeof bytes - size, request, id, role_delta, "null");
  if (!send_all(descriptor, bytes, size)) return 0;
  connections[descriptor].request = id;
  connections[descriptor].due = due_of(request, 0);
  push(descriptor);
  if (++running > peak) peak = running;
  return 1;
}

static int answer_get(int descriptor) {
  static const char models[] = "{\"object\":\"list\",\"data\":[{\"id\":\"exact\",\"object\":\"model\",\"created\":1,"
                               "\"owned_by\":\"plimsoll\",\"max_model_len\":32768}]}";
  char bytes[1024];
  int size = snprintf(bytes, sizeof bytes, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                      sizeof models - 1, models);
  return send_all(descriptor, bytes, (size_t)size);
}

// Answers the first whole request of the input, if there is one and none is under way; 0 when the connection is gone.
static int begin_input(int descriptor) {
  struct Connection *connection = &connections[descriptor];
  while (connection->request < 0 && connection->have > 0) {
    int64_t arrival = connection->arrival;
    connection->input[connection->have] = 0;
    char *end = strstr(connection->input, "\r\n\r\n");
    if (!end) return 1;
    *end = 0;
    const char *line = strcasestr(connection->input, "\r\ncontent-length:");
    size_t body = line ? strtoull(line + 17, NULL, 10) : 0, whole = (size_t)(end + 4 - connection->input) + body;
    if (whole > connection->have) {
      *end = '\r';
      return 1;
    }
    char after = connection->input[whole];
    connection->input[whole] = 0;
    int open = strncmp(connection->input, "POST", 4) == 0 ? answer_post(descriptor, arrival, connection->input, end + 4)
                                                         : answer_get(descriptor);
    if (!open) return 0;
    connection->input[whole] = after;
    connection->have -= whole;
    memmove(connection->input, connection->input + whole, connection->have);
  }
  return 1;
}

// When the kernel received what was just read.
static int64_t arrival_of(struct msghdr *message) {
  struct timespec wall, stamp;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SO_TIMESTAMPING) continue;
    memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
    clock_gettime(CLOCK_REALTIME, &wall);
    return now() - ((wall.tv_sec - stamp.tv_sec) * NANOSECONDS + wall.tv_nsec - stamp.tv_nsec);
  }
  return now();
}

static void read_input(int descriptor) {
  struct Connection *connection = &connections[descriptor];
  char control[256];
  struct iovec bytes = {connection->input + connection->have, INPUT_BYTES - connection->have};
  struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t count = recvmsg(descriptor, &message, 0);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) {
    close_connection(descriptor);
    return;
  }
  connection->arrival = arrival_of(&message);
  connection->have += (size_t)count;
  begin_input(descriptor);
}

static void accept_all(int listener) {
  for (;;) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return;
    if (descriptor >= MOST_CONNECTIONS) {
      close(descriptor);
      continue;
    }
    int on = 1, bytes = 1 << 20, stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    connections[descriptor] = (struct Connection){.input = malloc(INPUT_BYTES + 1), .request = -1};
    if (!connections[descriptor].input) die("malloc");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event);
  }
}

static int listen_on(uint16_t port) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) die("listen");
  getsockname(listener, (struct sockaddr *)&address, &size);
  printf("Listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
  fflush(stdout);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
  return listener;
}

static void serve(int listener, const sigset_t *while_waiting) {
  struct epoll_event events[EVENTS];
  while (!stopped) {
    while (heap_size && connections[heap[0]].due <= now()) send_chunk();
    struct timespec wait = {0, 0};
    if (heap_size) {
      int64_t left = connections[heap[0]].due - now();
      if (left > 0) wait = (struct timespec){left / NANOSECONDS, left % NANOSECONDS};
    }
    int count = epoll_pwait2(poller, events, EVENTS, heap_size ? &wait : NULL, while_waiting);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == listener)
        accept_all(listener);
      else
        read_input(events[i].data.fd);
    }
  }
}

#include "exact_server_log.h"

int main(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *flag = argv[i], *value = argv[i + 1];
    if (!strcmp(flag, "--ttft")) ttft_ms = atof(value);
    else if (!strcmp(flag, "--itl")) itl_ms = atof(value);
    else if (!strcmp(flag, "--tokens")) most_tokens = atoll(value);
    else if (!strcmp(flag, "--per")) per_chunk = atoll(value);
    else if (!strcmp(flag, "--role")) role = value;
    else if (!strcmp(flag, "--fail")) fail_each = atoll(value);
    else if (!strcmp(flag, "--log")) log_name = value;
    else log_name = NULL, argc = 0;
  }
  if (!log_name || most_tokens < 1 || per_chunk < 1 || per_chunk > 100) {
    fputs("usage: exact_server --log FILE [--ttft MS] [--itl MS] [--tokens N] [--per K] [--role none|early|late]"
          " [--fail K]\n", stderr);
    return 2;
  }
  sigset_t stopping, none;
  sigemptyset(&none);
  sigemptyset(&stopping);
  sigaddset(&stopping, SIGTERM);
  sigaddset(&stopping, SIGINT);
  sigprocmask(SIG_BLOCK, &stopping, NULL);  // they come only while it waits
  signal(SIGTERM, stop);
  signal(SIGINT, stop);
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  struct rlimit files = {MOST_CONNECTIONS, MOST_CONNECTIONS};
  if (setrlimit(RLIMIT_NOFILE, &files)) getrlimit(RLIMIT_NOFILE, &files);
  poller = epoll_create1(EPOLL_CLOEXEC);
  serve(listen_on(0), &none);
  write_log();
  return 0;
}
