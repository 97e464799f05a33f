#include "CPixels.h"
#include <math.h>

#pragma STDC FP_CONTRACT OFF

enum { LOBES = SAFELIGHT_LANCZOS_TAPS / 2, TAPS = SAFELIGHT_LANCZOS_TAPS, PHASES = SAFELIGHT_LANCZOS_PHASES };

static inline ptrdiff_t clamp_index(ptrdiff_t at, size_t count) {
    return at < 0 ? 0 : (at >= (ptrdiff_t)count ? (ptrdiff_t)count - 1 : at);
}

static inline uint16_t to_quantum(float value) {
    return value <= 0 ? 0 : (value >= 65535 ? 65535 : (uint16_t)(value + 0.5f));
}

void safelight_resample(const uint16_t *source, size_t source_width, size_t source_height, uint16_t *output,
                        size_t width, size_t rows, size_t first_row, const double map[9], int has_opacity,
                        const float *weights) {
    if (source_width == 0 || source_height == 0) return;
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < width; column++) {
            double u = (double)column + 0.5, v = (double)(first_row + row) + 0.5;
            double divisor = map[6] * u + map[7] * v + map[8];
            double x = (map[0] * u + map[1] * v + map[2]) / divisor - 0.5;
            double y = (map[3] * u + map[4] * v + map[5]) / divisor - 0.5;
            /* The comparisons are false for NaN too. */
            x = x > -1 ? (x < (double)source_width ? x : (double)source_width) : -1;
            y = y > -1 ? (y < (double)source_height ? y : (double)source_height) : -1;
            double left = floor(x), top = floor(y);
            const float *across = weights + TAPS * (int)((x - left) * PHASES + 0.5);
            const float *down = weights + TAPS * (int)((y - top) * PHASES + 0.5);
            float sum[4] = {0, 0, 0, 0}, alpha_sum = 0;
            for (int j = 0; j < TAPS; j++) {
                const uint16_t *line =
                    source + 4 * source_width * (size_t)clamp_index((ptrdiff_t)top + j - LOBES + 1, source_height);
                float row_sum[4] = {0, 0, 0, 0}, row_alpha = 0;
                for (int i = 0; i < TAPS; i++) {
                    const uint16_t *pixel = line + 4 * clamp_index((ptrdiff_t)left + i - LOBES + 1, source_width);
                    float weight = across[i];
                    if (has_opacity) {
                        row_sum[3] += weight * (float)pixel[3];
                        weight *= (65535.0f - (float)pixel[3]) / 65535.0f;
                        row_alpha += weight;
                    }
                    row_sum[0] += weight * (float)pixel[0];
                    row_sum[1] += weight * (float)pixel[1];
                    row_sum[2] += weight * (float)pixel[2];
                }
                for (int c = 0; c < 4; c++) sum[c] += down[j] * row_sum[c];
                alpha_sum += down[j] * row_alpha;
            }
            if (has_opacity) {
                float scale = alpha_sum > 1e-4f ? 1 / alpha_sum : 0;
                for (int c = 0; c < 3; c++) sum[c] *= scale;
            }
            uint16_t *out = output + 4 * (row * width + column);
            for (int c = 0; c < 4; c++) out[c] = to_quantum(sum[c]);
            if (!has_opacity) out[3] = 0;
        }
    }
}
