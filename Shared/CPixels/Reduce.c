#include "CPixels.h"
#include <math.h>
#include <string.h>

/* Lanczos with three lobes. */
#define LOBES 3.0

typedef float four __attribute__((vector_size(16), aligned(4)));

static double lanczos(double x) {
    if (x < 0) x = -x;
    if (x >= LOBES) return 0;
    if (x < 1e-8) return 1;
    double turn = M_PI * x;
    return LOBES * sin(turn) * sin(turn / LOBES) / (turn * turn);
}

static size_t most_taps(size_t source, size_t target) {
    return (size_t)ceil(2 * LOBES * (double)source / (double)target) + 2;
}

size_t safelight_reduce_scratch(size_t source_width, size_t source_height, size_t width, size_t height) {
    size_t across = most_taps(source_width, width), down = most_taps(source_height, height);
    return 4 * source_width + width * (across + 2) + down;
}

/* The taps of one output place: where they begin, how many, and their weights, which sum to 1. */
static size_t weigh(size_t place, size_t source, size_t target, float *weights, size_t *start) {
    double factor = (double)source / (double)target;
    double centre = ((double)place + 0.5) * factor;
    double first = ceil(centre - LOBES * factor - 0.5), last = floor(centre + LOBES * factor - 0.5);
    if (first < 0) first = 0;
    if (last > (double)source - 1) last = (double)source - 1;
    size_t count = (size_t)(last - first) + 1;
    double sum = 0;
    for (size_t tap = 0; tap < count; tap++) {
        double weight = lanczos((first + (double)tap + 0.5 - centre) / factor);
        weights[tap] = (float)weight;
        sum += weight;
    }
    for (size_t tap = 0; tap < count; tap++) weights[tap] = (float)(weights[tap] / sum);
    *start = (size_t)first;
    return count;
}

/* The processor's wide registers are used where it has them. */
#if defined(__x86_64__) && defined(__linux__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

/* One row of sums over the rows above and below; four rows at a time, so that the sums are fetched less often. */
WIDE static void add_rows(const uint16_t *restrict rows, size_t numbers, size_t count, const float *weights,
                     float *restrict sums) {
    memset(sums, 0, numbers * sizeof *sums);
    size_t tap = 0;
    for (; tap + 4 <= count; tap += 4) {
        const uint16_t *restrict a = rows + tap * numbers;
        const uint16_t *restrict b = a + numbers;
        const uint16_t *restrict c = b + numbers;
        const uint16_t *restrict d = c + numbers;
        float u = weights[tap], v = weights[tap + 1], w = weights[tap + 2], x = weights[tap + 3];
        for (size_t i = 0; i < numbers; i++)
            sums[i] += u * (float)(int)a[i] + v * (float)(int)b[i] + w * (float)(int)c[i] + x * (float)(int)d[i];
    }
    for (; tap < count; tap++) {
        const uint16_t *restrict a = rows + tap * numbers;
        float u = weights[tap];
        for (size_t i = 0; i < numbers; i++) sums[i] += u * (float)(int)a[i];
    }
}

/* The same with colours weighted by how much can be seen of them; the fourth number becomes the sum of alpha. */
static void add_seen_rows(const uint16_t *rows, size_t pixels, size_t count, const float *weights, float *sums) {
    memset(sums, 0, 4 * pixels * sizeof *sums);
    for (size_t tap = 0; tap < count; tap++) {
        const uint16_t *row = rows + tap * 4 * pixels;
        for (size_t i = 0; i < pixels; i++) {
            float alpha = weights[tap] * (float)(65535 - row[4 * i + 3]);
            sums[4 * i] += alpha * (float)row[4 * i];
            sums[4 * i + 1] += alpha * (float)row[4 * i + 1];
            sums[4 * i + 2] += alpha * (float)row[4 * i + 2];
            sums[4 * i + 3] += alpha;
        }
    }
}

static uint16_t whole(float number) {
    if (!(number > 0)) return 0;
    return number >= 65535 ? 65535 : (uint16_t)(number + 0.5f);
}

static four add_columns(const float *sums, size_t count, const float *weights) {
    four even = {0, 0, 0, 0}, odd = {0, 0, 0, 0};
    size_t tap = 0;
    for (; tap + 2 <= count; tap += 2) {
        even += *(const four *)(sums + 4 * tap) * weights[tap];
        odd += *(const four *)(sums + 4 * tap + 4) * weights[tap + 1];
    }
    if (tap < count) even += *(const four *)(sums + 4 * tap) * weights[tap];
    return even + odd;
}

void safelight_reduce(const uint16_t *source, size_t source_width, size_t source_height, uint16_t *output, size_t width,
                      size_t height, int has_opacity, float *scratch) {
    size_t across = most_taps(source_width, width);
    float *sums = scratch;
    float *columns = sums + 4 * source_width;
    float *down = columns + width * (across + 2);
    for (size_t x = 0; x < width; x++) {
        float *column = columns + x * (across + 2);
        size_t start;
        uint32_t place[2] = {0, 0};
        place[1] = (uint32_t)weigh(x, source_width, width, column + 2, &start);
        place[0] = (uint32_t)start;
        memcpy(column, place, sizeof place);
    }
    for (size_t y = 0; y < height; y++) {
        size_t start, count = weigh(y, source_height, height, down, &start);
        const uint16_t *rows = source + start * 4 * source_width;
        if (has_opacity)
            add_seen_rows(rows, source_width, count, down, sums);
        else
            add_rows(rows, 4 * source_width, count, down, sums);
        uint16_t *row = output + y * 4 * width;
        for (size_t x = 0; x < width; x++, row += 4) {
            const float *column = columns + x * (across + 2);
            uint32_t place[2];
            memcpy(place, column, sizeof place);
            four sum = add_columns(sums + 4 * place[0], place[1], column + 2);
            if (has_opacity) {
                float alpha = sum[3], share = alpha > 0 ? 1 / alpha : 0;
                for (int channel = 0; channel < 3; channel++) row[channel] = whole(sum[channel] * share);
                row[3] = (uint16_t)(65535 - whole(alpha));
            } else {
                for (int channel = 0; channel < 4; channel++) row[channel] = whole(sum[channel]);
            }
        }
    }
}
