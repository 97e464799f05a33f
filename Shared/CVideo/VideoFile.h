#ifndef SAFELIGHT_VIDEO_FILE_H
#define SAFELIGHT_VIDEO_FILE_H
/* An open video, for the sources of this module. */
#include "CVideo.h"
#include "VideoLibraries.h"

#define SAFELIGHT_VIDEO_BUFFER (64 << 10)
/* In microseconds: 35 years. Computations with later times could overflow. */
#define SAFELIGHT_VIDEO_LONGEST ((int64_t)1 << 50)

struct safelight_video {
    int descriptor;
    int64_t offset, size, position;
    safelight_video_limits limits;
    double opened, deadline;
    int64_t bytes;
    int exhausted; /* true once a limit of bytes or time was reached */
    AVFormatContext *context;
    AVIOContext *io;
    safelight_video_info info;
    int64_t start; /* the first time, in microseconds of the container */
    int knows_start; /* false until it was looked for */

    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
    int64_t last; /* time stamp of the last decoded frame, in the units of the track */
    int is_begun; /* true once packets were read */
    int is_pending; /* true if the packet was read and is decoded next */
    int is_flushing;
};

/* Changes the colours of a frame of 8 bits, 4:2:0, by a table. */
void safelight_video_recolour(AVFrame *frame, const int16_t *table);
/* Draws an image over such a frame. */
void safelight_video_draw(AVFrame *frame, const char *matrix, const safelight_video_picture *picture);

double safelight_video_now(void);
/* Starts the count of bytes and time of an operation. */
void safelight_video_begin(safelight_video *video);
void safelight_video_end_decoding(safelight_video *video);
const char *safelight_video_decoders(void);
/* Returns the decoder of a codec if it is on the list. */
const AVCodec *safelight_video_decoder_for(enum AVCodecID id);
#endif
