/* Records of Kafka's format 2 to Arrow's columns and back. Plain C11, no Python: called without the interpreter's lock.
 *
 * Nothing is allocated here. What comes from a payload is not trusted: every length is checked against the end of its
 * record, and of the payload, before a byte behind it is read. Columns to be encoded come from Arrow and are trusted.
 * The structures mirror interface.py; twin.py does the same in Python, with the same answers for the same bytes.
 */

#include "kernel.h"

enum { ABI = 3 }; /* changes with every structure here and in json.c; native.py checks it */

typedef enum { DONE, FULL, VARINT, RECORD_LENGTH, CUT_SHORT, HEADER_COUNT, HEADER_NAME, OFFSET } status;

typedef struct {
    const uint8_t *payload;
    int64_t length, position, records_left;
    int64_t base_offset, base_timestamp, log_append_time, uses_log_append_time;
    int64_t start, end;
} cursor;

typedef struct {
    int64_t rows, key_bytes, value_bytes, headers, header_key_bytes, header_value_bytes;
    int64_t rows_max, key_bytes_max, value_bytes_max, headers_max, header_key_bytes_max, header_value_bytes_max;
    int64_t key_nulls, value_nulls, header_nulls, header_value_nulls, with_headers;
    int64_t need_key_bytes, need_value_bytes, need_headers, need_header_key_bytes, need_header_value_bytes;
    int32_t *key_offsets;
    uint8_t *key_data, *key_valid;
    int32_t *value_offsets;
    uint8_t *value_data, *value_valid;
    int64_t *offsets, *timestamps;
    int32_t *header_lists;
    uint8_t *header_valid;
    int32_t *header_key_offsets;
    uint8_t *header_key_data;
    int32_t *header_value_offsets;
    uint8_t *header_value_data, *header_value_valid;
} columns;

typedef struct {
    binary key, value, headers, header_key, header_value;
    const int64_t *timestamps; /* of each row, or NULL: then all have the payload's */
    const int64_t *offsets;    /* of each row, or NULL: then records are counted */
} rows;

typedef struct {
    uint8_t *buffer;
    int64_t capacity, used, records, timestamp_delta, need, base_timestamp, base_offset;
} payload;

/* ---- reading ---- */

typedef struct {
    const uint8_t *at, *end;
} window;

static status read_long(window *w, int64_t *out) {
    uint64_t raw = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end)
            return CUT_SHORT;
        uint8_t byte = *w->at++;
        if (shift == 63 && byte > 1)
            return VARINT; /* more than 64 bits, or more than ten bytes */
        raw |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *out = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            return DONE;
        }
    }
    return VARINT;
}

static inline status read_int(window *w, int64_t *out) {
    if (w->at < w->end && *w->at < 0x80) { /* nearly every number of a record has one byte */
        uint8_t byte = *w->at++;
        *out = (byte >> 1) ^ -(int64_t)(byte & 1);
        return DONE;
    }
    status wrong = read_long(w, out);
    if (wrong)
        return wrong;
    return *out < INT32_MIN || *out > INT32_MAX ? VARINT : DONE;
}

static inline status read_bytes(window *w, slice *out) {
    status wrong = read_int(w, &out->length);
    if (wrong)
        return wrong;
    out->at = w->at;
    if (out->length < 0)
        return DONE;
    if (out->length > w->end - w->at)
        return CUT_SHORT;
    w->at += out->length;
    return DONE;
}

static status read_header(window *w, slice *name, slice *value) {
    status wrong = read_bytes(w, name);
    if (wrong)
        return wrong;
    if (name->length < 0 || !is_utf8(name->at, name->length))
        return HEADER_NAME;
    return read_bytes(w, value);
}

/* Checks the headers, moves behind them, and counts what they need. */
static status read_headers(window *w, int64_t *count, int64_t *name_bytes, int64_t *value_bytes) {
    status wrong = read_int(w, count);
    if (wrong)
        return wrong;
    if (*count < 0 || *count > w->end - w->at)
        return HEADER_COUNT;
    for (int64_t i = 0; i < *count; i++) {
        slice name, value;
        if ((wrong = read_header(w, &name, &value)))
            return wrong;
        *name_bytes += name.length;
        *value_bytes += value.length > 0 ? value.length : 0;
    }
    return DONE;
}

