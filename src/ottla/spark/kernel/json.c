/* JSON objects to Arrow's columns, as far as they are plain. Plain C11, no Python, nothing allocated.
 *
 * A value is plain if it is one JSON object of the strict grammar whose fields fit their types without a question:
 * Spark would read it as the same row, whatever its settings. Everything else (a number for a text, an exponent in an
 * integer, a moment without a zone, a field given twice, ...) is not an error here. It is left to Spark, which knows its
 * own rules. So in doubt a value is not plain. Values are not trusted: no byte behind the end of one is read.
 */

#include "kernel.h"

enum { VALUE_BYTES_MAX = 1 << 20, NAME_BYTES_MAX = 1000, NUMBER_BYTES_MAX = 100, DEPTH_MAX = 64, DIGITS_MAX = 18 };

typedef enum { TEXT, INT32, INT64, DOUBLE, BOOLEAN, TIMESTAMP, DATE, OBJECT } kind;

typedef struct {
    const uint8_t *name;
    int64_t name_length;
    int64_t kind;
    int64_t required; /* missing or null is not plain */
    int64_t inside;   /* of an OBJECT: so many fields behind it are its own, those of its objects among them */
    int64_t seen;     /* the last row that had it, counted from one */
    uint8_t *valid;   /* a byte for each row */
    void *values;     /* of each row; of a TEXT its length in UTF-8 */
    int64_t *starts;  /* of a TEXT: where it begins in the data of the values; ~start if it has escapes */
} field;

typedef struct {
    const uint8_t *at, *end;
} reader;

typedef struct {
    bool negative, whole;
    uint64_t digits;
    int64_t exponent;
} number;

