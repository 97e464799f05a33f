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
