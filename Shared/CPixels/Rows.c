#include "CPixels.h"

#pragma STDC FP_CONTRACT OFF

static inline uint8_t byte_of(float value) {
    return value <= 0 ? 0 : (value >= 255 ? 255 : (uint8_t)(value + 0.5f));
}

void safelight_gather_rgb(const uint8_t *source, ptrdiff_t step_x, ptrdiff_t step_y, uint8_t *output, size_t width,
                          size_t rows) {
    /* Along the memory of the source: its lines are long, those of the output few. */
    for (size_t x = 0; x < width; x++) {
        const uint8_t *from = source + (ptrdiff_t)x * step_x;
        uint8_t *to = output + 3 * x;
        for (size_t y = 0; y < rows; y++) {
            to[0] = from[0];
            to[1] = from[1];
            to[2] = from[2];
            from += step_y;
            to += 3 * width;
        }
    }
}

static void resize_line(const uint8_t *line, const int32_t *starts, const float *weights, size_t taps, size_t width,
                        float *output) {
    for (size_t x = 0; x < width; x++) {
        const uint8_t *pixel = line + 3 * starts[x];
        const float *weight = weights + taps * x;
        float red = 0, green = 0, blue = 0;
        for (size_t i = 0; i < taps; i++) {
            red += weight[i] * (float)pixel[3 * i];
            green += weight[i] * (float)pixel[3 * i + 1];
            blue += weight[i] * (float)pixel[3 * i + 2];
        }
        output[3 * x] = red;
        output[3 * x + 1] = green;
        output[3 * x + 2] = blue;
    }
}

void safelight_resize_rgb(const uint8_t *source, size_t row_bytes, const safelight_taps *across,
                          const safelight_taps *down, size_t first_row, size_t rows, float *lines, uint8_t *output) {
    size_t length = 3 * across->count, next = 0;
    for (size_t row = first_row; row < first_row + rows; row++) {
        size_t top = (size_t)down->starts[row];
        if (next < top) next = top;
        for (; next < top + down->taps; next++) {
            resize_line(source + next * row_bytes, across->starts, across->weights, across->taps, across->count,
                        lines + next % down->taps * length);
        }
        const float *weight = down->weights + down->taps * row;
        float *sum = lines + down->taps * length;
        for (size_t i = 0; i < length; i++) sum[i] = 0;
        for (size_t tap = 0; tap < down->taps; tap++) {
            const float *line = lines + (top + tap) % down->taps * length;
            for (size_t i = 0; i < length; i++) sum[i] += weight[tap] * line[i];
        }
        uint8_t *to = output + (row - first_row) * length;
        for (size_t i = 0; i < length; i++) to[i] = byte_of(sum[i]);
    }
}
