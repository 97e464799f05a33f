#include "CPixels.h"
#include "Wide.h"
#include <string.h>

#pragma STDC FP_CONTRACT OFF

typedef float four __attribute__((vector_size(16), aligned(4)));

/* Sets a row of sums to the weighted sums of rows, `stride` numbers apart. Four rows are added at a time, to load the
   sums less often. */
#define ADD_ROWS(name, number)                                                                                         \
    WIDE static void name(const number *restrict rows, size_t stride, size_t numbers, size_t count,                    \
                          const float *weights, float *restrict sums) {                                                \
        memset(sums, 0, numbers * sizeof *sums);                                                                       \
        size_t tap = 0;                                                                                                \
        for (; tap + 4 <= count; tap += 4) {                                                                           \
            const number *restrict a = rows + tap * stride;                                                            \
            const number *restrict b = a + stride;                                                                     \
            const number *restrict c = b + stride;                                                                     \
            const number *restrict d = c + stride;                                                                     \
            float u = weights[tap], v = weights[tap + 1], w = weights[tap + 2], x = weights[tap + 3];                  \
            for (size_t i = 0; i < numbers; i++)                                                                       \
                sums[i] += u * (float)(int)a[i] + v * (float)(int)b[i] + w * (float)(int)c[i] + x * (float)(int)d[i];  \
        }                                                                                                              \
        for (; tap < count; tap++) {                                                                                   \
            const number *restrict a = rows + tap * stride;                                                            \
            float u = weights[tap];                                                                                    \
            for (size_t i = 0; i < numbers; i++) sums[i] += u * (float)(int)a[i];                                      \
        }                                                                                                              \
    }

ADD_ROWS(add_rows, uint16_t)
ADD_ROWS(add_byte_rows, uint8_t)

/* Like add_rows, with colours weighted by alpha. The fourth number becomes the sum of alpha. */
static void add_rows_by_alpha(const uint16_t *rows, size_t pixels, size_t count, const float *weights, float *sums) {
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

static uint16_t to_quantum(float number) {
    if (!(number > 0)) return 0;
    return number >= 65535 ? 65535 : (uint16_t)(number + 0.5f);
}

static uint8_t to_byte(float number) {
    if (!(number > 0)) return 0;
    return number >= 255 ? 255 : (uint8_t)(number + 0.5f);
}

/* Returns the weighted sum of pixels of `stride` numbers. With three numbers the fourth element belongs to the next
   pixel. */
INLINED four add_columns(const float *sums, size_t stride, size_t count, const float *weights) {
    four even = {0, 0, 0, 0}, odd = {0, 0, 0, 0};
    size_t tap = 0;
    for (; tap + 2 <= count; tap += 2) {
        even += *(const four *)(sums + stride * tap) * weights[tap];
        odd += *(const four *)(sums + stride * tap + stride) * weights[tap + 1];
    }
    if (tap < count) even += *(const four *)(sums + stride * tap) * weights[tap];
    return even + odd;
}

void safelight_reduce(const uint16_t *source, size_t source_width, const safelight_taps *across,
                      const safelight_taps *down, uint16_t *output, int has_opacity, float *sums) {
    size_t numbers = 4 * source_width;
    for (size_t y = 0; y < down->count; y++) {
        const uint16_t *rows = source + (size_t)down->starts[y] * numbers;
        const float *weights = down->weights + y * down->taps;
        if (has_opacity)
            add_rows_by_alpha(rows, source_width, down->taps, weights, sums);
        else
            add_rows(rows, numbers, numbers, down->taps, weights, sums);
        uint16_t *row = output + y * 4 * across->count;
        for (size_t x = 0; x < across->count; x++, row += 4) {
            four sum = add_columns(sums + 4 * across->starts[x], 4, across->taps, across->weights + x * across->taps);
            if (has_opacity) {
                float alpha = sum[3], scale = alpha > 0 ? 1 / alpha : 0;
                for (int channel = 0; channel < 3; channel++) row[channel] = to_quantum(sum[channel] * scale);
                row[3] = (uint16_t)(65535 - to_quantum(alpha));
            } else {
                for (int channel = 0; channel < 4; channel++) row[channel] = to_quantum(sum[channel]);
            }
        }
    }
}

void safelight_reduce_rgb(const uint8_t *source, size_t row_bytes, ptrdiff_t source_row, size_t source_width,
                          const safelight_taps *across, const safelight_taps *down, size_t first_row, size_t rows,
                          uint8_t *bytes, uint16_t *pixels, float *sums) {
    for (size_t y = first_row; y < first_row + rows; y++) {
        add_byte_rows(source + (down->starts[y] - source_row) * (ptrdiff_t)row_bytes, row_bytes, 3 * source_width,
                      down->taps, down->weights + y * down->taps, sums);
        for (size_t x = 0; x < across->count; x++) {
            four sum = add_columns(sums + 3 * across->starts[x], 3, across->taps, across->weights + x * across->taps);
            if (bytes) {
                for (int channel = 0; channel < 3; channel++) *bytes++ = to_byte(sum[channel]);
            } else {
                for (int channel = 0; channel < 3; channel++) pixels[channel] = to_quantum(257 * sum[2 - channel]);
                pixels[3] = 0;
                pixels += 4;
            }
        }
    }
}
