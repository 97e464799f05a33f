#include "CPixels.h"
#include <math.h>

#pragma STDC FP_CONTRACT OFF

static inline size_t clamp_index(ptrdiff_t at, size_t count) {
    return at < 0 ? 0 : (at >= (ptrdiff_t)count ? count - 1 : (size_t)at);
}

static inline uint16_t to_quantum(float value) {
    return value <= 0 ? 0 : (value >= 65535 ? 65535 : (uint16_t)(int32_t)(value + 0.5f));
}

static inline float brightness_of(const uint16_t *pixel) {
    return (0.2126f * (float)pixel[2] + 0.7152f * (float)pixel[1] + 0.0722f * (float)pixel[0]) / 65535;
}

void safelight_compute_brightness(const uint16_t *pixels, size_t count, float *brightness) {
    for (size_t i = 0; i < count; i++) brightness[i] = brightness_of(pixels + 4 * i);
}

void safelight_blur(float *plane, float *middle, size_t width, size_t height, const float *kernel, size_t radius) {
    for (size_t row = 0; row < height; row++) {
        const float *line = plane + row * width;
        float *out = middle + row * width;
        for (size_t column = 0; column < width; column++) {
            float sum = kernel[radius] * line[column];
            if (column >= radius && column + radius < width) {
                for (size_t k = 1; k <= radius; k++)
                    sum += kernel[radius + k] * (line[column - k] + line[column + k]);
            } else {
                for (size_t k = 1; k <= radius; k++)
                    sum += kernel[radius + k] * (line[clamp_index((ptrdiff_t)column - (ptrdiff_t)k, width)] +
                                                 line[clamp_index((ptrdiff_t)(column + k), width)]);
            }
            out[column] = sum;
        }
    }
    for (size_t row = 0; row < height; row++) {
        float *out = plane + row * width;
        const float *centre = middle + row * width;
        for (size_t column = 0; column < width; column++) out[column] = kernel[radius] * centre[column];
        for (size_t k = 1; k <= radius; k++) {
            const float *above = middle + width * clamp_index((ptrdiff_t)row - (ptrdiff_t)k, height);
            const float *below = middle + width * clamp_index((ptrdiff_t)(row + k), height);
            float weight = kernel[radius + k];
            for (size_t column = 0; column < width; column++) out[column] += weight * (above[column] + below[column]);
        }
    }
}

/* The sums are double, because rounding errors would accumulate along the line. */
static void box_blur_rows(const float *plane, float *out, size_t width, size_t height, size_t radius) {
    double scale = 1.0 / (double)(2 * radius + 1);
    for (size_t row = 0; row < height; row++) {
        const float *line = plane + row * width;
        double sum = (double)line[0] * (double)(radius + 1);
        for (size_t k = 1; k <= radius; k++) sum += (double)line[clamp_index((ptrdiff_t)k, width)];
        for (size_t column = 0; column < width; column++) {
            out[row * width + column] = (float)(sum * scale);
            sum += (double)line[clamp_index((ptrdiff_t)(column + radius + 1), width)];
            sum -= (double)line[clamp_index((ptrdiff_t)column - (ptrdiff_t)radius, width)];
        }
    }
}

static void box_blur_columns(const float *plane, float *out, double *sums, size_t width, size_t height, size_t radius) {
    double scale = 1.0 / (double)(2 * radius + 1);
    for (size_t column = 0; column < width; column++) sums[column] = (double)plane[column] * (double)(radius + 1);
    for (size_t k = 1; k <= radius; k++) {
        const float *line = plane + width * clamp_index((ptrdiff_t)k, height);
        for (size_t column = 0; column < width; column++) sums[column] += (double)line[column];
    }
    for (size_t row = 0; row < height; row++) {
        const float *entering = plane + width * clamp_index((ptrdiff_t)(row + radius + 1), height);
        const float *leaving = plane + width * clamp_index((ptrdiff_t)row - (ptrdiff_t)radius, height);
        for (size_t column = 0; column < width; column++) {
            out[row * width + column] = (float)(sums[column] * scale);
            sums[column] += (double)entering[column] - (double)leaving[column];
        }
    }
}

void safelight_box_blur(float *plane, float *middle, double *sums, size_t width, size_t height, size_t radius,
                        int passes) {
    for (int pass = 0; pass < passes; pass++) {
        box_blur_rows(plane, middle, width, height, radius);
        box_blur_columns(middle, plane, sums, width, height, radius);
    }
}

