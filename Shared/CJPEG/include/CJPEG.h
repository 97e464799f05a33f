#ifndef SAFELIGHT_CJPEG_H
#define SAFELIGHT_CJPEG_H
/* Checks the coded data of a JPEG for damage with libjpeg. libjpeg reports errors with longjmp; no jump leaves the
   functions below. */
#include <stddef.h>
#include <stdint.h>

#include "JPEGRows.h"

typedef enum {
    SAFELIGHT_JPEG_INTACT,
    /* Pixels are lost from `row` on; `message` is that of libjpeg. */
    SAFELIGHT_JPEG_DAMAGED,
    /* libjpeg cannot read the file; `message` is that of libjpeg. */
    SAFELIGHT_JPEG_UNREADABLE,
    /* The check would take more time or memory than allowed. */
    SAFELIGHT_JPEG_UNCHECKED
} safelight_jpeg_state;

typedef struct {
    safelight_jpeg_state state;
    /* Pixels as stored. */
    unsigned width, height;
    /* The first damaged row. */
    unsigned row;
    char message[200];
} safelight_jpeg_report;

/* Parses all coded data of the first image and computes no more pixels than necessary. Stops at the first damage,
   or when the limit on this thread's processor time (milliseconds) or memory (bytes) is reached. */
void safelight_jpeg_check(const uint8_t *bytes, size_t count, unsigned milliseconds, size_t memory,
                          safelight_jpeg_report *report);
#endif
