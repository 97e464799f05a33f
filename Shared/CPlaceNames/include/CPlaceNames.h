#ifndef SAFELIGHT_CPLACENAMES_H
#define SAFELIGHT_CPLACENAMES_H
/* A table of the largest place and the country of each cell of one degree. make-table.py describes its format; see
   LICENSE. */
#include <stddef.h>
#include <stdint.h>

/* Returns the compressed table and its size. */
const uint8_t *safelight_place_names(size_t *count);
#endif
