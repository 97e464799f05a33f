#include "CPixels.h"

void safelight_gather_rgb(const uint8_t *source, ptrdiff_t step_x, ptrdiff_t step_y, uint8_t *output, size_t width,
                          size_t rows) {
    /* Columns first: the rows of the source are long, while the output has few rows. */
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

void safelight_divide_by_opacity(uint16_t *pixels, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t *pixel = pixels + 4 * i;
        uint32_t opacity = 65535u - pixel[3];
        if (opacity == 0 || opacity == 65535) continue;
        for (int c = 0; c < 3; c++) {
            uint32_t value = (uint32_t)(((uint64_t)pixel[c] * 65535 + opacity / 2) / opacity);
            pixel[c] = (uint16_t)(value > 65535 ? 65535 : value);
        }
    }
}
