#ifndef SAFELIGHT_CTIMEZONES_H
#define SAFELIGHT_CTIMEZONES_H
/* The time zone of every place and the offsets of every zone: see make-table.py for the form, and LICENSE. */
#include <stddef.h>
#include <stdint.h>

/* Returns the compressed table and its size. */
const uint8_t *safelight_time_zones(size_t *count);
#endif
