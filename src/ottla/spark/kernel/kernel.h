/* What kernel.c and json.c share: columns of byte strings as Arrow lays them out, and what counts as UTF-8. */

#ifndef OTTLA_KERNEL_H
#define OTTLA_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    int64_t count;
    const int32_t *offsets;
    const uint8_t *data, *valid;
    int64_t bits_from;
} binary;

typedef struct {
    const uint8_t *at;
    int64_t length; /* negative: null */
} slice;

static inline bool is_null(const binary *b, int64_t row) {
    if (row >= b->count)
        return true;
    int64_t bit = row + b->bits_from;
    return b->valid && !(b->valid[bit >> 3] >> (bit & 7) & 1);
}

static inline slice get(const binary *b, int64_t row) {
    if (is_null(b, row))
        return (slice){NULL, -1};
    return (slice){b->data + b->offsets[row], b->offsets[row + 1] - b->offsets[row]};
}

static inline bool is_utf8(const uint8_t *at, int64_t length) {
    const uint8_t *end = at + length;
    while (at < end) {
        uint8_t first = *at++;
        if (first < 0x80)
            continue;
        int more;
        uint8_t low = 0x80, high = 0xBF; /* bounds of the second byte: no long forms, no surrogates, no more than U+10FFFF */
        if (first >= 0xC2 && first <= 0xDF)
            more = 1;
        else if (first >= 0xE0 && first <= 0xEF) {
            more = 2;
            if (first == 0xE0)
                low = 0xA0;
            else if (first == 0xED)
                high = 0x9F;
        } else if (first >= 0xF0 && first <= 0xF4) {
            more = 3;
            if (first == 0xF0)
                low = 0x90;
            else if (first == 0xF4)
                high = 0x8F;
        } else
            return false;
        if (end - at < more)
            return false;
        for (; more; more--, at++, low = 0x80, high = 0xBF)
            if (*at < low || *at > high)
                return false;
    }
    return true;
}

#endif