static inline void set_bit(uint8_t *bits, int64_t index) { bits[index >> 3] |= (uint8_t)(1u << (index & 7)); }

/* Times that Spark cannot hold become the nearest that it can. */
static int64_t microseconds(int64_t base, int64_t delta) {
    int64_t sum, product;
    if (__builtin_add_overflow(base, delta, &sum))
        sum = delta < 0 ? INT64_MIN : INT64_MAX;
    if (__builtin_mul_overflow(sum, (int64_t)1000, &product))
        product = sum < 0 ? INT64_MIN : INT64_MAX;
    return product;
}

static inline void append_bytes(slice bytes, int64_t index, int32_t *offsets, uint8_t *data, uint8_t *valid,
                                int64_t *used, int64_t *nulls) {
    if (bytes.length < 0) {
        ++*nulls;
    } else {
        set_bit(valid, index);
        if (bytes.length)
            memcpy(data + *used, bytes.at, (size_t)bytes.length);
        *used += bytes.length;
    }
    offsets[index + 1] = (int32_t)*used;
}

static void append_headers(columns *c, int64_t row, window w, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        slice name = {NULL, 0}, value = {NULL, -1};
        read_header(&w, &name, &value); /* was checked before */
        int64_t entry = c->headers++;
        if (name.length)
            memcpy(c->header_key_data + c->header_key_bytes, name.at, (size_t)name.length);
        c->header_key_bytes += name.length;
        c->header_key_offsets[entry + 1] = (int32_t)c->header_key_bytes;
        append_bytes(value, entry, c->header_value_offsets, c->header_value_data, c->header_value_valid,
                     &c->header_value_bytes, &c->header_value_nulls);
    }
    c->header_lists[row + 1] = (int32_t)c->headers;
    if (count)
        set_bit(c->header_valid, row);
    else
        c->header_nulls++;
}

static inline bool has_room(const columns *c) {
    return c->rows < c->rows_max && c->need_key_bytes <= c->key_bytes_max - c->key_bytes &&
           c->need_value_bytes <= c->value_bytes_max - c->value_bytes &&
           c->need_headers <= c->headers_max - c->headers &&
           c->need_header_key_bytes <= c->header_key_bytes_max - c->header_key_bytes &&
           c->need_header_value_bytes <= c->header_value_bytes_max - c->header_value_bytes;
}

static status parse_record(const cursor *from, window *w, columns *c) {
    int64_t length, timestamp_delta, offset_delta, offset;
    status wrong = read_int(w, &length);
    if (wrong)
        return wrong;
    if (length <= 0 || length > w->end - w->at)
        return CUT_SHORT;
    window r = {w->at + 1, w->at + length}; /* one byte of unused attributes first */
    w->at = r.end;
    slice key, value;
    if ((wrong = read_long(&r, &timestamp_delta)) || (wrong = read_int(&r, &offset_delta)) ||
        (wrong = read_bytes(&r, &key)) || (wrong = read_bytes(&r, &value)))
        return wrong;
    window headers_at = r;
    int64_t headers = 0, header_key_bytes = 0, header_value_bytes = 0;
    if ((wrong = read_headers(&r, &headers, &header_key_bytes, &header_value_bytes)))
        return wrong;
    if (r.at != r.end)
        return RECORD_LENGTH;
    if (__builtin_add_overflow(from->base_offset, offset_delta, &offset))
        return OFFSET;
    if (offset < from->start || offset >= from->end)
        return DONE;
    c->need_key_bytes = key.length > 0 ? key.length : 0;
    c->need_value_bytes = value.length > 0 ? value.length : 0;
    c->need_headers = c->with_headers ? headers : 0;
    c->need_header_key_bytes = c->with_headers ? header_key_bytes : 0;
    c->need_header_value_bytes = c->with_headers ? header_value_bytes : 0;
    if (!has_room(c))
        return FULL;
    int64_t row = c->rows++;
    c->offsets[row] = offset;
    c->timestamps[row] = from->uses_log_append_time ? microseconds(from->log_append_time, 0)
                                                    : microseconds(from->base_timestamp, timestamp_delta);
    append_bytes(key, row, c->key_offsets, c->key_data, c->key_valid, &c->key_bytes, &c->key_nulls);
    append_bytes(value, row, c->value_offsets, c->value_data, c->value_valid, &c->value_bytes, &c->value_nulls);
    if (c->with_headers) {
        read_int(&headers_at, &headers); /* the count again: the entries start behind it */
        append_headers(c, row, headers_at, headers);
    }
    return DONE;
}

