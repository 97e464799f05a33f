#ifndef SAFELIGHT_CTIMEZONES_H
#define SAFELIGHT_CTIMEZONES_H
/* A table of the time zone of each cell of the map and the UTC offsets of each zone. make-table.py describes its
   format; see LICENSE. */
#include <stddef.h>
#include <stdint.h>

/* Returns the compressed table and its size. */
const uint8_t *safelight_time_zones(size_t *count);
#endif
