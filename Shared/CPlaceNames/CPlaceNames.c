#include "CPlaceNames.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t table[] = {
#embed "PlaceNames.bin"
};

const uint8_t *safelight_place_names(size_t *count) {
    *count = sizeof table;
    return table;
}
