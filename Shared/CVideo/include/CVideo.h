#ifndef SAFELIGHT_CVIDEO_H
#define SAFELIGHT_CVIDEO_H
/* An interface to FFmpeg's libraries without their types. It reads the properties of a video file, decodes single
   frames to RGB, and exports a video to a new file. A file is read through a descriptor that the caller opened; no
   other file is opened, and nothing is printed. All times are microseconds from the first presentation time of the
   file. */
#include <stddef.h>
#include <stdint.h>

typedef struct safelight_video safelight_video;

typedef enum {
    SAFELIGHT_VIDEO_OK = 0,
    /* The container is damaged or truncated, or the demuxer is for another kind. */
    SAFELIGHT_VIDEO_UNREADABLE,
    SAFELIGHT_VIDEO_NO_VIDEO_TRACK,
    /* The codec is not on the list of those that are decoded. */
    SAFELIGHT_VIDEO_CODEC,
    SAFELIGHT_VIDEO_TOO_LARGE,
    SAFELIGHT_VIDEO_TOO_MUCH_WORK,
    /* No frame could be decoded. */
    SAFELIGHT_VIDEO_NO_FRAME,
    /* No frame starts in the exported part. */
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
    /* The maximum values. */
    int side;             /* the longer side in pixels */
    int64_t pixels;       /* the pixels of a frame */
    int streams;          /* the number of tracks */
    int64_t packets;      /* the packets read for one frame */
    int64_t bytes;        /* the bytes read for one frame */
    double seconds;       /* the seconds spent on opening, and on each frame */
    double total_seconds; /* the seconds from opening to the last read */
} safelight_video_limits;

typedef struct {
    int id;              /* the identifier in the container */
    int kind;            /* 0 video, 1 audio, 2 subtitles or text, 3 anything else */
    const char *codec;   /* FFmpeg's name of the codec; "unknown" if it has none */
    const char *profile; /* the profile of the codec; null if unknown */
    char tag[8];         /* the codec's FourCC in the container; empty if it has none */
    int level;
    int is_picture; /* true for a still image, such as a cover */
    int64_t bit_rate;
    int64_t start, duration;
    int width, height; /* pixels as stored; 0 if not video */
    int bits;          /* bits per sample; 0 if unknown */
    int sample_rate, channels;
    double frame_rate;
    int64_t frames; /* by the index of the container; 0 if unknown */
    const char *language;
} safelight_video_track;

typedef struct {
    int track; /* the index of the displayed video track */
    int64_t duration;
    int width, height;   /* pixels as stored */
    int display_width;   /* pixels with the sample aspect ratio, before rotation */
    int display_height;
    int orientation;     /* the EXIF orientation, 1...8, of the stored pixels */
    double rotation;     /* degrees clockwise by which the stored frames are rotated to be upright */
    double frame_rate;
    const char *primaries, *transfer, *matrix, *range; /* FFmpeg's names, or "unknown" */
    int is_hdr;
    double peak;         /* the maximum luminance that the file declares, in cd/m2; 0 if it declares none */
    int dolby_vision;    /* the profile of Dolby Vision; 0 if the file has none */
    int track_count;
} safelight_video_info;

/* Opens the video in the `size` bytes at `offset` of a file. The descriptor must stay open until the video is closed.
   With is_thorough, frames are examined until the properties of all tracks are known. demuxer: "mov", "matroska",
   "avi", "mpegts" or "mpeg". */
safelight_video *safelight_video_open(int descriptor, int64_t offset, int64_t size, const char *demuxer,
                                      const safelight_video_limits *limits, int is_thorough,
                                      safelight_video_status *status);
void safelight_video_close(safelight_video *video);

const safelight_video_info *safelight_video_get_info(const safelight_video *video);
void safelight_video_get_track(const safelight_video *video, int index, safelight_video_track *track);

/* Returns the index of the audio track that players choose; negative if there is none. */
int safelight_video_audio_track(const safelight_video *video);

/* Returns the name of a tag of the container (track < 0) or of a track, and sets its value; null if the index is beyond
   the last tag. */
