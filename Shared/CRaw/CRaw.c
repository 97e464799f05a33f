#include "CRaw.h"
#include <libraw.h>
#include <stdlib.h>

struct safelight_raw {
    libraw_data_t *inner;
    libraw_processed_image_t *image;
};

/* Defined by OpenMP, if LibRaw was built with it. It is set to one thread, because images are processed in parallel by
   worker processes. */
extern void omp_set_num_threads(int count) __attribute__((weak));

const char *safelight_raw_version(void) { return libraw_version(); }

safelight_raw *safelight_raw_open(const void *bytes, size_t count) {
    if (omp_set_num_threads) omp_set_num_threads(1);
    libraw_data_t *inner = libraw_init(LIBRAW_OPTIONS_NONE);
    if (!inner) return NULL;
    libraw_set_dataerror_handler(inner, NULL, NULL);
    /* The buffer is only read. */
    if (libraw_open_buffer(inner, (void *)bytes, count) != LIBRAW_SUCCESS || inner->idata.raw_count == 0 ||
        inner->sizes.width == 0 || inner->sizes.height == 0) {
        libraw_close(inner);
        return NULL;
    }
    safelight_raw *raw = calloc(1, sizeof *raw);
    if (!raw) {
        libraw_close(inner);
        return NULL;
    }
    raw->inner = inner;
    return raw;
}

void safelight_raw_close(safelight_raw *raw) {
    if (!raw) return;
    if (raw->image) libraw_dcraw_clear_mem(raw->image);
    libraw_close(raw->inner);
    free(raw);
}

/* Returns the length of a side in square pixels. LibRaw reports sizes in sensor pixels, and scales them to square
   pixels when it develops the image. A side has at most 16 bits. */
static size_t scaled(size_t side, double factor) {
    double result = side * factor + 0.5;
    return result < 65535 ? (size_t)result : 65535;
}

void safelight_raw_size(const safelight_raw *raw, size_t *width, size_t *height, int *orientation) {
    *width = raw->inner->sizes.width;
    *height = raw->inner->sizes.height;
    double aspect = raw->inner->sizes.pixel_aspect;
    if (aspect > 0 && aspect < 0.995) *height = scaled(*height, 1 / aspect);
    if (aspect > 1.005) *width = scaled(*width, aspect);
    /* The bits of LibRaw's flip: 1 mirrors from left to right, 2 from top to bottom, and then 4 exchanges rows and
       columns. */
    static const int orientations[] = {1, 2, 4, 3, 5, 8, 6, 7};
    int flip = raw->inner->sizes.flip;
    *orientation = flip >= 0 && flip < 8 ? orientations[flip] : 1;
}

const uint8_t *safelight_raw_preview(safelight_raw *raw, size_t *count) {
    if (libraw_unpack_thumb(raw->inner) != LIBRAW_SUCCESS) return NULL;
    const libraw_thumbnail_t *preview = &raw->inner->thumbnail;
    if (preview->tformat != LIBRAW_THUMBNAIL_JPEG || !preview->thumb || preview->tlength < 4) return NULL;
    *count = preview->tlength;
    return (const uint8_t *)preview->thumb;
}

const uint8_t *safelight_raw_develop(safelight_raw *raw, int is_half, size_t *width, size_t *height, int *colours,
                                     const char **reason) {
    libraw_output_params_t *parameters = &raw->inner->params;
    parameters->use_camera_wb = 1;
    parameters->half_size = is_half != 0;
    parameters->output_bps = 8;
    parameters->output_color = 1;
    parameters->user_flip = 0;
    int status = libraw_unpack(raw->inner);
    if (status == LIBRAW_SUCCESS) status = libraw_dcraw_process(raw->inner);
    if (status == LIBRAW_SUCCESS) raw->image = libraw_dcraw_make_mem_image(raw->inner, &status);
    const libraw_processed_image_t *image = raw->image;
    if (status != LIBRAW_SUCCESS || !image) {
        *reason = libraw_strerror(status);
        return NULL;
    }
    if (image->type != LIBRAW_IMAGE_BITMAP || image->bits != 8 ||
        (image->colors != 3 && image->colors != 1) ||
        image->data_size != (unsigned)image->width * image->height * image->colors) {
        *reason = "the image has neither three colours nor one";
        return NULL;
    }
    *colours = image->colors;
    *width = image->width;
    *height = image->height;
    return image->data;
}
