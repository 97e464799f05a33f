#ifndef SAFELIGHT_JPEGROWS_H
#define SAFELIGHT_JPEGROWS_H
/* JPEG row by row, so that a picture need not be held whole. libjpeg reports by longjmp, which only C may see: every
   function here returns 1 or a pointer when it worked, and says why not in the message of what it was given. */
#include <stddef.h>
#include <stdint.h>

enum { SAFELIGHT_JPEG_MESSAGE = 200 };

typedef struct safelight_jpeg_reader safelight_jpeg_reader;
typedef struct safelight_jpeg_writer safelight_jpeg_writer;

/* Reads the header. The bytes must live as long as the reader. Null where there is no memory. */
safelight_jpeg_reader *safelight_jpeg_open(const uint8_t *bytes, size_t count);
void safelight_jpeg_close(safelight_jpeg_reader *reader);
/* Why something failed, or the last warning; empty where there was none. */
const char *safelight_jpeg_reader_message(const safelight_jpeg_reader *reader);

/* 1 where the picture has three channels that become red, green and blue without a profile for it. */
int safelight_jpeg_is_plain(const safelight_jpeg_reader *reader);
/* The colour profile, or null; the reader's own. */
const uint8_t *safelight_jpeg_profile(const safelight_jpeg_reader *reader, size_t *count);

/* Begins to decode at eighths of the size, 1...8; tells the size that comes. */
int safelight_jpeg_begin(safelight_jpeg_reader *reader, unsigned eighths, size_t *width, size_t *height);
/* The next rows, three bytes a pixel, row_bytes apart. */
int safelight_jpeg_read(safelight_jpeg_reader *reader, uint8_t *rows, size_t row_bytes, size_t count);
/* 1 where the data ended before the picture did. */
int safelight_jpeg_is_cut(const safelight_jpeg_reader *reader);

/* Begins a picture; a profile of no bytes is none. Chroma has half the resolution where is_halved is 1; where
   is_optimized is 1 the picture gets Huffman tables of its own, and is held whole for that. Null where there is no
   memory; a message where something else is wrong. */
safelight_jpeg_writer *safelight_jpeg_create(size_t width, size_t height, int quality, int is_halved,
                                             int is_optimized, const uint8_t *profile, size_t profile_count);
void safelight_jpeg_discard(safelight_jpeg_writer *writer);
const char *safelight_jpeg_writer_message(const safelight_jpeg_writer *writer);
int safelight_jpeg_write(safelight_jpeg_writer *writer, const uint8_t *rows, size_t row_bytes, size_t count);
/* Ends the picture; the bytes are the writer's until it is discarded. */
const uint8_t *safelight_jpeg_finish(safelight_jpeg_writer *writer, size_t *count);
#endif
