#include "CPixels.h"
#include <math.h>

static inline float clipped(float value) { return value > 0 ? (value < 1 ? value : 1) : 0; }

static inline float looked_up(const float *table, float value) {
    float at = sqrtf(clipped(value)) * (SAFELIGHT_CURVE_COUNT - 1);
    int index = (int)at;
    if (index > SAFELIGHT_CURVE_COUNT - 2) index = SAFELIGHT_CURVE_COUNT - 2;
    float rest = at - (float)index;
    return table[index] + rest * (table[index + 1] - table[index]);
}

void safelight_colour_pass(uint16_t *pixels, size_t count, const float *decode, const safelight_colour_step *steps,
                           size_t step_count, const float *encode) {
    for (size_t i = 0; i < count; i++) {
        uint16_t *pixel = pixels + 4 * i;
        float blue = decode[pixel[0]], green = decode[pixel[1]], red = decode[pixel[2]];
        for (size_t s = 0; s < step_count; s++) {
            const safelight_colour_step *step = steps + s;
            if (step->curve) {
                red = looked_up(step->curve, red);
                green = looked_up(step->curve, green);
                blue = looked_up(step->curve, blue);
            } else {
                const float *m = step->matrix;
                float r = m[0] * red + m[1] * green + m[2] * blue;
                float g = m[3] * red + m[4] * green + m[5] * blue;
                blue = m[6] * red + m[7] * green + m[8] * blue;
                red = r;
                green = g;
            }
        }
        pixel[0] = (uint16_t)(looked_up(encode, blue) + 0.5f);
        pixel[1] = (uint16_t)(looked_up(encode, green) + 0.5f);
        pixel[2] = (uint16_t)(looked_up(encode, red) + 0.5f);
    }
}

enum { LOBES = SAFELIGHT_LANCZOS_TAPS / 2, TAPS = SAFELIGHT_LANCZOS_TAPS, PHASES = SAFELIGHT_LANCZOS_PHASES };

static inline ptrdiff_t inside(ptrdiff_t at, size_t count) {
    return at < 0 ? 0 : (at >= (ptrdiff_t)count ? (ptrdiff_t)count - 1 : at);
}

static inline uint16_t quantum(float value) {
    return value <= 0 ? 0 : (value >= 65535 ? 65535 : (uint16_t)(value + 0.5f));
}

void safelight_resample(const uint16_t *source, size_t source_width, size_t source_height, uint16_t *output,
                        size_t width, size_t height, const double map[6], int has_opacity, const float *weights) {
    if (source_width == 0 || source_height == 0) return;
    for (size_t row = 0; row < height; row++) {
        for (size_t column = 0; column < width; column++) {
            double u = (double)column + 0.5, v = (double)row + 0.5;
            double x = map[0] * u + map[1] * v + map[2] - 0.5;
            double y = map[3] * u + map[4] * v + map[5] - 0.5;
            x = fmin(fmax(x, -1), (double)source_width);
            y = fmin(fmax(y, -1), (double)source_height);
            double left = floor(x), top = floor(y);
            const float *across = weights + TAPS * (int)((x - left) * PHASES + 0.5);
            const float *down = weights + TAPS * (int)((y - top) * PHASES + 0.5);
            float sum[4] = {0, 0, 0, 0}, alpha_sum = 0;
            for (int j = 0; j < TAPS; j++) {
                const uint16_t *line =
                    source + 4 * source_width * (size_t)inside((ptrdiff_t)top + j - LOBES + 1, source_height);
                float part[4] = {0, 0, 0, 0}, part_alpha = 0;
                for (int i = 0; i < TAPS; i++) {
                    const uint16_t *pixel = line + 4 * inside((ptrdiff_t)left + i - LOBES + 1, source_width);
                    float weight = across[i];
                    if (has_opacity) {
                        part[3] += weight * (float)pixel[3];
                        weight *= (65535.0f - (float)pixel[3]) / 65535.0f;
                        part_alpha += weight;
                    }
                    part[0] += weight * (float)pixel[0];
                    part[1] += weight * (float)pixel[1];
                    part[2] += weight * (float)pixel[2];
                }
                for (int c = 0; c < 4; c++) sum[c] += down[j] * part[c];
                alpha_sum += down[j] * part_alpha;
            }
            if (has_opacity) {
                float scale = alpha_sum > 1e-4f ? 1 / alpha_sum : 0;
                for (int c = 0; c < 3; c++) sum[c] *= scale;
            }
            uint16_t *out = output + 4 * (row * width + column);
            for (int c = 0; c < 4; c++) out[c] = quantum(sum[c]);
            if (!has_opacity) out[3] = 0;
        }
    }
}
