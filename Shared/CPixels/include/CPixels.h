#ifndef SAFELIGHT_CPIXELS_H
#define SAFELIGHT_CPIXELS_H
/* Loops over pixels, in C because they must be fast in debug builds too. A pixel is four 16-bit numbers: blue, green,
   red and opacity (0 is opaque), the layout of ImageMagick 6 with 16-bit quanta. No function allocates memory, or
   accesses memory outside the given sizes. The same numbers give the same result on every machine, so floating-point
   operations must not be contracted or reordered. */
#include <stddef.h>
#include <stdint.h>

/* The kind of a step of the colour pass. */
typedef enum {
    /* numbers[0...8]: a 3x3 matrix with rows red, green, blue. The result is not clipped. */
    SAFELIGHT_MATRIX,
    /* One curve per channel, after clipping to 0...1. */
    SAFELIGHT_CURVES,
    /* Like SAFELIGHT_MATRIX, but clipped to 0...1 before and after; numbers[9] is the weight of the result. */
    SAFELIGHT_MIXED_MATRIX,
    /* numbers[0]: vibrance. */
    SAFELIGHT_VIBRANCE,
    /* numbers[0]: factor of lightness, [1]: factor of saturation, both of HSL, [2]: rotation of the hue in sextants,
       -3...3. */
    SAFELIGHT_MODULATE,
    /* numbers[0...12]: rotation of the hue in sextants at 0, 30, ... 360 degrees; [13...25]: change of chroma;
       [26...38]: change of lightness. */
    SAFELIGHT_BANDS,
    /* numbers[0...12]: brightness of the grey at 0, 30, ... 360 degrees; [39]: weight of the result. */
    SAFELIGHT_GREY_BANDS,
    /* numbers[0]: weight of the grey that is mixed in first, [1...3]: colour of the shadows, [4...6]: colour of the
       highlights, [7]: balance, [8]: strength of the colours. */
    SAFELIGHT_TONING,
    /* numbers[0], [1]: centre in pixels, [2]: 1 / half diagonal, [3]: start of the feather, [4]: 1 / width of
       the feather; curves[0]: the gain at evenly spaced points of the feather. */
    SAFELIGHT_VIGNETTE,
    /* numbers[0]: strength, [1]: cells of the noise per pixel; `seed` selects the noise. */
    SAFELIGHT_GRAIN,
    /* numbers[0]: weight of the result, [1]: number of points n; curves[0]: the values of red, green and blue at each
       of n points. */
    SAFELIGHT_TABLE_CURVES,
    /* Like SAFELIGHT_TABLE_CURVES, with a cube of n x n x n points; red varies fastest. */
    SAFELIGHT_TABLE_CUBE,
} safelight_step_kind;

enum { SAFELIGHT_CURVE_COUNT = 4096, SAFELIGHT_STEP_NUMBERS = 40 };

typedef struct {
    int32_t kind;
    /* The positions of the SAFELIGHT_CURVE_COUNT points of a curve: evenly over 0...1, or at (i / (count - 1))^2. */
    int32_t is_squared;
    uint32_t seed;
    float numbers[SAFELIGHT_STEP_NUMBERS];
    const float *curves[3];
} safelight_colour_step;

/* Applies the steps in order to rows of an image. `decode`, if not null, has 256 values for each of red, green and
   blue: it replaces the division by 65535, and only the upper eight bits of a channel are used. `first_row` is the
   index of the first row in the image. The steps end with encoded values in 0...1. */
void safelight_colour_pass(uint16_t *pixels, size_t width, size_t rows, size_t first_row, const float *decode,
                           const safelight_colour_step *steps, size_t step_count);

/* Applies the steps like safelight_colour_pass, to pixels of three bytes: red, green and blue. `decode` must not be
   null. */
void safelight_colour_pass_rgb(uint8_t *pixels, size_t width, size_t rows, size_t first_row, const float *decode,
                               const safelight_colour_step *steps, size_t step_count);

/* Reorders pixels of three bytes. The first pixel of the result is at `source`, its right neighbour is step_x bytes and
   its lower neighbour step_y bytes from there. */
void safelight_gather_rgb(const uint8_t *source, ptrdiff_t step_x, ptrdiff_t step_y, uint8_t *output, size_t width,
                          size_t rows);

/* For each of count result pixels: the first source pixel, and the weights of its taps, which sum to 1. */
typedef struct {
    size_t count, taps;
    const int32_t *starts;
    const float *weights;
} safelight_taps;

enum { SAFELIGHT_LANCZOS_TAPS = 6, SAFELIGHT_LANCZOS_PHASES = 512 };

/* Resamples with a filter of six taps; weights has the taps of phase 0, 1/512, ... 1, each row summing to 1. The
   centre of output pixel (u, v) is mapped to the source point (map[0] x + map[1] y + map[2], map[3] x + map[4] y +
   map[5]), both divided by map[6] x + map[7] y + map[8], with x = u + 1/2, y = v + 1/2. Edge pixels are repeated
   beyond the edges of the source. With has_opacity colours are weighted by their alpha. Writes `rows` rows;
   `first_row` is the index of the first one in the whole output. */
void safelight_resample(const uint16_t *source, size_t source_width, size_t source_height, uint16_t *output,
                        size_t width, size_t rows, size_t first_row, const double map[9], int has_opacity,
                        const float *weights);

/* Computes 0.2126 R + 0.7152 G + 0.0722 B of each pixel, in 0...1. */
void safelight_compute_brightness(const uint16_t *pixels, size_t count, float *brightness);

/* Blurs a plane with a symmetric kernel of 2 radius + 1 weights, repeating edge pixels. `middle` is scratch
   memory of the size of the plane. */
