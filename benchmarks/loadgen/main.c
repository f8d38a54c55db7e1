/* Entry point of the load generator: loadgen MODE key=value ... */
#include "loadgen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

const char *text_argument(const arguments *args, const char *key, const char *fallback) {
    size_t length = strlen(key);
    for (int i = 0; i < args->count; i++) {
        if (strncmp(args->words[i], key, length) == 0 && args->words[i][length] == '=') {
            return args->words[i] + length + 1;
        }
    }
    if (fallback == NULL) {
        fail("missing argument %s=", key);
    }
    return fallback;
}

long long number_argument(const arguments *args, const char *key, long long fallback) {
    const char *text = text_argument(args, key, "");
    return text[0] == '\0' ? fallback : strtoll(text, NULL, 10);
}

void fail(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    vfprintf(stderr, format, rest);
    va_end(rest);
    fputc('\n', stderr);
    exit(1);
}

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void add_sample(samples *all, int64_t nanoseconds) {
    if (all->count == all->capacity) {
        all->capacity = all->capacity == 0 ? 65536 : all->capacity * 2;
        all->values = realloc(all->values, all->capacity * sizeof(int64_t));
        if (all->values == NULL) {
            fail("out of memory for %zu samples", all->capacity);
        }
    }
    all->values[all->count++] = nanoseconds;
}

static int ascending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double percentile_ms(const samples *all, double fraction) {
    size_t index = (size_t)(fraction * (double)all->count);
    if (index >= all->count) {
        index = all->count - 1;
    }
    return (double)all->values[index] / 1e6;
}

void print_percentiles(samples *all) {
    if (all->count == 0) {
        printf(", \"samples\": 0");
        return;
    }
    qsort(all->values, all->count, sizeof(int64_t), ascending);
    printf(", \"samples\": %zu, \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f", all->count,
           percentile_ms(all, 0.5), percentile_ms(all, 0.99), percentile_ms(all, 0.999), percentile_ms(all, 1.0));
}

void print_throughput(long long records, long long bytes, double seconds, double cpu) {
    printf("\"records\": %lld, \"bytes\": %lld, \"seconds\": %.6f, \"records_per_second\": %.1f, "
           "\"mb_per_second\": %.3f, \"client_cpu_seconds\": %.3f",
           records, bytes, seconds, (double)records / seconds, (double)bytes / seconds / 1e6, cpu);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(const arguments *);
    } modes[] = {
        {"produce", run_produce}, {"consume", run_consume}, {"latency", run_latency},
        {"replay", run_replay},   {"fetch", run_fetch},
    };
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(argv[1], modes[i].name) == 0) {
            arguments args = {argc - 2, argv + 2};
            return modes[i].run(&args);
        }
    }
    fail("usage: loadgen produce|consume|latency|replay|fetch key=value ...");
}
