#include "CPixels.h"
#include "Wide.h"
#include <math.h>

#pragma STDC FP_CONTRACT OFF

enum { CHUNK = 256 };

INLINED float clipped(float value) { return value > 0 ? (value < 1 ? value : 1) : 0; }

/* Returns the square root without setting errno, so that the compiler can use vectors without -fno-math-errno. */
INLINED float square_root(float value) { return __builtin_elementwise_sqrt(value); }

INLINED float maximum(float a, float b) { return a > b ? a : b; }
INLINED float minimum(float a, float b) { return a < b ? a : b; }

INLINED float brightness_of(float red, float green, float blue) {
    return 0.2126f * red + 0.7152f * green + 0.0722f * blue;
}

/* Replaces values by those of a curve, with linear interpolation. */
INLINED void apply_curve(const float *table, int is_squared, float *values, size_t count) {
    for (size_t i = 0; i < count; i++) values[i] = clipped(values[i]);
    if (is_squared)
        for (size_t i = 0; i < count; i++) values[i] = square_root(values[i]);
    for (size_t i = 0; i < count; i++) {
        float position = values[i] * (SAFELIGHT_CURVE_COUNT - 1);
        int32_t index = (int32_t)position;
        index = index > SAFELIGHT_CURVE_COUNT - 2 ? SAFELIGHT_CURVE_COUNT - 2 : index;
        float fraction = position - (float)index;
        values[i] = table[index] + fraction * (table[index + 1] - table[index]);
    }
}

INLINED void multiply(const float *m, float *red, float *green, float *blue, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float r = m[0] * red[i] + m[1] * green[i] + m[2] * blue[i];
        float g = m[3] * red[i] + m[4] * green[i] + m[5] * blue[i];
        float b = m[6] * red[i] + m[7] * green[i] + m[8] * blue[i];
        red[i] = r;
        green[i] = g;
        blue[i] = b;
    }
}

INLINED void mix_matrix(const float *m, float *red, float *green, float *blue, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float r = clipped(red[i]), g = clipped(green[i]), b = clipped(blue[i]);
        red[i] = r + m[9] * (clipped(m[0] * r + m[1] * g + m[2] * b) - r);
        green[i] = g + m[9] * (clipped(m[3] * r + m[4] * g + m[5] * b) - g);
        blue[i] = b + m[9] * (clipped(m[6] * r + m[7] * g + m[8] * b) - b);
    }
}

INLINED void vibrance(float value, float *red, float *green, float *blue, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float r = clipped(red[i]), g = clipped(green[i]), b = clipped(blue[i]);
        float chroma = maximum(r, maximum(g, b)) - minimum(r, minimum(g, b));
        float y = brightness_of(r, g, b);
        float factor = 1 + value * (1 - chroma);
        red[i] = y + (r - y) * factor;
        green[i] = y + (g - y) * factor;
        blue[i] = y + (b - y) * factor;
    }
}

/* Returns the hue in sextants, 0...6. */
INLINED float hue_of(float r, float g, float b, float high, float chroma) {
    float scale = chroma > 0 ? 1 / chroma : 0;
    float hue = high == r ? (g - b) * scale : (high == g ? 2 + (b - r) * scale : 4 + (r - g) * scale);
    return hue < 0 ? hue + 6 : hue;
}

/* Returns the value of a hue between two bands. */
INLINED float band_value(const float *bands, int32_t index, float fraction) {
    return bands[index] + fraction * (bands[index + 1] - bands[index]);
}

/* Returns the value of a channel in a pure colour; shift 0 for red, 4 for green, 2 for blue. */
INLINED float pure_channel(float hue, float shift) {
    float position = hue + shift;
    position = position >= 6 ? position - 6 : position;
    return clipped(fabsf(position - 3) - 1);
}

INLINED void modulate(const float *n, float *red, float *green, float *blue, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float r = clipped(red[i]), g = clipped(green[i]), b = clipped(blue[i]);
        float high = maximum(r, maximum(g, b)), low = minimum(r, minimum(g, b)), chroma = high - low;
        float hue = hue_of(r, g, b, high, chroma) + n[2];
        hue = hue < 0 ? hue + 6 : (hue >= 6 ? hue - 6 : hue);
        /* The maximum chroma at a lightness is twice its distance from black or white. */
        float max_chroma = minimum(high + low, 2 - high - low);
        float light = n[0] * (high + low) / 2;
        float strength = (max_chroma > 0 ? chroma / max_chroma : 0) * n[1] * minimum(2 * light, 2 - 2 * light);
        red[i] = light + strength * (pure_channel(hue, 0) - 0.5f);
        green[i] = light + strength * (pure_channel(hue, 4) - 0.5f);
        blue[i] = light + strength * (pure_channel(hue, 2) - 0.5f);
    }
}