void safelight_blur(float *plane, float *middle, size_t width, size_t height, const float *kernel, size_t radius);

/* Blurs a plane `passes` times with a box filter of 2 radius + 1 pixels in each direction, repeating edge pixels.
   `middle` and `sums` are scratch memory of the size of the plane and of a row. */
void safelight_box_blur(float *plane, float *middle, double *sums, size_t width, size_t height, size_t radius,
                        int passes);

/* Adds amount * (brightness - blurred) to each channel if the absolute difference is at least the threshold. With
   has_midtone_weight the product is multiplied by 4 brightness (1 - brightness). */
void safelight_add_detail(uint16_t *pixels, size_t count, const float *blurred, float amount, float threshold,
                          int has_midtone_weight);

/* Smooths noise as described for the operation noiseReduction. Weights decrease with distance (kernel: 5 by 5) and
   with the difference of values; `range_factors` is 1 / s^2 for brightness and colour, and a strength of 0 leaves one
   of them unchanged. Writes `rows` rows from `first_row` on to output, which has the size of the whole image. */
void safelight_smooth(const uint16_t *source, uint16_t *output, size_t width, size_t height, size_t first_row,
                      size_t rows, const float *kernel, const float range_factors[2], const float strength[2]);

/* Draws the image `over` on an image at (x, y), which may be outside. `opacity`, 0...1, multiplies the alpha of
   `over`. */
void safelight_overlay(uint16_t *pixels, size_t width, size_t height, const uint16_t *over, size_t over_width,
                       size_t over_height, ptrdiff_t x, ptrdiff_t y, float opacity);

/* Rounds every channel to a multiple of 257, which is an 8-bit value, because some encoders truncate. */
void safelight_round_to_bytes(uint16_t *pixels, size_t count);

/* Converts pixels to three bytes each, red, green and blue, without opacity. */
void safelight_pixels_to_bytes(const uint16_t *pixels, size_t count, uint8_t *bytes);

/* Converts three bytes each to opaque pixels. */
void safelight_bytes_to_pixels(const uint8_t *bytes, size_t count, uint16_t *pixels);

/* Counts the values of red, green, blue and brightness in 256 steps each, in 4 times 256 counters. */
void safelight_compute_histogram(const uint16_t *pixels, size_t count, uint32_t *counters);

/* Scales an image down, or to the same size: computes each output pixel from its taps. With has_opacity colours are
   weighted by their alpha. Writes the whole output. `sums` is scratch memory for a row of the source. */
void safelight_reduce(const uint16_t *source, size_t source_width, const safelight_taps *across,
                      const safelight_taps *down, uint16_t *output, int has_opacity, float *sums);

/* Scales down like safelight_reduce, from source pixels of three bytes in rows that are row_bytes apart. `source_row`
   is the index of the first row in the whole source. Writes `rows` rows of the result from row `first_row` on, either
   as three bytes per pixel or as opaque pixels of four numbers; the other pointer is null. `sums` is scratch memory for
   a row of the source plus one number. */
void safelight_reduce_rgb(const uint8_t *source, size_t row_bytes, ptrdiff_t source_row, size_t source_width,
                          const safelight_taps *across, const safelight_taps *down, size_t first_row, size_t rows,
                          uint8_t *bytes, uint16_t *pixels, float *sums);

/* The curve of safelight_gain.encode covers SAFELIGHT_CURVE_START...SAFELIGHT_CURVE_END, 2048 points an octave. */
#define SAFELIGHT_CURVE_START 0x1p-20f
#define SAFELIGHT_CURVE_END 0x1p6f
enum {
    /* The index of the first point: the upper bits of 2^-20. */
    SAFELIGHT_CURVE_FIRST = (127 - 20) << 11,
    SAFELIGHT_CURVE_POINTS = 26 * 2048 + 1,
};

/* The parameters with which a gain map is applied to an image. */
typedef struct {
    /* The linear value of each of 65536 encoded values of the image. */
    const float *decode;
    /* For red, green and blue: the factor of each of 65536 values of the map. */
    const float *gain[3];
    float base_offset[3], alternate_offset[3];
    /* Converts the primaries of the image to those of the result; rows red, green, blue. */
    float matrix[9];
    /* SAFELIGHT_CURVE_POINTS encoded values; point i stands for the number whose upper bits are
       SAFELIGHT_CURVE_FIRST + i. */
    const uint16_t *encode;
} safelight_gain;

/* Applies a gain map to an image of the same size. Each pixel becomes (linear + base_offset) * gain - alternate_offset,
   converted to the primaries of the result, and encoded. Writes three numbers per pixel: red, green and blue. */
void safelight_apply_gain(const uint16_t *pixels, const uint16_t *map, size_t count,
                          const safelight_gain *parameters, uint16_t *output);

/* Maps pixels of 16 bits per sample, red, green and blue, to 8-bit sRGB. transfer: 0 sRGB, 1 PQ, 2 HLG; primaries: 0
   BT.709, 1 BT.2020, 2 P3 with D65. white: the sample at full level. peak: the maximum luminance of PQ in cd/m2, 0 for
   1,000. */
void safelight_rgb_to_srgb(const uint16_t *source, uint8_t *target, size_t pixels, int transfer, int primaries,
                           double white, double peak);

/* Maps pixels like safelight_rgb_to_srgb, in place and to 16 bits per sample, with a peak of 1,000 cd/m2. */
void safelight_map_tones(uint16_t *pixels, size_t count, int transfer, int primaries);

/* Divides colours by the opacity that they are multiplied by. */
void safelight_divide_by_opacity(uint16_t *pixels, size_t count);
#endif
