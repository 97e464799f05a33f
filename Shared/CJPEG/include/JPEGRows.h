#ifndef SAFELIGHT_JPEGROWS_H
#define SAFELIGHT_JPEGROWS_H
/* Reads and writes JPEG row by row, so that an image need not be in memory as a whole. libjpeg reports errors with
   longjmp, which must not cross Swift code: functions return 1 or a pointer on success, and the message of the
   reader or writer contains the reason for a failure. */
#include <stddef.h>
#include <stdint.h>

enum { SAFELIGHT_JPEG_MESSAGE = 200 };

typedef struct safelight_jpeg_reader safelight_jpeg_reader;
typedef struct safelight_jpeg_writer safelight_jpeg_writer;

/* Reads the header. The bytes must outlive the reader. Returns null if out of memory. */
safelight_jpeg_reader *safelight_jpeg_open(const uint8_t *bytes, size_t count);
void safelight_jpeg_close(safelight_jpeg_reader *reader);
/* Returns the reason of a failure, or the last warning; empty if there was none. */
const char *safelight_jpeg_reader_message(const safelight_jpeg_reader *reader);

/* Returns 1 if the image has three eight-bit channels that can be converted to red, green and blue. */
int safelight_jpeg_is_plain(const safelight_jpeg_reader *reader);
/* Returns the colour profile, which belongs to the reader, or null. */
const uint8_t *safelight_jpeg_profile(const safelight_jpeg_reader *reader, size_t *count);

/* Starts decoding at `eighths` eighths of the size, 1...8, and sets the decoded size. */
int safelight_jpeg_begin(safelight_jpeg_reader *reader, unsigned eighths, size_t *width, size_t *height);
/* Reads the next rows, three bytes per pixel. Rows are row_bytes apart. Damaged parts are grey or distorted, as libjpeg
   decodes them. */
int safelight_jpeg_read(safelight_jpeg_reader *reader, uint8_t *rows, size_t row_bytes, size_t count);

/* Starts an image, without a colour profile if profile_count is 0. With halves_chroma 1, chroma has half the
   resolution. With is_optimized 1, Huffman tables are computed for the image, which is kept in memory until then.
   Returns null if out of memory; other errors set the message. */
safelight_jpeg_writer *safelight_jpeg_create(size_t width, size_t height, int quality, int halves_chroma,
                                             int is_optimized, const uint8_t *profile, size_t profile_count);
/* Frees the writer and its bytes. */
void safelight_jpeg_discard(safelight_jpeg_writer *writer);
/* Returns the reason for a failure; empty if there was none. */
const char *safelight_jpeg_writer_message(const safelight_jpeg_writer *writer);
/* Writes the next rows, three bytes per pixel. Rows are row_bytes apart. */
int safelight_jpeg_write(safelight_jpeg_writer *writer, const uint8_t *rows, size_t row_bytes, size_t count);
/* Finishes the image. The bytes belong to the writer until it is discarded. */
const uint8_t *safelight_jpeg_finish(safelight_jpeg_writer *writer, size_t *count);
#endif