INLINED void bands(const float *n, float *red, float *green, float *blue, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float r = clipped(red[i]), g = clipped(green[i]), b = clipped(blue[i]);
        float high = maximum(r, maximum(g, b)), low = minimum(r, minimum(g, b)), chroma = high - low;
        float hue = hue_of(r, g, b, high, chroma);
        int32_t index = (int32_t)(2 * hue);
        index = index > 11 ? 11 : index;
        float fraction = 2 * hue - (float)index;
        float light = (high + low) / 2 + chroma * band_value(n + 26, index, fraction) / 2;
        float rotated_hue = hue + band_value(n, index, fraction);
        rotated_hue = rotated_hue < 0 ? rotated_hue + 6 : (rotated_hue >= 6 ? rotated_hue - 6 : rotated_hue);
        float strength = chroma * (1 + band_value(n + 13, index, fraction));
        red[i] = light + strength * (pure_channel(rotated_hue, 0) - 0.5f);
        green[i] = light + strength * (pure_channel(rotated_hue, 4) - 0.5f);
        blue[i] = light + strength * (pure_channel(rotated_hue, 2) - 0.5f);
    }
}

INLINED void grey_bands(const float *n, float *red, float *green, float *blue, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float r = clipped(red[i]), g = clipped(green[i]), b = clipped(blue[i]);
        float high = maximum(r, maximum(g, b)), low = minimum(r, minimum(g, b)), chroma = high - low;
        float hue = hue_of(r, g, b, high, chroma);
        int32_t index = (int32_t)(2 * hue);
        index = index > 11 ? 11 : index;
        float grey = brightness_of(r, g, b) + chroma * band_value(n, index, 2 * hue - (float)index) / 2;
        red[i] = r + n[39] * (grey - r);
        green[i] = g + n[39] * (grey - g);
        blue[i] = b + n[39] * (grey - b);
    }
}

INLINED void toning(const float *n, float *red, float *green, float *blue, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float r = clipped(red[i]), g = clipped(green[i]), b = clipped(blue[i]);
        float y = brightness_of(r, g, b);
        float bright = clipped(y + n[7]);
        float strength = n[8] * 2 * y * (1 - y);
        float dark = strength * (1 - bright);
        bright *= strength;
        red[i] = r + n[0] * (y - r) + dark * n[1] + bright * n[4];
        green[i] = g + n[0] * (y - g) + dark * n[2] + bright * n[5];
        blue[i] = b + n[0] * (y - b) + dark * n[3] + bright * n[6];
    }
}

INLINED void vignette(const safelight_colour_step *step, size_t column, size_t row, float *red, float *green,
                     float *blue, size_t count) {
    const float *n = step->numbers;
    float gains[CHUNK];
    float down = ((float)row + 0.5f - n[1]) * n[2];
    for (size_t i = 0; i < count; i++) {
        float across = ((float)(column + i) + 0.5f - n[0]) * n[2];
        gains[i] = (square_root(across * across + down * down) - n[3]) * n[4];
    }
    apply_curve(step->curves[0], 0, gains, count);
    for (size_t i = 0; i < count; i++) {
        red[i] *= gains[i];
        green[i] *= gains[i];
        blue[i] *= gains[i];
    }
}

/* Returns noise in -1...1 at a lattice point. */
INLINED float noise_at(uint32_t x, uint32_t y, uint32_t seed) {
    uint32_t hash = x * 0x8DA6B343u ^ y * 0xD8163841u ^ seed * 0xCB1AB31Fu;
    hash ^= hash >> 16;
    hash *= 0x7FEB352Du;
    hash ^= hash >> 15;
    hash *= 0x846CA68Bu;
    hash ^= hash >> 16;
    return (float)(hash >> 8) * (2.0f / 16777215.0f) - 1;
}

