#ifndef SAFELIGHT_CVIDEO_H
#define SAFELIGHT_CVIDEO_H
/* The subset of FFmpeg's libraries that is used, without their types: what a video file contains, and single frames of
   it as RGB. A file is read through a descriptor that the caller opened; nothing else is opened, nothing is printed. All
   times are microseconds from the first moment that is shown. */
#include <stddef.h>
#include <stdint.h>

typedef struct safelight_video safelight_video;

typedef enum {
    SAFELIGHT_VIDEO_OK = 0,
    /* The container is damaged, truncated, or not of the named kind. */
    SAFELIGHT_VIDEO_UNREADABLE,
    SAFELIGHT_VIDEO_NO_PICTURE,
    /* The codec is not on the list of those that are decoded. */
    SAFELIGHT_VIDEO_CODEC,
    SAFELIGHT_VIDEO_TOO_LARGE,
    SAFELIGHT_VIDEO_TOO_MUCH_WORK,
    /* No frame could be decoded. */
    SAFELIGHT_VIDEO_NO_FRAME,
    /* No frame starts in the wanted part. */
    SAFELIGHT_VIDEO_EMPTY_PART,
    SAFELIGHT_VIDEO_NO_MEMORY,
    /* The encoder is missing or refuses the video. */
    SAFELIGHT_VIDEO_NO_ENCODER,
    /* The receiver of an exported video asked to stop. */
    SAFELIGHT_VIDEO_STOPPED,
    /* FFmpeg's libraries cannot be loaded. */
    SAFELIGHT_VIDEO_NO_LIBRARY,
} safelight_video_status;

typedef struct {
    int side;        /* the longest side in pixels */
    int64_t pixels;  /* the most pixels of a frame */
    int streams;     /* the most tracks */
    int64_t packets; /* the most packets read for one frame */
    int64_t bytes;   /* the most bytes read for one frame */
    double seconds;  /* the most seconds spent on opening, and on each frame */
    double total;    /* the most seconds from opening to closing in which anything is read */
} safelight_video_limits;

typedef struct {
    int id;              /* in the container */
    int kind;            /* 0 video, 1 audio, 2 subtitles or text, 3 anything else */
    const char *codec;   /* FFmpeg's name of the codec; "unknown" if it has none */
    const char *profile; /* null if unknown */
    char tag[8];         /* the four characters of the container; empty if there are none */
    int level;
    int is_picture; /* true for a cover, not a video */
    int64_t bit_rate;
    int64_t start, duration;
    int width, height; /* coded pixels */
    int bits;          /* of a sample of video */
    int sample_rate, channels;
    double frame_rate;
    int64_t frames;
    const char *language;
} safelight_video_track;

typedef struct {
    int track; /* the video track that is shown */
    int64_t duration;
    int width, height;   /* pixels as stored */
    int display_width;   /* with the sample aspect ratio, before rotation */
    int display_height;
    int orientation;     /* EXIF orientation 1...8 of the stored pixels */
    double rotation;     /* degrees clockwise */
    double frame_rate;
    const char *primaries, *transfer, *matrix, *range; /* FFmpeg's names; "unknown" */
    int is_hdr;
    double peak;         /* cd/m2 of the brightest pixel that the file announces; 0 if it does not */
    int dolby_vision;    /* its profile; 0 if it has none */
    int track_count;
} safelight_video_info;

/* Opens the video in size bytes from offset of a descriptor, which has to stay open. With is_thorough, frames are examined
   until the properties of all tracks are known.
   demuxer: "mov", "matroska", "avi", "mpegts" or "mpeg". */
safelight_video *safelight_video_open(int descriptor, int64_t offset, int64_t size, const char *demuxer,
                                      const safelight_video_limits *limits, int is_thorough,
                                      safelight_video_status *status);
void safelight_video_close(safelight_video *video);

const safelight_video_info *safelight_video_get_info(const safelight_video *video);
void safelight_video_get_track(const safelight_video *video, int index, safelight_video_track *track);