EXPORT int32_t ottla_parse(cursor *from, columns *into) {
    window w = {from->payload + from->position, from->payload + from->length};
    while (from->records_left > 0) {
        status stopped = parse_record(from, &w, into);
        if (stopped)
            return stopped;
        from->position = w.at - from->payload;
        from->records_left--;
    }
    return DONE;
}

/* ---- writing ---- */

static inline uint64_t zigzag(int64_t number) { return ((uint64_t)number << 1) ^ (uint64_t)(number >> 63); }

static inline int64_t size_of_number(int64_t number) {
    uint64_t raw = zigzag(number);
    int64_t size = 1;
    while (raw >= 0x80) {
        raw >>= 7;
        size++;
    }
    return size;
}

static inline int64_t size_of_bytes(slice bytes) {
    return size_of_number(bytes.length) + (bytes.length > 0 ? bytes.length : 0);
}

static inline uint8_t *put_number(uint8_t *at, int64_t number) {
    uint64_t raw = zigzag(number);
    while (raw >= 0x80) {
        *at++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *at++ = (uint8_t)raw;
    return at;
}

static inline uint8_t *put_bytes(uint8_t *at, slice bytes) {
    at = put_number(at, bytes.length);
    if (bytes.length > 0) {
        memcpy(at, bytes.at, (size_t)bytes.length);
        at += bytes.length;
    }
    return at;
}

EXPORT int64_t ottla_encode(const rows *from, const int64_t *selected, int64_t count, payload *into) {
    for (int64_t done = 0; done < count; done++) {
        int64_t row = selected[done];
        int64_t timestamp_delta =
            from->timestamps ? from->timestamps[row] - into->base_timestamp : into->timestamp_delta;
        int64_t offset_delta = from->offsets ? from->offsets[row] - into->base_offset : into->records;
        slice key = get(&from->key, row), value = get(&from->value, row);
        int64_t first = 0, last = 0;
        if (!is_null(&from->headers, row)) {
            first = from->headers.offsets[row];
            last = from->headers.offsets[row + 1];
        }
        int64_t body = 1 + size_of_number(timestamp_delta) + size_of_number(offset_delta) + size_of_bytes(key) +
                       size_of_bytes(value) + size_of_number(last - first);
        for (int64_t entry = first; entry < last; entry++)
            body += size_of_bytes(get(&from->header_key, entry)) + size_of_bytes(get(&from->header_value, entry));
        int64_t size = size_of_number(body) + body;
        if (size > into->capacity - into->used) {
            into->need = size;
            return done;
        }
        uint8_t *at = put_number(into->buffer + into->used, body);
        *at++ = 0; /* attributes, unused */
        at = put_number(at, timestamp_delta);
        at = put_number(at, offset_delta);
        at = put_bytes(put_bytes(at, key), value);
        at = put_number(at, last - first);
        for (int64_t entry = first; entry < last; entry++)
            at = put_bytes(put_bytes(at, get(&from->header_key, entry)), get(&from->header_value, entry));
        into->used += size;
        into->records++;
    }
    return count;
}

/* ---- partitions ---- */

static uint32_t murmur2(const uint8_t *at, int64_t length) {
    const uint32_t multiplier = 0x5BD1E995u;
    uint32_t digest = 0x9747B28Cu ^ (uint32_t)length;
    for (; length >= 4; at += 4, length -= 4) {
        uint32_t word = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        word *= multiplier;
        word = (word ^ word >> 24) * multiplier;
        digest = digest * multiplier ^ word;
    }
    if (length) {
        for (int64_t i = 0; i < length; i++)
            digest ^= (uint32_t)at[i] << (8 * i);
        digest *= multiplier;
    }
    digest = (digest ^ digest >> 13) * multiplier;
    return digest ^ digest >> 15;
}

EXPORT void ottla_murmur2(const binary *column, int32_t *out) {
    for (int64_t row = 0; row < column->count; row++) {
        slice key = get(column, row);
        out[row] = key.length < 0 ? -1 : (int32_t)(murmur2(key.at, key.length) & 0x7FFFFFFFu);
    }
}

EXPORT int32_t ottla_abi(void) { return ABI; }