INLINED void grain(const safelight_colour_step *step, size_t column, size_t row, float *red, float *green, float *blue,
                  size_t count) {
    float strength = step->numbers[0], cells = step->numbers[1];
    float down = ((float)row + 0.5f) * cells;
    uint32_t top = (uint32_t)down;
    float fraction_down = down - (float)top;
    fraction_down = fraction_down * fraction_down * (3 - 2 * fraction_down);
    for (size_t i = 0; i < count; i++) {
        float across = ((float)(column + i) + 0.5f) * cells;
        uint32_t left = (uint32_t)across;
        float fraction = across - (float)left;
        fraction = fraction * fraction * (3 - 2 * fraction);
        float a = noise_at(left, top, step->seed), b = noise_at(left + 1, top, step->seed);
        float c = noise_at(left, top + 1, step->seed), d = noise_at(left + 1, top + 1, step->seed);
        float upper = a + fraction * (b - a), lower = c + fraction * (d - c);
        float noise = strength * (upper + fraction_down * (lower - upper));
        red[i] = clipped(red[i]) + noise;
        green[i] = clipped(green[i]) + noise;
        blue[i] = clipped(blue[i]) + noise;
    }
}

INLINED void table_curves(const safelight_colour_step *step, float *red, float *green, float *blue, size_t count) {
    const float *table = step->curves[0];
    float strength = step->numbers[0];
    int32_t last = (int32_t)step->numbers[1] - 1;
    float *channels[3] = {red, green, blue};
    for (int c = 0; c < 3; c++) {
        for (size_t i = 0; i < count; i++) {
            float value = clipped(channels[c][i]), position = value * (float)last;
            int32_t index = (int32_t)position;
            index = index > last - 1 ? last - 1 : index;
            float fraction = position - (float)index, low = table[3 * index + c], high = table[3 * index + 3 + c];
            channels[c][i] = value + strength * (low + fraction * (high - low) - value);
        }
    }
}

INLINED void table_cube(const safelight_colour_step *step, float *red, float *green, float *blue, size_t count) {
    const float *table = step->curves[0];
    float strength = step->numbers[0];
    int32_t last = (int32_t)step->numbers[1] - 1;
    ptrdiff_t across = 3 * ((ptrdiff_t)last + 1), down = across * ((ptrdiff_t)last + 1);
    for (size_t i = 0; i < count; i++) {
        float value[3] = {clipped(red[i]), clipped(green[i]), clipped(blue[i])}, fraction[3], result[3];
        int32_t index[3];
        for (int c = 0; c < 3; c++) {
            float position = value[c] * (float)last;
            index[c] = (int32_t)position > last - 1 ? last - 1 : (int32_t)position;
            fraction[c] = position - (float)index[c];
        }
        const float *corner = table + 3 * (ptrdiff_t)index[0] + across * index[1] + down * index[2];
        for (int c = 0; c < 3; c++) {
            float plane[2];
            for (int b = 0; b < 2; b++) {
                const float *p = corner + b * down + c;
                float low = p[0] + fraction[0] * (p[3] - p[0]);
                float high = p[across] + fraction[0] * (p[across + 3] - p[across]);
                plane[b] = low + fraction[1] * (high - low);
            }
            result[c] = plane[0] + fraction[2] * (plane[1] - plane[0]);
        }
        red[i] = value[0] + strength * (result[0] - value[0]);
        green[i] = value[1] + strength * (result[1] - value[1]);
        blue[i] = value[2] + strength * (result[2] - value[2]);
    }
}

INLINED void apply_steps(const safelight_colour_step *steps, size_t step_count, size_t column, size_t row, float *red,
                       float *green, float *blue, size_t count) {
    for (size_t s = 0; s < step_count; s++) {
        const safelight_colour_step *step = steps + s;
        switch (step->kind) {
        case SAFELIGHT_MATRIX: multiply(step->numbers, red, green, blue, count); break;
        case SAFELIGHT_CURVES:
            apply_curve(step->curves[0], step->is_squared, red, count);
            apply_curve(step->curves[1], step->is_squared, green, count);
            apply_curve(step->curves[2], step->is_squared, blue, count);
            break;
        case SAFELIGHT_MIXED_MATRIX: mix_matrix(step->numbers, red, green, blue, count); break;
        case SAFELIGHT_VIBRANCE: vibrance(step->numbers[0], red, green, blue, count); break;
        case SAFELIGHT_MODULATE: modulate(step->numbers, red, green, blue, count); break;
        case SAFELIGHT_BANDS: bands(step->numbers, red, green, blue, count); break;
        case SAFELIGHT_GREY_BANDS: grey_bands(step->numbers, red, green, blue, count); break;
        case SAFELIGHT_TONING: toning(step->numbers, red, green, blue, count); break;
        case SAFELIGHT_VIGNETTE: vignette(step, column, row, red, green, blue, count); break;
        case SAFELIGHT_GRAIN: grain(step, column, row, red, green, blue, count); break;
        case SAFELIGHT_TABLE_CURVES: table_curves(step, red, green, blue, count); break;
        case SAFELIGHT_TABLE_CUBE: table_cube(step, red, green, blue, count); break;
        default: break;
        }
    }
}

