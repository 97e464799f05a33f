#ifndef SAFELIGHT_CJPEG_H
#define SAFELIGHT_CJPEG_H
/* Whether the coded data of a JPEG is whole, by libjpeg. Its errors jump; none of that leaves this file. */
#include <stddef.h>
#include <stdint.h>

#include "JPEGRows.h"

typedef enum {
    SAFELIGHT_JPEG_WHOLE,
    /* Pixels are lost from `row` on; `message` is libjpeg's own. */
    SAFELIGHT_JPEG_DAMAGED,
    /* libjpeg cannot read it at all; `message` says why. */
    SAFELIGHT_JPEG_UNREADABLE,
    /* It would take more time or memory than was allowed. */
    SAFELIGHT_JPEG_UNCHECKED
} safelight_jpeg_state;

typedef struct {
    safelight_jpeg_state state;
    /* Pixels as stored. */
    unsigned width, height, row;
    char message[200];
} safelight_jpeg_report;

/* Reads all coded data of the first picture, and makes no pixel that is not needed for that. Ends at the first damage,
   and after so many milliseconds of this thread's processor time or bytes of memory. */
void safelight_jpeg_check(const uint8_t *bytes, size_t count, unsigned milliseconds, size_t memory,
                          safelight_jpeg_report *report);
#endif