static inline void skip_space(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static inline bool take(reader *r, uint8_t wanted) {
    if (r->at == r->end || *r->at != wanted)
        return false;
    r->at++;
    return true;
}

static inline bool take_word(reader *r, const char *word) {
    int64_t length = (int64_t)strlen(word);
    if (r->end - r->at < length || memcmp(r->at, word, (size_t)length) != 0)
        return false;
    r->at += length;
    return true;
}

static int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_unit(reader *r, uint32_t *unit) {
    if (r->end - r->at < 4)
        return false;
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*r->at++);
        if (digit < 0)
            return false;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

/* Behind a backslash: the character that is meant. */
static bool take_escaped(reader *r, uint32_t *point) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return false;
    uint8_t letter = *r->at++;
    if (letter != 'u') {
        const char *found = letter ? strchr(letters, letter) : NULL;
        *point = found ? (uint32_t)meant[found - letters] : 0;
        return found != NULL;
    }
    if (!take_unit(r, point))
        return false;
    if (*point < 0xD800 || *point > 0xDFFF)
        return true;
    uint32_t low; /* characters beyond 16 bits are two units */
    if (*point > 0xDBFF || !take(r, '\\') || !take(r, 'u') || !take_unit(r, &low) || low < 0xDC00 || low > 0xDFFF)
        return false;
    *point = 0x10000 + ((*point - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

static inline int utf8_size(uint32_t point) { return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4; }

static uint8_t *put_utf8(uint8_t *at, uint32_t point) {
    int size = utf8_size(point);
    if (size == 1) {
        *at = (uint8_t)point;
        return at + 1;
    }
    for (int i = size - 1; i > 0; i--, point >>= 6)
        at[i] = (uint8_t)(0x80 | (point & 0x3F));
    at[0] = (uint8_t)(0xF0 << (4 - size) | point);
    return at + size;
}

/* A string, at its quote: its bytes between the quotes, and how long they are once escapes are gone. */
static bool read_text(reader *r, slice *raw, int64_t *length) {
    if (!take(r, '"'))
        return false;
    raw->at = r->at;
    bool beyond_ascii = false;
    int64_t shorter = 0;
    while (r->at < r->end) {
        uint8_t c = *r->at;
        if (c == '"') {
            raw->length = r->at++ - raw->at;
            *length = raw->length - shorter;
            return !beyond_ascii || is_utf8(raw->at, raw->length);
        }
        if (c < 0x20)
            return false;
        beyond_ascii |= c >= 0x80;
        const uint8_t *from = r->at++;
        if (c == '\\') {
            uint32_t point;
            if (!take_escaped(r, &point))
                return false;
            shorter += (r->at - from) - utf8_size(point);
        }
    }
    return false;
}

static inline bool is_digit(const reader *r) { return r->at < r->end && *r->at >= '0' && *r->at <= '9'; }

static void take_digits(reader *r, uint64_t *digits, int64_t *count) {
    for (; is_digit(r); r->at++) {
        if (*count < DIGITS_MAX)
            *digits = *digits * 10 + (uint64_t)(*r->at - '0');
        *count += *digits || *count; /* zeros in front do not count */
    }
}

/* One of the grammar with so few digits that none is lost. */
static bool read_number(reader *r, number *n) {
    const uint8_t *begin = r->at;
    int64_t count = 0, power = 0;
    *n = (number){take(r, '-'), true, 0, 0};
    if (!is_digit(r))
        return false;
    if (*r->at == '0')
        r->at++; /* and no digit behind it: whatever comes next ends the number, or is wrong */
    else
        take_digits(r, &n->digits, &count);
    if (take(r, '.')) {
        n->whole = false;
        const uint8_t *first = r->at;
        take_digits(r, &n->digits, &count);
        n->exponent = first - r->at;
        if (first == r->at)
            return false;
    }
    if (r->at < r->end && (*r->at | 0x20) == 'e') {
        r->at++;
        n->whole = false;
        bool down = take(r, '-');
        if (!down)
            take(r, '+');
        if (!is_digit(r))
            return false;
        for (; is_digit(r); r->at++)
            if (power < 1000)
                power = power * 10 + (*r->at - '0');
        n->exponent += down ? -power : power;
    }
    return count <= DIGITS_MAX && r->at - begin <= NUMBER_BYTES_MAX && !(n->negative && n->digits == 0);
}

static bool as_int(const number *n, int64_t lowest, int64_t highest, int64_t *out) {
    *out = n->negative ? -(int64_t)n->digits : (int64_t)n->digits;
    return n->whole && *out >= lowest && *out <= highest;
}

/* Only where one operation on two exact numbers gives the nearest double. */
static bool as_double(const number *n, double *out) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (n->digits > (uint64_t)1 << 53 || n->exponent < -22 || n->exponent > 22)
        return false;
    double found = (double)n->digits;
    found = n->exponent < 0 ? found / powers[-n->exponent] : found * powers[n->exponent];
    *out = n->negative ? -found : found;
    return true;
}

static bool skip_value(reader *r, int depth);

static bool skip_object(reader *r, int depth) {
    r->at++;
    skip_space(r);
    if (take(r, '}'))
        return true;
    do {
        slice name;
        int64_t length;
        skip_space(r);
        if (!read_text(r, &name, &length) || name.length > NAME_BYTES_MAX)
            return false;
        skip_space(r);
        if (!take(r, ':') || !skip_value(r, depth))
            return false;
    } while (take(r, ','));
    return take(r, '}');
}

static bool skip_array(reader *r, int depth) {
    r->at++;
    skip_space(r);
    if (take(r, ']'))
        return true;
    do {
        if (!skip_value(r, depth))
            return false;
    } while (take(r, ','));
    return take(r, ']');
}

/* Any value, with the space around it. */
static bool skip_value(reader *r, int depth) {
    slice text;
    number some;
    int64_t length;
    bool good;
    skip_space(r);
    if (r->at == r->end || depth > DEPTH_MAX)
        return false;
    switch (*r->at) {
    case '{': good = skip_object(r, depth + 1); break;
    case '[': good = skip_array(r, depth + 1); break;
    case '"': good = read_text(r, &text, &length); break;
    case 't': good = take_word(r, "true"); break;
    case 'f': good = take_word(r, "false"); break;
    case 'n': good = take_word(r, "null"); break;
    default: good = read_number(r, &some);
    }
    skip_space(r);
    return good;
}

/* ---- moments ---- */

static bool take_number(reader *r, int digits, int64_t lowest, int64_t highest, int64_t *out) {
    *out = 0;
    for (; digits; digits--, r->at++) {
        if (!is_digit(r))
            return false;
        *out = *out * 10 + (*r->at - '0');
    }
    return *out >= lowest && *out <= highest;
}

/* Days since 1970 in the calendar of today. Years before 1600 are left to those who know about calendars, and the last one
 * that fits a row to those who ask whether a moment of it still does, in another zone. */
static bool take_date(reader *r, int64_t *days) {
    static const int8_t lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t year, month, day;
    if (!take_number(r, 4, 1600, 9998, &year) || !take(r, '-') || !take_number(r, 2, 1, 12, &month) || !take(r, '-') ||
        !take_number(r, 2, 1, 31, &day))
        return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > lengths[month - 1] || (month == 2 && day == 29 && !leap))
        return false;
    int64_t shifted = year - (month <= 2), era = shifted / 400, of_era = shifted % 400; /* years begin in March here */
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    *days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return true;
}

static bool take_zone(reader *r, int64_t *seconds) {
    *seconds = 0;
    if (take(r, 'Z'))
        return true;
    bool west = take(r, '-');
    int64_t hours, minutes;
    if ((!west && !take(r, '+')) || !take_number(r, 2, 0, 17, &hours) || !take(r, ':') ||
        !take_number(r, 2, 0, 59, &minutes))
        return false;
    *seconds = (hours * 60 + minutes) * (west ? -60 : 60);
    return true;
}

/* 2026-01-31T12:00:00.123456Z or +01:00: microseconds since 1970. */
static bool take_timestamp(reader *r, int64_t *out) {
    int64_t days, hour, minute, second, fraction = 0, zone;
    if (!take_date(r, &days) || !(take(r, 'T') || take(r, ' ')) || !take_number(r, 2, 0, 23, &hour) || !take(r, ':') ||
        !take_number(r, 2, 0, 59, &minute) || !take(r, ':') || !take_number(r, 2, 0, 59, &second))
        return false;
    if (take(r, '.')) {
        int64_t unit = 100000;
        if (!is_digit(r))
            return false;
        for (; is_digit(r); r->at++, unit /= 10) {
            if (!unit)
                return false;
            fraction += unit * (*r->at - '0');
        }
    }
    if (!take_zone(r, &zone))
        return false;
    *out = (((days * 24 + hour) * 60 + minute) * 60 + second - zone) * 1000000 + fraction;
    return true;
}

/* ---- fields ---- */

static field *find(field *fields, int64_t count, int64_t *hint, slice name) {
    for (int turn = 0; turn < 2; turn++) {
        int64_t from = turn ? 0 : *hint, to = turn ? *hint : count;
        for (int64_t i = from; i < to; i += 1 + fields[i].inside)
            if (fields[i].name_length == name.length && memcmp(fields[i].name, name.at, (size_t)name.length) == 0) {
                *hint = i + 1 + fields[i].inside; /* most objects name their fields in one order */
                return fields + i;
            }
    }
    return NULL;
}

static bool read_object(reader *r, field *fields, int64_t count, int64_t row, const uint8_t *data);

static bool read_scalar(reader *r, field *f, int64_t row, const uint8_t *data) {
    slice text;
    number found;
    int64_t whole;
    if (f->kind == TEXT || f->kind == TIMESTAMP || f->kind == DATE) {
        if (!read_text(r, &text, &whole))
            return false;
        if (f->kind == TEXT) {
            f->starts[row] = whole == text.length ? text.at - data : ~(text.at - data);
            ((int32_t *)f->values)[row] = (int32_t)whole;
            return true;
        }
        reader inside = {text.at, text.at + text.length};
        if (f->kind == TIMESTAMP)
            return take_timestamp(&inside, (int64_t *)f->values + row) && inside.at == inside.end;
        if (!take_date(&inside, &whole) || inside.at != inside.end)
            return false;
        ((int32_t *)f->values)[row] = (int32_t)whole;
        return true;
    }
    if (f->kind == BOOLEAN) {
        ((uint8_t *)f->values)[row] = r->at < r->end && *r->at == 't';
        return take_word(r, "true") || take_word(r, "false");
    }
    if (!read_number(r, &found))
        return false;
    if (f->kind == DOUBLE)
        return as_double(&found, (double *)f->values + row);
    if (f->kind == INT64)
        return as_int(&found, INT64_MIN, INT64_MAX, (int64_t *)f->values + row);
    if (!as_int(&found, INT32_MIN, INT32_MAX, &whole))
        return false;
    ((int32_t *)f->values)[row] = (int32_t)whole;
    return true;
}

static bool read_field(reader *r, field *f, int64_t row, const uint8_t *data) {
    if (f->seen == row + 1)
        return false; /* which of two counts is not for us to say */
    f->seen = row + 1;
    skip_space(r);
    if (take_word(r, "null"))
        return true; /* not valid; whether that is allowed is asked at the end of the object */
    bool good =
        f->kind == OBJECT ? read_object(r, f + 1, f->inside, row, data) : read_scalar(r, f, row, data);
    f->valid[row] = good;
    return good;
}

static bool read_object(reader *r, field *fields, int64_t count, int64_t row, const uint8_t *data) {
    if (!take(r, '{'))
        return false;
    skip_space(r);
    if (!take(r, '}')) {
        int64_t hint = 0;
        do {
            slice name;
            int64_t length;
            skip_space(r);
            if (!read_text(r, &name, &length) || length != name.length || length > NAME_BYTES_MAX)
                return false;
            skip_space(r);
            if (!take(r, ':'))
                return false;
            field *f = find(fields, count, &hint, name);
            if (!(f ? read_field(r, f, row, data) : skip_value(r, 0)))
                return false;
            skip_space(r);
        } while (take(r, ','));
        if (!take(r, '}'))
            return false;
    }
    for (int64_t i = 0; i < count; i += 1 + fields[i].inside)
        if (fields[i].required && !fields[i].valid[row])
            return false;
    return true;
}

static bool read_value(slice value, field *fields, int64_t count, int64_t row, const uint8_t *data) {
    if (value.length < 0 || value.length > VALUE_BYTES_MAX)
        return false;
    reader r = {value.at, value.at + value.length};
    skip_space(&r);
    if (!read_object(&r, fields, count, row, data))
        return false;
    skip_space(&r);
    return r.at == r.end;
}

/* Says of each value whether it is plain; of those that are, the fields are filled. All is zero before. */
EXPORT int64_t ottla_json_read(const binary *values, field *fields, int64_t count, uint8_t *plain) {
    int64_t found = 0;
    for (int64_t row = 0; row < values->count; row++) {
        plain[row] = read_value(get(values, row), fields, count, row, values->data);
        found += plain[row];
        if (!plain[row])
            for (int64_t i = 0; i < count; i++)
                fields[i].valid[row] = 0;
    }
    return found;
}

/* The texts of a field one behind the other, where `offsets` say; those were added up from their lengths. */
EXPORT void ottla_json_texts(const binary *values, const field *f, const int32_t *offsets, uint8_t *into) {
    for (int64_t row = 0; row < values->count; row++) {
        uint8_t *at = into + offsets[row], *end = into + offsets[row + 1];
        if (at == end)
            continue;
        int64_t start = f->starts[row];
        if (start >= 0) {
            memcpy(at, values->data + start, (size_t)(end - at));
            continue;
        }
        reader r = {values->data + ~start, values->data + values->offsets[row + 1]};
        while (at < end) {
            uint32_t point;
            if (*r.at != '\\') {
                *at++ = *r.at++;
            } else {
                r.at++;
                take_escaped(&r, &point); /* was checked before */
                at = put_utf8(at, point);
            }
        }
    }
}
