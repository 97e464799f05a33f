#include "CPixels.h"
#include <string.h>

/* Returns the encoded form of a linear value of 0...64, which is looked up by the upper bits of its representation:
   exponent and eleven bits of the fraction. */
static uint16_t encode(float value, const uint16_t *curve) {
    if (!(value > SAFELIGHT_CURVE_START)) return 0;
    if (value > SAFELIGHT_CURVE_END) value = SAFELIGHT_CURVE_END;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return curve[(bits >> 12) - SAFELIGHT_CURVE_FIRST];
}

void safelight_apply_gain(const uint16_t *pixels, const uint16_t *map, size_t count,
                          const safelight_gain *parameters, uint16_t *output) {
    for (size_t i = 0; i < count; i++) {
        const uint16_t *pixel = pixels + 4 * i, *value = map + 4 * i;
        float linear[3];
        for (int c = 0; c < 3; c++) {
            linear[c] = (parameters->decode[pixel[2 - c]] + parameters->base_offset[c])
                    * parameters->gain[c][value[2 - c]]
                - parameters->alternate_offset[c];
        }
        for (int row = 0; row < 3; row++) {
            const float *m = parameters->matrix + 3 * row;
            float mixed = m[0] * linear[0] + m[1] * linear[1] + m[2] * linear[2];
            output[3 * i + row] = encode(mixed, parameters->encode);
        }
    }
}
