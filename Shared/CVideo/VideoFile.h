#ifndef SAFELIGHT_VIDEO_FILE_H
#define SAFELIGHT_VIDEO_FILE_H
/* An open video; private to this module. */
#include "CVideo.h"
#include "VideoLibraries.h"

#define SAFELIGHT_VIDEO_BUFFER (64 << 10)
/* The limit to which times are clamped, so that computations do not overflow: 35 years in microseconds. */
#define SAFELIGHT_VIDEO_MAX_TIME ((int64_t)1 << 50)

struct safelight_video {
    int descriptor;
    int64_t offset, size, position;
    safelight_video_limits limits;
    double opened_at, deadline; /* in the time of safelight_video_now */
    int64_t bytes;
    int is_limit_reached; /* true once a limit of bytes or time was reached */
    AVFormatContext *context;
    AVIOContext *io;
    safelight_video_info info;
    int64_t start; /* the first presentation time in the container, in microseconds */
    int is_start_known; /* true if the header declares the start, or once it was searched for */

    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
    int64_t last_timestamp; /* of the last decoded frame, in units of the track */
    int is_begun;           /* true once packets were read */
    int is_pending;         /* true if `packet` was read but not decoded */
    int is_flushing;        /* true once all packets were sent to the decoder */
};

/* Changes the colours of an 8-bit 4:2:0 frame by a table. */
void safelight_video_recolour(AVFrame *frame, const int16_t *table);
/* Draws an image over an 8-bit 4:2:0 frame. */
void safelight_video_draw(AVFrame *frame, const char *matrix, const safelight_video_overlay *overlay);

/* Returns the monotonic time in seconds. */
double safelight_video_now(void);
/* Resets the bytes read and the deadline for a new operation. */
void safelight_video_begin_operation(safelight_video *video);
void safelight_video_end_decoding(safelight_video *video);
/* Returns the names of the allowed decoders, separated by commas. */
const char *safelight_video_decoders(void);
/* Returns the decoder of a codec; null if none is allowed. */
const AVCodec *safelight_video_decoder_for(enum AVCodecID id);
#endif
