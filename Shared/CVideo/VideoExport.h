#ifndef SAFELIGHT_VIDEO_EXPORT_H
#define SAFELIGHT_VIDEO_EXPORT_H
/* The state of an export; private to this module. */
#include "VideoFile.h"

/* The size of the description of an audio format. */
#define SAFELIGHT_VIDEO_FORMAT_BYTES 256

typedef struct {
    AVStream *source, *target;
    AVCodecContext *decoder, *encoder;
    AVFilterGraph *graph;
    AVFilterContext *in, *hald_source, *out;
    char format[SAFELIGHT_VIDEO_FORMAT_BYTES]; /* an aformat filter for the audio format that the filters accept */
    int is_finished;         /* true once the exported part was read */
    int64_t written;         /* number of frames or packets */
    int64_t first_timestamp; /* of the first decoded frame, in units of the track; AV_NOPTS_VALUE if unknown */
    int64_t last_encoded;    /* timestamp of the last frame that was encoded */
    int64_t read_end;        /* end of the packets that were read, in microseconds */
    int64_t shift;           /* microseconds that are added to the timestamps of packets */
    int64_t previous_shift;
} track;

typedef struct {
    safelight_video *video;
    const safelight_video_export_options *options;
    AVFormatContext *output;
    track video_track, audio_track;
    track converter; /* only its filters are used: they convert audio of another format to the first format */
    AVPacket *packet;
    AVFrame *frame;
    int64_t position, end; /* of the output, in bytes */
    int64_t read_end;      /* of the track that is ahead */
    int64_t shift;         /* the last shift that was chosen for a track */
    int errors;
    safelight_video_status output_status;
} job;

/* Creates the filters of a track for the format of a frame. */
safelight_video_status safelight_video_open_filters(job *job, track *track, const AVFrame *frame, const char *text);
/* Sends a frame to the filters of a track and unreferences it. Returns a negative FFmpeg error on failure. */
int safelight_video_filter(job *job, track *track, AVFrame *frame);
#endif
