/* What the parts of the load generator share: arguments, clocks, samples and the one line of JSON each run prints. */
#ifndef OTTLA_LOADGEN_H
#define OTTLA_LOADGEN_H

#include <stddef.h>
#include <stdint.h>

/* Arguments are key=value words after the mode. Keys that start with "P." and "C." are properties of
 * librdkafka's producer and consumer. */
typedef struct {
    int count;
    char **words;
} arguments;

const char *text_argument(const arguments *args, const char *key, const char *fallback);
long long number_argument(const arguments *args, const char *key, long long fallback);
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

int64_t now_ns(void);
double cpu_seconds(void);

/* Every latency is kept, so the percentiles are exact. */
typedef struct {
    int64_t *values;
    size_t count;
    size_t capacity;
} samples;

void add_sample(samples *all, int64_t nanoseconds);
void print_percentiles(samples *all);

/* Prints the figures that every mode reports and closes nothing: the caller prints the braces around it. */
void print_throughput(long long records, long long bytes, double seconds, double cpu);

int run_produce(const arguments *args);
int run_consume(const arguments *args);
int run_latency(const arguments *args);
int run_replay(const arguments *args);
int run_fetch(const arguments *args);

#endif
