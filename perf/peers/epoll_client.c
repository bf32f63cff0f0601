// SPDX-License-Identifier: Apache-2.0
// A bare load client: the floor that other clients are held against. A closed loop of streaming completions, kept alive.
//
// usage: epoll_client PORT STREAMS REQUESTS TOKENS
//
// Per request a JSON line: {"request": the server's number of it, "sent", "chunks": [], "kernel": [], "failed"}; CLOCK_MONOTONIC
// in nanoseconds. "sent" is taken before the send() of the request, "chunks" after the recvmsg() that completed the line of a
// token, "kernel" is when the kernel received the last byte of that read (SO_TIMESTAMPING, software). The kernel stamps by
// CLOCK_REALTIME; the distance of the two clocks is taken once, so a clock that is set during the run spoils that column.
// At last a line {"cpu_us", "tokens", "reads", "failed"}; cpu_us ends before anything is printed.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_BYTES = 1 << 16, EVENTS = 256 };

struct Record {
  int64_t number, sent, *chunks, *kernel, count;
  int failed;
};

struct Stream {
  int descriptor;
  int64_t record;
  size_t have;
  char input[INPUT_BYTES];
};

static struct Stream *streams;
static struct Record *records;
static int64_t request_count, token_count, begun = 0, done = 0, reads = 0, realtime_ahead;
static int poller, port;
static char body_and_head[1024];
static size_t request_bytes;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static int64_t read_clock(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void open_stream(struct Stream *stream) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int on = 1, stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  stream->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  stream->have = 0;
  if (connect(stream->descriptor, (struct sockaddr *)&address, sizeof address)) die("connect");
  setsockopt(stream->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (setsockopt(stream->descriptor, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps)) die("SO_TIMESTAMPING");
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = stream};
  epoll_ctl(poller, EPOLL_CTL_ADD, stream->descriptor, &event);
}

static void begin(struct Stream *stream) {
  if (begun == request_count) return;
  stream->record = begun++;
  records[stream->record].sent = read_clock(CLOCK_MONOTONIC);
  if (send(stream->descriptor, body_and_head, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes) die("send");
}

static void end(struct Stream *stream, int failed) {
  records[stream->record].failed = failed;
  ++done;
  if (failed) {
    close(stream->descriptor);
    open_stream(stream);
  }
  begin(stream);
}

// One line of a reply, without its end. 1 when the reply ended with it.
static int take_line(struct Stream *stream, char *line, int64_t at, int64_t kernel) {
  struct Record *record = &records[stream->record];
  if (strncmp(line, "data: {", 7) == 0) {
    if (strstr(line, "\"choices\":[]")) return 0;
    if (record->count == 0) {
      const char *number = strstr(line, "\" r");
      record->number = number ? strtoll(number + 3, NULL, 10) : -1;
    }
    if (record->count < token_count) {
      record->chunks[record->count] = at;
      record->kernel[record->count++] = kernel;
    }
    return 0;
  }
  return strcmp(line, "0\r") == 0;
}

static void take_input(struct Stream *stream, int64_t at, int64_t kernel) {
  stream->input[stream->have] = 0;
  if (strncmp(stream->input, "HTTP/1.1 ", 9) == 0 && strncmp(stream->input + 9, "200", 3) != 0) {
    end(stream, 1);
    return;
  }
  char *line = stream->input, *stop;
  int ended = 0;
  while ((stop = strchr(line, '\n'))) {
    *stop = 0;
    ended |= take_line(stream, line, at, kernel);
    line = stop + 1;
  }
  stream->have = (size_t)(stream->input + stream->have - line);
  memmove(stream->input, line, stream->have);
  if (ended && stream->have == 0) end(stream, 0);
}

static void read_stream(struct Stream *stream) {
  char control[256];
  struct iovec bytes = {stream->input + stream->have, INPUT_BYTES - 1 - stream->have};
  struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t size = recvmsg(stream->descriptor, &message, MSG_DONTWAIT);
  if (size < 0 && errno == EAGAIN) return;
  int64_t at = read_clock(CLOCK_MONOTONIC), kernel = 0;
  if (size <= 0) {
    end(stream, 1);
    return;
  }
  ++reads;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SO_TIMESTAMPING) continue;
    struct timespec stamp;
    memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
    kernel = stamp.tv_sec * 1000000000LL + stamp.tv_nsec - realtime_ahead;
  }
  stream->have += (size_t)size;
  take_input(stream, at, kernel);
}

static void print_numbers(const char *name, const int64_t *numbers, int64_t count) {
  printf(",\"%s\":[", name);
  for (int64_t i = 0; i < count; ++i) printf("%s%lld", i ? "," : "", (long long)numbers[i]);
  putchar(']');
}

static void print_records(int64_t cpu_us) {
  int64_t tokens = 0, failed = 0;
  for (int64_t i = 0; i < request_count; ++i) {
    const struct Record *record = &records[i];
    printf("{\"request\":%lld,\"sent\":%lld", (long long)record->number, (long long)record->sent);
    print_numbers("chunks", record->chunks, record->count);
    print_numbers("kernel", record->kernel, record->count);
    printf(",\"failed\":%s}\n", record->failed ? "true" : "false");
    tokens += record->count;
    failed += record->failed;
  }
  printf("{\"cpu_us\":%lld,\"tokens\":%lld,\"reads\":%lld,\"failed\":%lld}\n", (long long)cpu_us, (long long)tokens,
         (long long)reads, (long long)failed);
}

static void make_request(void) {
  char body[256];
  int size = snprintf(body, sizeof body,
                      "{\"model\":\"exact\",\"prompt\":\"one two three four five six seven eight\",\"max_tokens\":%lld,"
                      "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
                      (long long)token_count);
  request_bytes = (size_t)snprintf(body_and_head, sizeof body_and_head,
                                   "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                                   "Content-Length: %d\r\n\r\n%s",
                                   port, size, body);
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fputs("usage: epoll_client PORT STREAMS REQUESTS TOKENS\n", stderr);
    return 2;
  }
  port = atoi(argv[1]);
  int64_t stream_count = atoll(argv[2]);
  request_count = atoll(argv[3]);
  token_count = atoll(argv[4]);
  streams = calloc((size_t)stream_count, sizeof *streams);
  records = calloc((size_t)request_count, sizeof *records);
  int64_t *stamps = calloc((size_t)(2 * request_count * token_count), sizeof *stamps);
  if (!streams || !records || !stamps) die("calloc");
  for (int64_t i = 0; i < request_count; ++i) {
    records[i].number = -1;
    records[i].chunks = stamps + 2 * i * token_count;
    records[i].kernel = records[i].chunks + token_count;
  }
  realtime_ahead = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
  poller = epoll_create1(EPOLL_CLOEXEC);
  make_request();
  for (int64_t i = 0; i < stream_count; ++i) open_stream(&streams[i]);
  for (int64_t i = 0; i < stream_count; ++i) begin(&streams[i]);
  struct epoll_event events[EVENTS];
  while (done < request_count) {
    int count = epoll_wait(poller, events, EVENTS, -1);
    for (int i = 0; i < count; ++i) read_stream(events[i].data.ptr);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  print_records((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  return 0;
}
