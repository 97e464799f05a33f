#ifndef SAFELIGHT_VIDEO_EXPORT_H
#define SAFELIGHT_VIDEO_EXPORT_H
/* An export that is running, for the sources of this module. */
#include "VideoFile.h"

/* The length of the filter that names a format of sound. */
#define SAFELIGHT_VIDEO_FORMAT 256

typedef struct {
    AVStream *source, *target;
    AVCodecContext *decoder, *encoder;
    AVFilterGraph *graph;
    AVFilterContext *in, *lut, *out;
    char format[SAFELIGHT_VIDEO_FORMAT]; /* of the sound that the filters accept, as a filter that makes it */
    int is_over; /* true once the whole wanted part was read */
    int64_t shown; /* the number of frames or packets that were written */
    int64_t first; /* time of the first frame of the file, in the units of the track; AV_NOPTS_VALUE if it is not known */
    int64_t newest; /* time of the last frame that was encoded */
    int64_t read; /* end of the packets that were read, in microseconds */
    int64_t shift; /* microseconds that are added to the times of packets */
    int64_t previous; /* the shift before */
} track;

typedef struct {
    safelight_video *video;
    const safelight_video_export_options *options;
    AVFormatContext *output;
    track picture, sound;
    track converter; /* only its filters: from a format of sound that came later to the first one */
    AVPacket *packet;
    AVFrame *frame;
    int64_t position, end; /* of the output, in bytes */
    int64_t read, shift; /* of the track that is ahead */
    int errors;
    safelight_video_status problem; /* of the sink */
} job;

/* Creates the filters of a track for the format of a frame. */
safelight_video_status safelight_video_open_filters(job *job, track *track, const AVFrame *frame, const char *text);
/* Sends a frame to the filters of a track, which take it over; returns FFmpeg's error. */
int safelight_video_filter(job *job, track *track, AVFrame *frame);
#endif
