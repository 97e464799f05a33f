#ifndef SAFELIGHT_CPIXELS_H
#define SAFELIGHT_CPIXELS_H
/* Loops over pixels that must be fast in debug builds too. A pixel is four 16-bit numbers: blue, green, red and
   opacity (0 is opaque), which is how ImageMagick 6 with 16-bit quanta lays them out. Nothing here allocates, and
   nothing reads outside the sizes it is given. */
#include <stddef.h>
#include <stdint.h>

/* One step of the colour pass on linear light. */
typedef struct {
    /* The step is a 3x3 matrix (rows: red, green, blue) when curve is null. */
    float matrix[9];
    /* Otherwise a table of SAFELIGHT_CURVE_COUNT values of a function on 0...1, at x = (i / (count - 1))^2, applied to
       each channel after clipping it to 0...1. */
    const float *curve;
} safelight_colour_step;

enum { SAFELIGHT_CURVE_COUNT = 4096 };

/* Decodes each channel by a table of 65536 values, takes the steps in order, encodes by a table spaced as curves are,
   whose values are 0...65535. */
void safelight_colour_pass(uint16_t *pixels, size_t count, const float *decode, const safelight_colour_step *steps,
                           size_t step_count, const float *encode);

enum { SAFELIGHT_LANCZOS_TAPS = 6, SAFELIGHT_LANCZOS_PHASES = 512 };

/* Resamples by a filter of six taps; weights holds the taps of phase 0, 1/512, ... 1, each row summing to 1. The centre
   of output pixel (u, v) lies at map[0] * x + map[1] * y + map[2], map[3] * x + map[4] * y + map[5] in the source, with
   x = u + 1/2, y = v + 1/2. Beyond the edge the source goes on with its last pixel. With has_opacity colours are
   weighted by their alpha. Writes all of the output. */
void safelight_resample(const uint16_t *source, size_t source_width, size_t source_height, uint16_t *output,
                        size_t width, size_t height, const double map[6], int has_opacity, const float *weights);

/* Makes a picture smaller, or as large, by Lanczos with three lobes, each output pixel from all source pixels below it.
   With has_opacity colours are weighted by their alpha. Writes all of the output; scratch has as many numbers as
   safelight_reduce_scratch says. */
size_t safelight_reduce_scratch(size_t source_width, size_t source_height, size_t width, size_t height);
void safelight_reduce(const uint16_t *source, size_t source_width, size_t source_height, uint16_t *output, size_t width,
                      size_t height, int has_opacity, float *scratch);
#endif