WIDE void safelight_colour_pass(uint16_t *pixels, size_t width, size_t rows, size_t first_row, const float *decode,
                                const safelight_colour_step *steps, size_t step_count) {
    float red[CHUNK], green[CHUNK], blue[CHUNK];
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < width; column += CHUNK) {
            size_t count = width - column < CHUNK ? width - column : CHUNK;
            uint16_t *pixel = pixels + 4 * (row * width + column);
            if (decode) {
                for (size_t i = 0; i < count; i++) {
                    blue[i] = decode[512 + (pixel[4 * i] >> 8)];
                    green[i] = decode[256 + (pixel[4 * i + 1] >> 8)];
                    red[i] = decode[pixel[4 * i + 2] >> 8];
                }
            } else {
                for (size_t i = 0; i < count; i++) {
                    blue[i] = (float)pixel[4 * i] * (1 / 65535.0f);
                    green[i] = (float)pixel[4 * i + 1] * (1 / 65535.0f);
                    red[i] = (float)pixel[4 * i + 2] * (1 / 65535.0f);
                }
            }
            apply_steps(steps, step_count, column, first_row + row, red, green, blue, count);
            for (size_t i = 0; i < count; i++) {
                pixel[4 * i] = (uint16_t)(int32_t)(clipped(blue[i]) * 65535 + 0.5f);
                pixel[4 * i + 1] = (uint16_t)(int32_t)(clipped(green[i]) * 65535 + 0.5f);
                pixel[4 * i + 2] = (uint16_t)(int32_t)(clipped(red[i]) * 65535 + 0.5f);
            }
        }
    }
}

WIDE void safelight_colour_pass_rgb(uint8_t *pixels, size_t width, size_t rows, size_t first_row, const float *decode,
                                    const safelight_colour_step *steps, size_t step_count) {
    float red[CHUNK], green[CHUNK], blue[CHUNK];
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < width; column += CHUNK) {
            size_t count = width - column < CHUNK ? width - column : CHUNK;
            uint8_t *pixel = pixels + 3 * (row * width + column);
            for (size_t i = 0; i < count; i++) {
                red[i] = decode[pixel[3 * i]];
                green[i] = decode[256 + pixel[3 * i + 1]];
                blue[i] = decode[512 + pixel[3 * i + 2]];
            }
            apply_steps(steps, step_count, column, first_row + row, red, green, blue, count);
            for (size_t i = 0; i < count; i++) {
                pixel[3 * i] = (uint8_t)(int32_t)(clipped(red[i]) * 255 + 0.5f);
                pixel[3 * i + 1] = (uint8_t)(int32_t)(clipped(green[i]) * 255 + 0.5f);
                pixel[3 * i + 2] = (uint8_t)(int32_t)(clipped(blue[i]) * 255 + 0.5f);
            }
        }
    }
}

void safelight_round_to_bytes(uint16_t *pixels, size_t count) {
    for (size_t i = 0; i < 4 * count; i++) pixels[i] = (uint16_t)(((uint32_t)pixels[i] + 128) / 257 * 257);
}

WIDE void safelight_pixels_to_bytes(const uint16_t *restrict pixels, size_t count, uint8_t *restrict bytes) {
    /* Multiplies by 255 / 65535 and rounds, without a division. */
    for (size_t i = 0; i < count; i++)
        for (size_t channel = 0; channel < 3; channel++)
            bytes[3 * i + channel] = (uint8_t)((255u * pixels[4 * i + 2 - channel] + 32895) >> 16);
}

WIDE void safelight_bytes_to_pixels(const uint8_t *restrict bytes, size_t count, uint16_t *restrict pixels) {
    for (size_t i = 0; i < count; i++) {
        for (size_t channel = 0; channel < 3; channel++)
            pixels[4 * i + 2 - channel] = (uint16_t)(257u * bytes[3 * i + channel]);
        pixels[4 * i + 3] = 0;
    }
}

void safelight_compute_histogram(const uint16_t *pixels, size_t count, uint32_t *counters) {
    for (size_t i = 0; i < 4 * 256; i++) counters[i] = 0;
    for (size_t i = 0; i < count; i++) {
        const uint16_t *pixel = pixels + 4 * i;
        counters[pixel[2] >> 8]++;
        counters[256 + (pixel[1] >> 8)]++;
        counters[512 + (pixel[0] >> 8)]++;
        float y = brightness_of((float)pixel[2], (float)pixel[1], (float)pixel[0]);
        counters[768 + ((uint32_t)y >> 8)]++;
    }
}
