#ifndef SAFELIGHT_CPIXELS_H
#define SAFELIGHT_CPIXELS_H
/* Loops over pixels that must be fast in debug builds too. A pixel is four 16-bit numbers: blue, green, red and
   opacity (0 is opaque), which is how ImageMagick 6 with 16-bit quanta lays them out. Nothing here allocates, and
   nothing reads outside the sizes it is given. The same numbers give the same result on every machine: no step may be
   contracted or reordered. */
#include <stddef.h>
#include <stdint.h>

/* What one step of the colour pass does with red, green and blue. */
typedef enum {
    /* numbers[0...8]: a 3x3 matrix, rows red, green, blue. Nothing is clipped. */
    SAFELIGHT_MATRIX,
    /* A curve for each channel, after clipping to 0...1. */
    SAFELIGHT_CURVES,
    /* As SAFELIGHT_MATRIX, but clipped to 0...1 before and after, then mixed: numbers[9] of the result. */
    SAFELIGHT_MIXED_MATRIX,
    /* numbers[0]: vibrance. */
    SAFELIGHT_VIBRANCE,
    /* numbers[0...12]: turn of the hue in sextants at 0, 30, ... 360 degrees; [13...25]: change of chroma; [26...38]:
       change of lightness. */
    SAFELIGHT_BANDS,
    /* numbers[0...12]: brightness of the grey at each hue; [39]: how much of it is mixed in. */
    SAFELIGHT_GREY_BANDS,
    /* numbers[0]: how much turns grey first, [1...3] colour of the shadows, [4...6] of the highlights, [7] balance,
       [8] strength of the colours. */
    SAFELIGHT_TONING,
    /* numbers[0], [1]: centre in pixels, [2]: 1 / half diagonal, [3]: where it begins, [4]: 1 / its width; curves[0]:
       the gain over 0...1 of that width, evenly spaced. */
    SAFELIGHT_VIGNETTE,
    /* numbers[0]: strength, [1]: cells for each pixel; seed. */
    SAFELIGHT_GRAIN,
} safelight_step_kind;

enum { SAFELIGHT_CURVE_COUNT = 4096, SAFELIGHT_STEP_NUMBERS = 40 };

typedef struct {
    int32_t kind;
    /* Where the SAFELIGHT_CURVE_COUNT points of a curve lie: evenly over 0...1, or at (i / (count - 1))^2. */
    int32_t is_squared;
    uint32_t seed;
    float numbers[SAFELIGHT_STEP_NUMBERS];
    const float *curves[3];
} safelight_colour_step;

/* Takes the steps in order for rows of a picture. `decode`, where it is given, holds 256 values for each of red, green and
   blue: it takes the place of dividing by 65535, and only the upper eight bits of a channel count. Before the first row
   lie `first_row` others. The steps end at encoded values in 0...1. */
void safelight_colour_pass(uint16_t *pixels, size_t width, size_t rows, size_t first_row, const float *decode,
                           const safelight_colour_step *steps, size_t step_count);

/* The same for pixels of three bytes, red, green and blue. `decode` must be given. */
void safelight_colour_pass_rgb(uint8_t *pixels, size_t width, size_t rows, size_t first_row, const float *decode,
                               const safelight_colour_step *steps, size_t step_count);

/* Pixels of three bytes put in another order: the first of the result is at source, the next to its right step_x bytes
   further, the next below step_y. */
void safelight_gather_rgb(const uint8_t *source, ptrdiff_t step_x, ptrdiff_t step_y, uint8_t *output, size_t width,
                          size_t rows);

/* Where the neighbours of each of count places begin, and the weights of the taps of each, which sum to 1. */
typedef struct {
    size_t count, taps;
    const int32_t *starts;
    const float *weights;
} safelight_taps;

enum { SAFELIGHT_LANCZOS_TAPS = 6, SAFELIGHT_LANCZOS_PHASES = 512 };

