#include "CJPEG.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>
#include <jerror.h>

typedef struct {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct decoder;
    jmp_buf return_point;
    int64_t deadline; /* in milliseconds of processor_time */
    safelight_jpeg_report *report;
} check;

/* Returns the processor time of this thread in milliseconds. */
static int64_t processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Ends the check with a state. */
static void stop(check *self, safelight_jpeg_state state) {
    self->report->state = state;
    if (state != SAFELIGHT_JPEG_UNCHECKED) {
        char text[JMSG_LENGTH_MAX];
        self->errors.format_message((j_common_ptr)&self->decoder, text);
        snprintf(self->report->message, sizeof self->report->message, "%s", text);
    }
    longjmp(self->return_point, 1);
}

static void fail(j_common_ptr decoder) {
    check *self = (check *)decoder->client_data;
    switch (self->errors.msg_code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE: stop(self, SAFELIGHT_JPEG_UNCHECKED); break;
    default: stop(self, SAFELIGHT_JPEG_UNREADABLE);
    }
}

/* Stops at a warning that means lost pixels. Other warnings are common in files of cameras and programs, such as those
   about extraneous bytes or unknown versions. */
static void handle_warning(j_common_ptr decoder, int level) {
    check *self = (check *)decoder->client_data;
    if (level >= 0) return;
    switch (self->errors.msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC: {
        struct jpeg_decompress_struct *jpeg = &self->decoder;
        unsigned row = jpeg->input_iMCU_row * jpeg->max_v_samp_factor * DCTSIZE;
        self->report->row = row < jpeg->image_height ? row : jpeg->image_height;
        stop(self, SAFELIGHT_JPEG_DAMAGED);
        break;
    }
    default: break;
    }
}

static void check_time(j_common_ptr decoder) {
    check *self = (check *)decoder->client_data;
    if (processor_time() > self->deadline) stop(self, SAFELIGHT_JPEG_UNCHECKED);
}

static void ignore_output(j_common_ptr decoder) { (void)decoder; }

/* Reads all scans without computing pixels. The decoded coefficients are kept in memory. */
static void read_scans(struct jpeg_decompress_struct *jpeg) {
    jpeg->buffered_image = TRUE;
    jpeg_start_decompress(jpeg);
    while (jpeg_consume_input(jpeg) != JPEG_REACHED_EOI) check_time((j_common_ptr)jpeg);
}

/* Reads a single scan row by row in little memory. One pixel is computed per block, which takes little time compared
   with the entropy decoding. */
static void read_rows(check *self) {
    struct jpeg_decompress_struct *jpeg = &self->decoder;
    jpeg->scale_num = 1;
    jpeg->scale_denom = DCTSIZE;
    jpeg->dct_method = JDCT_IFAST;
    jpeg->do_fancy_upsampling = FALSE;
    if (jpeg->jpeg_color_space == JCS_YCbCr) jpeg->out_color_space = JCS_GRAYSCALE;
    jpeg_start_decompress(jpeg);
    JSAMPARRAY row = (*jpeg->mem->alloc_sarray)((j_common_ptr)jpeg, JPOOL_IMAGE,
                                                jpeg->output_width * jpeg->output_components, 1);
    while (jpeg->output_scanline < jpeg->output_height) {
        jpeg_read_scanlines(jpeg, row, 1);
        check_time((j_common_ptr)jpeg);
    }
    jpeg_finish_decompress(jpeg);
}

void safelight_jpeg_check(const uint8_t *bytes, size_t count, unsigned milliseconds, size_t memory,
                          safelight_jpeg_report *report) {
    memset(report, 0, sizeof *report);
    report->state = SAFELIGHT_JPEG_UNCHECKED;
    check *self = calloc(1, sizeof *self);
    if (!self) return;
    self->report = report;
    self->deadline = processor_time() + milliseconds;
    self->decoder.err = jpeg_std_error(&self->errors);
    self->errors.error_exit = fail;
    self->errors.emit_message = handle_warning;
    self->errors.output_message = ignore_output;
    if (!setjmp(self->return_point)) {
        jpeg_create_decompress(&self->decoder);
        self->decoder.client_data = self;
        self->progress.progress_monitor = check_time;
        self->decoder.progress = &self->progress;
        self->decoder.mem->max_memory_to_use = (long)memory;
        jpeg_mem_src(&self->decoder, bytes, count);
        jpeg_read_header(&self->decoder, TRUE);
        report->width = self->decoder.image_width;
        report->height = self->decoder.image_height;
        if (jpeg_has_multiple_scans(&self->decoder))
            read_scans(&self->decoder);
        else
            read_rows(self);
        report->state = SAFELIGHT_JPEG_INTACT;
    }
    jpeg_destroy_decompress(&self->decoder);
    free(self);
}
