#ifndef SAFELIGHT_CRAW_H
#define SAFELIGHT_CRAW_H
/* The little of LibRaw that is needed, without its types: what a camera's raw file holds, its preview, and its developed
   pixels. The bytes must stay where they are until the file is closed; nothing is printed. */
#include <stddef.h>
#include <stdint.h>

typedef struct safelight_raw safelight_raw;

/* The version of LibRaw in words. */
const char *safelight_raw_version(void);

/* Opens a raw file in memory; null where LibRaw finds none in it. */
safelight_raw *safelight_raw_open(const void *bytes, size_t count);
void safelight_raw_close(safelight_raw *raw);

/* The size of the developed picture before it is turned, and the EXIF orientation 1, 3, 6 or 8 that turns it. */
void safelight_raw_size(const safelight_raw *raw, size_t *width, size_t *height, int *orientation);

/* The largest JPEG in the file, which belongs to the file; null where there is none. */
const uint8_t *safelight_raw_preview(safelight_raw *raw, size_t *count);

/* Develops: 8-bit sRGB, three bytes a pixel, with the camera's white balance and not turned. With is_half a block of four
   sensor pixels becomes one. The pixels belong to the file; null where it fails, and problem says why. */
const uint8_t *safelight_raw_develop(safelight_raw *raw, int is_half, size_t *width, size_t *height,
                                     const char **problem);
#endif
