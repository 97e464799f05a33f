/* Recolours 8-bit 4:2:0 YUV frames of limited range by a table, and draws images over them. */
#include "VideoFile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS SAFELIGHT_VIDEO_TABLE_POINTS
/* The distance between two points of the table is 2 to this power, in 8-bit levels. */
#define SHIFT 2
#define MASK ((1 << SHIFT) - 1)
/* Entries are samples times 2 to this power, so that the product with a weight fits into 16 bits. */
#define FRACTION_BITS 5

/* Two entries of the table. */
typedef int16_t entry_pair __attribute__((vector_size(16)));

/* Sets the luma_weights of red and blue in the luma of a matrix. */
static void luma_weights(const char *matrix, double *red, double *blue) {
    static const struct {
        const char *name;
        double red, blue;
    } known[] = {{"smpte170m", 0.299, 0.114}, {"bt470bg", 0.299, 0.114},   {"bt2020nc", 0.2627, 0.0593},
                 {"bt2020c", 0.2627, 0.0593}, {"smpte240m", 0.212, 0.087}, {"fcc", 0.30, 0.11}};
    *red = 0.2126;
    *blue = 0.0722;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(matrix, known[i].name)) {
            *red = known[i].red;
            *blue = known[i].blue;
        }
    }
}

static double clamped(double value) { return value < 0 ? 0 : value > 1 ? 1 : value; }

void safelight_video_table_points(const char *matrix, uint16_t *colours) {
    double red, blue;
    luma_weights(matrix, &red, &blue);
    double green = 1 - red - blue;
    for (int v = 0; v < POINTS; v++) {
        for (int u = 0; u < POINTS; u++) {
            for (int y = 0; y < POINTS; y++, colours += 3) {
                double luma = ((y << SHIFT) - 16) / 219.0;
                double b = ((u << SHIFT) - 128) / 224.0 * 2 * (1 - blue);
                double r = ((v << SHIFT) - 128) / 224.0 * 2 * (1 - red);
                double g = -(red * r + blue * b) / green;
                colours[0] = (uint16_t)lrint(clamped(luma + r) * 65535);
                colours[1] = (uint16_t)lrint(clamped(luma + g) * 65535);
                colours[2] = (uint16_t)lrint(clamped(luma + b) * 65535);
            }
        }
    }
}

static void to_sample(double red, double blue, const double *colour, double *sample) {
    double luma = red * colour[0] + (1 - red - blue) * colour[1] + blue * colour[2];
    sample[0] = 16 + 219 * luma;
    sample[1] = 128 + 224 * (colour[2] - luma) / (2 * (1 - blue));
    sample[2] = 128 + 224 * (colour[0] - luma) / (2 * (1 - red));
}

void safelight_video_table_fill(const char *matrix, const uint16_t *colours, int16_t *table) {
    double red, blue;
    luma_weights(matrix, &red, &blue);
    for (size_t i = 0; i < (size_t)POINTS * POINTS * POINTS; i++, colours += 3, table += 4) {
        double colour[3] = {colours[0] / 65535.0, colours[1] / 65535.0, colours[2] / 65535.0}, sample[3];
        to_sample(red, blue, colour, sample);
        for (int c = 0; c < 3; c++) table[c] = (int16_t)lrint(sample[c] * (1 << FRACTION_BITS));
        table[3] = 0;
    }
}

/* Returns the two entries around a luma, interpolated to a chroma. */
static inline entry_pair entries_at(const int16_t *table, int y, int u, int v) {
    size_t index = ((size_t)(v >> SHIFT) * POINTS + (size_t)(u >> SHIFT)) * POINTS + (size_t)(y >> SHIFT);
    const int16_t *at = table + 4 * index;
    entry_pair a, b, c, d;
    memcpy(&a, at, 16);
    memcpy(&b, at + 4 * POINTS, 16);
    memcpy(&c, at + 4 * POINTS * POINTS, 16);
    memcpy(&d, at + 4 * POINTS * (POINTS + 1), 16);
    int16_t u_weight = (int16_t)(u & MASK), v_weight = (int16_t)(v & MASK);
    a += (b - a) * u_weight >> SHIFT;
    c += (d - c) * u_weight >> SHIFT;
    return a + ((c - a) * v_weight >> SHIFT);
}

