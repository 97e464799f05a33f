#include "JPEGRows.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

/* `base` comes first so that libjpeg's pointer to it can be cast to the whole structure. */
typedef struct {
    struct jpeg_error_mgr base;
    jmp_buf return_point;
    char message[SAFELIGHT_JPEG_MESSAGE];
} failures;

struct safelight_jpeg_reader {
    struct jpeg_decompress_struct jpeg;
    failures failures;
    JOCTET *profile;
    unsigned int profile_count;
    int is_readable;
};

struct safelight_jpeg_writer {
    struct jpeg_compress_struct jpeg;
    failures failures;
    unsigned char *bytes;
    unsigned long count;
};

static void store_message(failures *failures, j_common_ptr jpeg) {
    char text[JMSG_LENGTH_MAX];
    failures->base.format_message(jpeg, text);
    snprintf(failures->message, sizeof failures->message, "%s", text);
}

static void stop(j_common_ptr jpeg) {
    failures *failures = (void *)jpeg->err;
    store_message(failures, jpeg);
    longjmp(failures->return_point, 1);
}

static void store_warning(j_common_ptr jpeg, int level) {
    failures *failures = (void *)jpeg->err;
    if (level >= 0) return;
    jpeg->err->num_warnings++;
    store_message(failures, jpeg);
}

static void ignore_output(j_common_ptr jpeg) { (void)jpeg; }

static struct jpeg_error_mgr *install_handlers(failures *failures) {
    struct jpeg_error_mgr *errors = jpeg_std_error(&failures->base);
    errors->error_exit = stop;
    errors->emit_message = store_warning;
    errors->output_message = ignore_output;
    return errors;
}

// MARK: - Reading

safelight_jpeg_reader *safelight_jpeg_open(const uint8_t *bytes, size_t count) {
    safelight_jpeg_reader *reader = calloc(1, sizeof *reader);
    if (!reader) return NULL;
    reader->jpeg.err = install_handlers(&reader->failures);
    if (setjmp(reader->failures.return_point)) return reader;
    jpeg_create_decompress(&reader->jpeg);
    jpeg_mem_src(&reader->jpeg, bytes, count);
    jpeg_save_markers(&reader->jpeg, JPEG_APP0 + 2, 0xFFFF);
    reader->is_readable = jpeg_read_header(&reader->jpeg, TRUE) == JPEG_HEADER_OK;
    if (reader->is_readable && !jpeg_read_icc_profile(&reader->jpeg, &reader->profile, &reader->profile_count)) {
        reader->profile = NULL;
        reader->profile_count = 0;
    }
    return reader;
}

void safelight_jpeg_close(safelight_jpeg_reader *reader) {
    if (!setjmp(reader->failures.return_point)) jpeg_destroy_decompress(&reader->jpeg);
    free(reader->profile);
    free(reader);
}

const char *safelight_jpeg_reader_message(const safelight_jpeg_reader *reader) { return reader->failures.message; }

int safelight_jpeg_is_plain(const safelight_jpeg_reader *reader) {
    return reader->is_readable && reader->jpeg.data_precision == 8 && reader->jpeg.num_components == 3 &&
           (reader->jpeg.jpeg_color_space == JCS_YCbCr || reader->jpeg.jpeg_color_space == JCS_RGB);
}

const uint8_t *safelight_jpeg_profile(const safelight_jpeg_reader *reader, size_t *count) {
    *count = reader->profile_count;
    return reader->profile;
}

int safelight_jpeg_begin(safelight_jpeg_reader *reader, unsigned eighths, size_t *width, size_t *height) {
    if (!reader->is_readable || setjmp(reader->failures.return_point)) return 0;
    reader->jpeg.out_color_space = JCS_RGB;
    reader->jpeg.scale_num = eighths;
    reader->jpeg.scale_denom = 8;
    jpeg_start_decompress(&reader->jpeg);
    *width = reader->jpeg.output_width;
    *height = reader->jpeg.output_height;
    return 1;
}

int safelight_jpeg_read(safelight_jpeg_reader *reader, uint8_t *rows, size_t row_bytes, size_t count) {
    if (setjmp(reader->failures.return_point)) return 0;
    enum { BATCH = 16 };
    JSAMPROW lines[BATCH];
    for (size_t row = 0; row < count;) {
        size_t batch = count - row < BATCH ? count - row : BATCH;
        for (size_t i = 0; i < batch; i++) lines[i] = rows + (row + i) * row_bytes;
        JDIMENSION read = jpeg_read_scanlines(&reader->jpeg, lines, (JDIMENSION)batch);
        if (read == 0) return 0;
        row += read;
    }
    return 1;
}

// MARK: - Writing

safelight_jpeg_writer *safelight_jpeg_create(size_t width, size_t height, int quality, int halves_chroma,
                                             int is_optimized, const uint8_t *profile, size_t profile_count) {
    safelight_jpeg_writer *writer = calloc(1, sizeof *writer);
    if (!writer) return NULL;
    writer->jpeg.err = install_handlers(&writer->failures);
    if (setjmp(writer->failures.return_point)) return writer;
    jpeg_create_compress(&writer->jpeg);
    jpeg_mem_dest(&writer->jpeg, &writer->bytes, &writer->count);
    writer->jpeg.image_width = (JDIMENSION)width;
    writer->jpeg.image_height = (JDIMENSION)height;
    writer->jpeg.input_components = 3;
    writer->jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&writer->jpeg);
    jpeg_set_quality(&writer->jpeg, quality, TRUE);
    writer->jpeg.optimize_coding = is_optimized ? TRUE : FALSE;
    if (!halves_chroma) writer->jpeg.comp_info[0].h_samp_factor = writer->jpeg.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&writer->jpeg, TRUE);
    if (profile_count > 0) jpeg_write_icc_profile(&writer->jpeg, profile, (unsigned int)profile_count);
    return writer;
}

void safelight_jpeg_discard(safelight_jpeg_writer *writer) {
    if (!setjmp(writer->failures.return_point)) {
        /* Only term_destination sets the current address of the bytes, which were moved when they grew. */
        if (writer->jpeg.dest) writer->jpeg.dest->term_destination(&writer->jpeg);
        jpeg_destroy_compress(&writer->jpeg);
    }
    free(writer->bytes);
    free(writer);
}

const char *safelight_jpeg_writer_message(const safelight_jpeg_writer *writer) { return writer->failures.message; }

int safelight_jpeg_write(safelight_jpeg_writer *writer, const uint8_t *rows, size_t row_bytes, size_t count) {
    if (writer->failures.message[0] || setjmp(writer->failures.return_point)) return 0;
    for (size_t row = 0; row < count; row++) {
        JSAMPROW line = (JSAMPROW)(uintptr_t)(rows + row * row_bytes);
        if (jpeg_write_scanlines(&writer->jpeg, &line, 1) != 1) return 0;
    }
    return 1;
}

const uint8_t *safelight_jpeg_finish(safelight_jpeg_writer *writer, size_t *count) {
    if (writer->failures.message[0] || setjmp(writer->failures.return_point)) return NULL;
    jpeg_finish_compress(&writer->jpeg);
    *count = writer->count;
    return writer->bytes;
}