const char *safelight_video_tag(const safelight_video *video, int track, int index, const char **value);

typedef struct {
    uint8_t *pixels; /* 3 * width bytes per row: red, green, blue, sRGB */
    int64_t time;    /* the start of the frame */
    int is_key;      /* true for a key frame */
} safelight_video_frame;

/* Decodes the first frame at or after `time`, or the last frame if there is none. A key frame up to `tolerance` before
   the time is used instead. If the time is negative, decodes the first frame within `search` microseconds that is not
   almost a single colour, or the one with the highest contrast if each of them is. The pixels are scaled to the size,
   not rotated, and must be freed with safelight_video_free. */
safelight_video_status safelight_video_decode(safelight_video *video, int64_t time, int64_t tolerance, int64_t search,
                                              int width, int height, safelight_video_frame *frame);
void safelight_video_free(uint8_t *pixels);

/* The points on each axis of a table over Y, U and V: one for every fourth 8-bit level. */
#define SAFELIGHT_VIDEO_TABLE_POINTS 65

/* Sets the colours at all points of a table, in sRGB: red, green and blue, 16 bits each. Y varies fastest, then U.
   matrix: FFmpeg's name of the YUV matrix; the range is limited. */
void safelight_video_table_points(const char *matrix, uint16_t *colours);
/* Fills a table with Y, U, V and 0 for each point, from the colours to which the points are mapped. */
void safelight_video_table_fill(const char *matrix, const uint16_t *colours, int16_t *table);

typedef struct {
    const uint8_t *pixels; /* rows of red, green, blue and alpha */
    int x, y, width, height;
} safelight_video_overlay;

typedef struct {
    /* A filter graph of libavfilter from "in" to "out", also with the input "table" if there is a Hald CLUT; null to
       copy the video track. */
    const char *filters;
    /* A filter graph for audio from "in" to "out"; null to copy the audio if the container supports its codec. */
    const char *audio_filters;
    int is_silent;    /* true to leave out the audio */
    int is_quicktime; /* true for QuickTime, false for MPEG-4 */
    int is_hevc;      /* true for HEVC, false for H.264 */
    const char *preset; /* the encoder's preset */
    int quality;      /* the encoder's constant rate factor */
    const char *matrix, *primaries, *transfer; /* FFmpeg's names for the output */
    int64_t start, end; /* the exported part; a negative end is the end of the video */
    const uint16_t *hald_clut; /* a square image of hald_side rows: red, green, blue */
    int hald_side;
    const int16_t *yuv_table;         /* recolours the filtered frames, which must be 8-bit 4:2:0; or null */
    safelight_video_overlay overlay;  /* drawn over the frames, which must be 8-bit 4:2:0; null pixels for none */
    int threads;
    double seconds;    /* the time limit */
    int64_t max_bytes; /* the maximum size of the output */
    /* Writes bytes of the output at a position; returns 0, or another value to stop. */
    int (*write)(void *sink, int64_t position, const uint8_t *bytes, size_t count);
    /* Called with the time in the exported part of a packet that was read, at most once per 100 ms of it; returns 0, or
       another value to stop. */
    int (*progress)(void *sink, int64_t time);
    void *sink;
} safelight_video_export_options;

/* Returns true if the video track can be copied into an MPEG-4 or QuickTime file. */
int safelight_video_can_copy(const safelight_video *video, int is_quicktime);

/* Writes an MPEG-4 or QuickTime file with the video track, the audio track that players choose, and the tags of a
   video that was opened with is_thorough. */
safelight_video_status safelight_video_export(safelight_video *video, const safelight_video_export_options *options,
                                              int64_t *bytes);

/* Loads FFmpeg's libraries if they are not loaded yet; returns 0 if that fails. safelight_video_open calls it. */
int safelight_video_load(void);

/* Returns the versions of the libraries, that of libavformat first: "59.27.100 (libavcodec 59.37.100, ...)". */
const char *safelight_video_versions(void);
#endif