static inline uint8_t round_sample(int value) {
    value = (value + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Interpolates a channel of two entries to a luma. */
static inline int interpolate(entry_pair entries, int channel, int y) {
    int low = entries[channel], high = entries[channel + 4];
    return low + ((high - low) * (y & MASK) >> SHIFT);
}

void safelight_video_recolour(AVFrame *frame, const int16_t *table) {
    for (int row = 0; row < frame->height; row += 2) {
        uint8_t *luma[2] = {frame->data[0] + (ptrdiff_t)row * frame->linesize[0], NULL};
        luma[1] = row + 1 < frame->height ? luma[0] + frame->linesize[0] : luma[0];
        uint8_t *us = frame->data[1] + (ptrdiff_t)(row / 2) * frame->linesize[1];
        uint8_t *vs = frame->data[2] + (ptrdiff_t)(row / 2) * frame->linesize[2];
        int rows = row + 1 < frame->height ? 2 : 1;
        for (int column = 0; column < frame->width; column += 2) {
            int u = us[column / 2], v = vs[column / 2];
            int next = column + 1 < frame->width ? column + 1 : column;
            int mean = (luma[0][column] + luma[0][next] + luma[1][column] + luma[1][next] + 2) >> 2;
            entry_pair middle = entries_at(table, mean, u, v), current = middle;
            int cell = mean >> SHIFT;
            for (int i = 0; i < rows; i++) {
                for (int x = column; x <= next; x++) {
                    int y = luma[i][x];
                    if (y >> SHIFT != cell) {
                        cell = y >> SHIFT;
                        current = entries_at(table, y, u, v);
                    }
                    luma[i][x] = round_sample(interpolate(current, 0, y));
                }
            }
            us[column / 2] = round_sample(interpolate(middle, 1, mean));
            vs[column / 2] = round_sample(interpolate(middle, 2, mean));
        }
    }
}

static uint8_t blend(int under, double over, double opacity) {
    return (uint8_t)lrint(under + (over - under) * opacity);
}

void safelight_video_draw(AVFrame *frame, const char *matrix, const safelight_video_overlay *overlay) {
    double red, blue;
    luma_weights(matrix, &red, &blue);
    int right = overlay->x + overlay->width, bottom = overlay->y + overlay->height;
    /* Each block of four pixels has one chroma sample. */
    for (int top = overlay->y & ~1; top < bottom; top += 2) {
        for (int left = overlay->x & ~1; left < right; left += 2) {
            double sums[2] = {0, 0}, opacity = 0;
            for (int i = 0; i < 4; i++) {
                int x = left + i % 2, y = top + i / 2;
                if (x < overlay->x || y < overlay->y || x >= right || y >= bottom) continue;
                if (x < 0 || y < 0 || x >= frame->width || y >= frame->height) continue;
                size_t index = (size_t)(y - overlay->y) * (size_t)overlay->width + (size_t)(x - overlay->x);
                const uint8_t *pixel = overlay->pixels + 4 * index;
                if (!pixel[3]) continue;
                double colour[3] = {pixel[0] / 255.0, pixel[1] / 255.0, pixel[2] / 255.0}, value[3];
                double alpha = pixel[3] / 255.0;
                to_sample(red, blue, colour, value);
                uint8_t *luma = frame->data[0] + (ptrdiff_t)y * frame->linesize[0] + x;
                *luma = blend(*luma, value[0], alpha);
                sums[0] += alpha * value[1];
                sums[1] += alpha * value[2];
                opacity += alpha;
            }
            if (opacity == 0) continue;
            for (int c = 1; c < 3; c++) {
                uint8_t *chroma = frame->data[c] + (ptrdiff_t)(top / 2) * frame->linesize[c] + left / 2;
                *chroma = blend(*chroma, sums[c - 1] / opacity, opacity / 4);
            }
        }
    }
}
