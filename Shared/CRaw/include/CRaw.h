#ifndef SAFELIGHT_CRAW_H
#define SAFELIGHT_CRAW_H
/* An interface to LibRaw without its types. It reads the properties and the preview of a camera raw file, and develops
   its pixels. The bytes must stay valid until the file is closed. Nothing is printed. */
#include <stddef.h>
#include <stdint.h>

typedef struct safelight_raw safelight_raw;

/* Returns the version of LibRaw as text. */
const char *safelight_raw_version(void);

/* Opens a raw file in memory. Returns null if LibRaw cannot read it. */
safelight_raw *safelight_raw_open(const void *bytes, size_t count);
void safelight_raw_close(safelight_raw *raw);

/* Returns the size of the developed image before rotation, with square pixels, and its EXIF orientation, 1 to 8. */
void safelight_raw_size(const safelight_raw *raw, size_t *width, size_t *height, int *orientation);

/* Returns the largest JPEG preview, whose bytes belong to the file; null if there is none. */
const uint8_t *safelight_raw_preview(safelight_raw *raw, size_t *count);

/* Develops the image to 8-bit sRGB with the camera's white balance and without rotation. A pixel has as many bytes as
   colours: 3, or 1 if the sensor has no colour filters. With is_half a block of four sensor pixels becomes one pixel.
   The pixels belong to the file. Returns null on failure, and sets the reason. */
const uint8_t *safelight_raw_develop(safelight_raw *raw, int is_half, size_t *width, size_t *height, int *colours,
                                     const char **reason);
#endif