/* Returns the index of the sound track that players choose; negative if there is none. */
int safelight_video_sound(const safelight_video *video);

/* Returns the next tag of the container (track < 0) or of a track; null after the last. */
const char *safelight_video_tag(const safelight_video *video, int track, int index, const char **value);

typedef struct {
    uint8_t *pixels; /* 3 * width bytes per row: red, green, blue, sRGB */
    int64_t time;    /* of the frame */
    int is_key;
} safelight_video_frame;

/* Decodes the first frame at or after a time, or up to tolerance before it if that is a key frame; the last one if there is
   none after it. A negative time is the first frame that is not nearly one colour, of those in the first `search`
   microseconds; the one with the most contrast if each is. The pixels are scaled to the size, before rotation, and must be freed with
   safelight_video_free. */
safelight_video_status safelight_video_decode(safelight_video *video, int64_t time, int64_t tolerance, int64_t search,
                                              int width, int height, safelight_video_frame *frame);
void safelight_video_free(uint8_t *pixels);

/* The points of a table of colours on each axis: one for every fourth sample of 8 bits. */
#define SAFELIGHT_VIDEO_TABLE_POINTS 65

/* Sets the colours at all points of a table, in sRGB: red, green and blue of 16 bits. Of the axes luma changes fastest.
   matrix: FFmpeg's name, of limited range. */
void safelight_video_table_points(const char *matrix, uint16_t *colours);
/* Fills a table of 4 numbers a point from changed colours. */
void safelight_video_table_fill(const char *matrix, const uint16_t *colours, int16_t *table);

typedef struct {
    const uint8_t *pixels; /* red, green, blue, opacity */
    int x, y, width, height;
} safelight_video_picture;

typedef struct {
    /* Filters of libavfilter from "in" to "out", and from "table" if there is one; null to copy the video track. */
    const char *filters;
    /* Filters of sound from "in" to "out"; null to copy it if the container can hold it. */
    const char *sound_filters;
    int is_silent;    /* leaves sound out */
    int is_quicktime; /* QuickTime instead of MPEG-4 */
    int is_hevc;      /* HEVC instead of H.264 */
    const char *speed; /* the encoder's preset */
    int quality;      /* the encoder's constant rate factor */
    const char *matrix, *primaries, *transfer; /* FFmpeg's names of the colours of the output */
    int64_t start, end; /* the part of the video; a negative end is the end of the video */
    const uint16_t *table; /* a Hald image of table_side squared pixels: red, green, blue */
    int table_side;
    const int16_t *colours;           /* a table for the filtered frames, which must be 8 bits and 4:2:0; or null */
    safelight_video_picture overlay;  /* drawn over the frames, which must be 8 bits and 4:2:0; no pixels for none */
    int threads;
    double seconds;     /* the most seconds of the work */
    int64_t most_bytes; /* the largest output */
    /* Writes bytes of the output at a position; returns 0, or another value to stop. */
    int (*write)(void *sink, int64_t position, const uint8_t *bytes, size_t count);
    /* Called with the time up to which the output is written, at most every 100 ms of it; returns 0, or another value
       to stop. */
    int (*progress)(void *sink, int64_t time);
    void *sink;
} safelight_video_export_options;

/* Returns true if the video track can be copied into an MPEG-4 or QuickTime file. */
int safelight_video_can_copy(const safelight_video *video, int is_quicktime);

/* Writes an MPEG-4 or QuickTime file with the video track, the first or default sound track, and the tags of a video
   that was opened with is_thorough. */
safelight_video_status safelight_video_export(safelight_video *video, const safelight_video_export_options *options,
                                              int64_t *bytes);

/* Loads FFmpeg's libraries unless they are loaded; returns 0 if that fails. safelight_video_open calls it. */
int safelight_video_load(void);

/* Returns the versions as text, that of libavformat first: "59.27.100 (libavcodec 59.37.100, ...)". */
const char *safelight_video_versions(void);
#endif
