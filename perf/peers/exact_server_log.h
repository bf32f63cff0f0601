// SPDX-License-Identifier: Apache-2.0
// How exact_server.c writes its log: the part of that file that nobody waits for. It reads that file's
// requests and settings.
#pragma once
static int ascending(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

static void write_numbers(FILE* file, const char* name, const struct Request* request, int due) {
  fprintf(file, ",\"%s\":[", name);
  for (int64_t i = 0; i < request->sent_chunks; ++i)
    fprintf(file, "%s%lld", i ? "," : "", (long long)(due ? due_of(request, i) : request->sent[i]));
  fputc(']', file);
}

static void write_log(void) {
  FILE* file = fopen(log_name, "w");
  if (!file) die(log_name);
  int64_t count = 0, sum = 0;
  for (int64_t i = 0; i < request_count; ++i) count += requests[i].sent_chunks;
  int64_t* late = malloc((size_t)(count + 1) * sizeof *late);
  if (!late) die("malloc");
  count = 0;
  for (int64_t i = 0; i < request_count; ++i) {
    const struct Request* request = &requests[i];
    fprintf(file, "{\"request\":%lld,\"arrival\":%lld,\"failed\":%s,\"tokens\":%lld", (long long)i,
            (long long)request->arrival, request->failed ? "true" : "false", (long long)per_chunk);
    write_numbers(file, "due", request, 1);
    write_numbers(file, "sent", request, 0);
    fputs("}\n", file);
    for (int64_t k = 0; k < request->sent_chunks; ++k)
      sum += late[count++] = request->sent[k] - due_of(request, k);
  }
  qsort(late, (size_t)count, sizeof *late, ascending);
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  fprintf(file,
          "{\"requests\":%lld,\"late_us\":{\"mean\":%.1f,\"p99\":%.1f,\"max\":%.1f},\"peak\":%lld,\"cpu_us\":"
          "%lld}\n",
          (long long)request_count, count ? (double)sum / (double)count / 1e3 : 0,
          count ? (double)late[(count - 1) * 99 / 100] / 1e3 : 0, count ? (double)late[count - 1] / 1e3 : 0,
          (long long)peak,
          (long long)((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
                      usage.ru_stime.tv_usec));
  if (fclose(file)) die(log_name);
}
