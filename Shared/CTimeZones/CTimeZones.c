#include "CTimeZones.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t table[] = {
#embed "TimeZones.bin"
};

const uint8_t *safelight_time_zones(size_t *count) {
    *count = sizeof table;
    return table;
}
