#include "CPixels.h"
#include <math.h>

/* Maps high dynamic range to sRGB. The curve of ITU-R BT.2390 (EETF) maps the peak of the image to reference white,
   which is 203 cd/m2 by BT.2408. It is applied to the largest component of a pixel, so that hues do not change. Then
   the primaries are converted, and colours outside of sRGB are clipped. */

#define REFERENCE_WHITE 203.0
#define HLG_PEAK 1000.0

static const double m1 = 2610.0 / 16384, m2 = 2523.0 / 32, c1 = 3424.0 / 4096, c2 = 2413.0 / 128, c3 = 2392.0 / 128;

static double pq_to_nits(double value) {
    double power = pow(value, 1 / m2);
    double above = power - c1;
    return above <= 0 ? 0 : 10000 * pow(above / (c2 - c3 * power), 1 / m1);
}

static double nits_to_pq(double nits) {
    double power = pow(nits / 10000, m1);
    return pow((c1 + c2 * power) / (1 + c3 * power), m2);
}

static double srgb_to_linear(double value) {
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

static double hlg_to_scene(double value) {
    const double a = 0.17883277, b = 0.28466892, c = 0.55991073;
    return value <= 0.5 ? value * value / 3 : (exp((value - c) / a) + b) / 12;
}

/* Returns the factor by which the curve reduces a pixel whose largest component is a PQ value. */
static double reduction(double pq, double peak) {
    double top = nits_to_pq(peak), limit = nits_to_pq(REFERENCE_WHITE) / top;
    double knee = 1.5 * limit - 0.5, value = fmin(pq / top, 1);
    if (value <= knee) return 1;
    double t = (value - knee) / (1 - knee), t2 = t * t, t3 = t2 * t;
    double mapped = (2 * t3 - 3 * t2 + 1) * knee + (t3 - 2 * t2 + t) * (1 - knee) + (-2 * t3 + 3 * t2) * limit;
    double nits = pq_to_nits(pq);
    return nits > 0 ? pq_to_nits(mapped * top) / nits : 1;
}

static const float matrices[3][9] = {
    {1, 0, 0, 0, 1, 0, 0, 0, 1},
    {1.660491f, -0.587641f, -0.072850f, -0.124550f, 1.132900f, -0.008349f, -0.018151f, -0.100579f, 1.118730f},
    {1.224940f, -0.224940f, 0, -0.042057f, 1.042057f, 0, -0.019638f, -0.078636f, 1.098274f},
};

#define STEPS 4096
#define CODES 16384

typedef struct {
    float light[STEPS + 1];     /* the light of a sample: cd/m2 (PQ), scene light (HLG) or 0...1 (sRGB) */
    float reduction[STEPS + 1]; /* the reduction for the largest component as PQ */
    uint16_t code[CODES + 1];   /* the sRGB value of linear light */
    const float *matrix;
    int transfer;
    float white;
} mapping;

static void prepare_mapping(mapping *mapping, int transfer, int primaries, double white, double peak, int max_code) {
    double top = transfer == 2 ? HLG_PEAK : fmin(fmax(peak > 0 ? peak : 1000, REFERENCE_WHITE), 10000);
    mapping->matrix = matrices[primaries];
    mapping->transfer = transfer;
    mapping->white = (float)white;
    for (int i = 0; i <= STEPS; i++) {
        double value = (double)i / STEPS;
        mapping->light[i] =
            (float)(transfer == 1 ? pq_to_nits(value) : transfer == 2 ? hlg_to_scene(value) : srgb_to_linear(value));
        mapping->reduction[i] = transfer ? (float)reduction(value, top) : 1;
    }
    for (int i = 0; i <= CODES; i++) {
        double light = (double)i / CODES;
        double value = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
        mapping->code[i] = (uint16_t)lround(max_code * value);
    }
}

static inline float interpolate(const float *table, float value) {
    float position = value * STEPS;
    if (!(position > 0)) return table[0];
    if (position >= STEPS) return table[STEPS];
    int index = (int)position;
    return table[index] + (table[index + 1] - table[index]) * (position - (float)index);
}

static inline float max_component(const float light[3]) { return fmaxf(light[0], fmaxf(light[1], light[2])); }

/* Maps the red, green and blue of a pixel. */
static inline void map_pixel(const mapping *mapping, const uint16_t source[3], uint16_t target[3]) {
    float light[3];
    for (int c = 0; c < 3; c++) light[c] = interpolate(mapping->light, (float)source[c] / mapping->white);
    if (mapping->transfer == 2) {
        /* The system gamma of a display of 1000 cd/m2 by BT.2100. */
        float luminance = 0.2627f * light[0] + 0.6780f * light[1] + 0.0593f * light[2];
        float gain = (float)HLG_PEAK * powf(luminance, 0.2f);
        for (int c = 0; c < 3; c++) light[c] *= gain;
    }
    if (mapping->transfer) {
        float pq;
        if (mapping->transfer == 1) {
            uint16_t code = source[0];
            for (int c = 1; c < 3; c++) code = source[c] > code ? source[c] : code;
            pq = (float)code / mapping->white;
        } else {
            pq = (float)nits_to_pq(max_component(light));
        }
        float gain = interpolate(mapping->reduction, pq) / (float)REFERENCE_WHITE;
        for (int c = 0; c < 3; c++) light[c] *= gain;
    }
    for (int c = 0; c < 3; c++) {
        const float *row = mapping->matrix + 3 * c;
        float value = row[0] * light[0] + row[1] * light[1] + row[2] * light[2];
        value = value > 0 ? value < 1 ? value : 1 : 0;
        target[c] = mapping->code[(int)(value * CODES + 0.5f)];
    }
}

void safelight_rgb_to_srgb(const uint16_t *source, uint8_t *target, size_t pixels, int transfer, int primaries,
                           double white, double peak) {
    mapping mapping;
    prepare_mapping(&mapping, transfer, primaries, white, peak, 255);
    for (size_t i = 0; i < pixels; i++) {
        uint16_t mapped[3];
        map_pixel(&mapping, source + 3 * i, mapped);
        for (int c = 0; c < 3; c++) target[3 * i + c] = (uint8_t)mapped[c];
    }
}

void safelight_map_tones(uint16_t *pixels, size_t count, int transfer, int primaries) {
    mapping mapping;
    prepare_mapping(&mapping, transfer, primaries, 65535, 0, 65535);
    for (size_t i = 0; i < count; i++) {
        uint16_t *pixel = pixels + 4 * i;
        uint16_t source[3] = {pixel[2], pixel[1], pixel[0]}, mapped[3];
        map_pixel(&mapping, source, mapped);
        for (int c = 0; c < 3; c++) pixel[2 - c] = mapped[c];
    }
}
