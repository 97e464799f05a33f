#ifndef SAFELIGHT_CPLACENAMES_H
#define SAFELIGHT_CPLACENAMES_H
/* The names of the largest place and the country of every degree: see make-table.py for the form, and LICENSE. */
#include <stddef.h>
#include <stdint.h>

/* Returns the compressed table and its size. */
const uint8_t *safelight_place_names(size_t *count);
#endif