void safelight_add_detail(uint16_t *pixels, size_t count, const float *blurred, float amount, float threshold,
                          int has_midtone_weight) {
    for (size_t i = 0; i < count; i++) {
        uint16_t *pixel = pixels + 4 * i;
        float y = brightness_of(pixel);
        float difference = y - blurred[i];
        float size = difference < 0 ? -difference : difference;
        float added = size >= threshold ? 65535 * amount * difference : 0;
        if (has_midtone_weight) added *= 4 * y * (1 - y);
        for (int c = 0; c < 3; c++) pixel[c] = to_quantum((float)pixel[c] + added);
    }
}

void safelight_smooth(const uint16_t *source, uint16_t *output, size_t width, size_t height, size_t first_row,
                      size_t rows, const float *kernel, const float range_factors[2], const float strength[2]) {
    for (size_t row = first_row; row < first_row + rows; row++) {
        for (size_t column = 0; column < width; column++) {
            const uint16_t *pixel = source + 4 * (row * width + column);
            float y = brightness_of(pixel);
            float red = (float)pixel[2] / 65535 - y, blue = (float)pixel[0] / 65535 - y;
            float sum_y = 0, weights_y = 0, sum_red = 0, sum_blue = 0, weights_colour = 0;
            for (int j = -2; j <= 2; j++) {
                const uint16_t *line = source + 4 * width * clamp_index((ptrdiff_t)row + j, height);
                for (int i = -2; i <= 2; i++) {
                    const uint16_t *other = line + 4 * clamp_index((ptrdiff_t)column + i, width);
                    float other_y = brightness_of(other);
                    float other_red = (float)other[2] / 65535 - other_y, other_blue = (float)other[0] / 65535 - other_y;
                    float distance_weight = kernel[5 * (j + 2) + i + 2];
                    float d = (other_y - y) * (other_y - y) * range_factors[0];
                    float weight = distance_weight / ((1 + d) * (1 + d));
                    sum_y += weight * other_y;
                    weights_y += weight;
                    float e = ((other_red - red) * (other_red - red) + (other_blue - blue) * (other_blue - blue)) *
                              range_factors[1];
                    weight = distance_weight / ((1 + e) * (1 + e));
                    sum_red += weight * other_red;
                    sum_blue += weight * other_blue;
                    weights_colour += weight;
                }
            }
            float new_y = y + strength[0] * (sum_y / weights_y - y);
            float new_red = red + strength[1] * (sum_red / weights_colour - red);
            float new_blue = blue + strength[1] * (sum_blue / weights_colour - blue);
            /* Green follows from brightness, because the weighted differences sum to zero. */
            float green = -(0.2126f * new_red + 0.0722f * new_blue) / 0.7152f;
            uint16_t *out = output + 4 * (row * width + column);
            out[0] = to_quantum(65535 * (new_y + new_blue));
            out[1] = to_quantum(65535 * (new_y + green));
            out[2] = to_quantum(65535 * (new_y + new_red));
            out[3] = pixel[3];
        }
    }
}

void safelight_overlay(uint16_t *pixels, size_t width, size_t height, const uint16_t *over, size_t over_width,
                       size_t over_height, ptrdiff_t x, ptrdiff_t y, float opacity) {
    for (size_t row = 0; row < over_height; row++) {
        ptrdiff_t target_row = y + (ptrdiff_t)row;
        if (target_row < 0 || target_row >= (ptrdiff_t)height) continue;
        for (size_t column = 0; column < over_width; column++) {
            ptrdiff_t target_column = x + (ptrdiff_t)column;
            if (target_column < 0 || target_column >= (ptrdiff_t)width) continue;
            const uint16_t *from = over + 4 * (row * over_width + column);
            uint16_t *to = pixels + 4 * ((size_t)target_row * width + (size_t)target_column);
            float alpha = opacity * (65535 - (float)from[3]) / 65535;
            /* The weight of the upper pixel in the result: its alpha over an opaque pixel, more over a translucent one
               (Porter and Duff's "over"). */
            float weight = alpha;
            if (to[3] != 0) {
                float lower_alpha = (65535 - (float)to[3]) / 65535;
                float result_alpha = alpha + lower_alpha * (1 - alpha);
                weight = result_alpha > 0 ? alpha / result_alpha : 0;
            }
            for (int c = 0; c < 3; c++) to[c] = to_quantum((float)to[c] + weight * ((float)from[c] - (float)to[c]));
            to[3] = to_quantum((float)to[3] * (1 - alpha));
        }
    }
}