/* Resamples by a filter of six taps; weights holds the taps of phase 0, 1/512, ... 1, each row summing to 1. The centre
   of output pixel (u, v) lies in the source at (map[0] x + map[1] y + map[2], map[3] x + map[4] y + map[5]), both divided
   by map[6] x + map[7] y + map[8], with x = u + 1/2, y = v + 1/2. Beyond the edge the source goes on with its last
   pixel. With has_opacity colours are weighted by their alpha. Writes `rows` rows, the first of which is row
   `first_row` of the whole. */
void safelight_resample(const uint16_t *source, size_t source_width, size_t source_height, uint16_t *output,
                        size_t width, size_t rows, size_t first_row, const double map[9], int has_opacity,
                        const float *weights);

/* 0.2126 R + 0.7152 G + 0.0722 B of each pixel, in 0...1. */
void safelight_brightness(const uint16_t *pixels, size_t count, float *brightness);

/* Blurs a plane by a symmetric kernel of 2 radius + 1 weights, beyond the edges by the last pixel; `middle` has the
   plane's size. */
void safelight_blur(float *plane, float *middle, size_t width, size_t height, const float *kernel, size_t radius);

/* Blurs a plane by `times` means over 2 radius + 1 pixels in each direction, beyond the edges by the last pixel;
   `middle` has the plane's size, `sums` a row's. */
void safelight_box_blur(float *plane, float *middle, double *sums, size_t width, size_t height, size_t radius,
                        int times);

/* Adds to each channel of a pixel amount * (brightness - blurred), where that difference is at least the threshold; with
   middle_tones times 4 brightness (1 - brightness). */
void safelight_add_detail(uint16_t *pixels, size_t count, const float *blurred, float amount, float threshold,
                          int middle_tones);

/* Smooths noise: see the operation noiseReduction. Weights fall with nearness (kernel: 5 times 5) and with unlikeness;
   `likeness` are the squares 1 / s^2 of brightness and colour, 0 for leaving that alone. Writes `rows` rows from
   `first_row` on into output, which has the whole picture's size. */
void safelight_smooth(const uint16_t *source, uint16_t *output, size_t width, size_t height, size_t first_row,
                      size_t rows, const float *kernel, const float likeness[2], const float strength[2]);

/* Lays a picture over another at (x, y), which may lie outside; opacity 0...1 is multiplied with its own alpha. */
void safelight_overlay(uint16_t *pixels, size_t width, size_t height, const uint16_t *over, size_t over_width,
                       size_t over_height, ptrdiff_t x, ptrdiff_t y, float opacity);

/* Rounds every channel to a multiple of 257, which is a value of eight bits: some encoders cut the rest off. */
void safelight_round_to_bytes(uint16_t *pixels, size_t count);

/* Pixels without their opacity in three bytes, red, green and blue. */
void safelight_bytes_of_pixels(const uint16_t *pixels, size_t count, uint8_t *bytes);

/* Counts values of red, green and blue and of brightness in 256 steps each: 4 times 256 counters. */
void safelight_histogram(const uint16_t *pixels, size_t count, uint32_t *counters);

/* Makes a picture smaller, or as large, each output pixel from the taps above it. With has_opacity colours are weighted by
   their alpha. Writes all of the output; `sums` has room for a row of the source. */
void safelight_reduce(const uint16_t *source, size_t source_width, const safelight_taps *across,
                      const safelight_taps *down, uint16_t *output, int has_opacity, float *sums);

/* The same from pixels of three bytes, rows row_bytes apart, the first of which is row `source_row` of the whole: `rows`
   rows of the result from row `first_row` on, either as three bytes a pixel or as opaque pixels of four numbers; the
   other is null. `sums` has room for a row of the source and one number. */
void safelight_reduce_rgb(const uint8_t *source, size_t row_bytes, ptrdiff_t source_row, size_t source_width,
                          const safelight_taps *across, const safelight_taps *down, size_t first_row, size_t rows,
                          uint8_t *bytes, uint16_t *pixels, float *sums);
#endif
