#include "VideoFile.h"

#include <errno.h>
#include <libavutil/dovi_meta.h>
#include <libavutil/mastering_display_metadata.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The only decoders that are used, regardless of the codec that a file declares. */
static const char decoders[] =
    "h264,hevc,mpeg4,mpeg2video,mpeg1video,vp8,vp9,libdav1d,mjpeg,prores,dvvideo,h263,msmpeg4,msmpeg4v2,vc1,dnxhd,"
    "qtrle,rawvideo,svq1,svq3,cinepak,theora,ffv1,png,flv,wmv1,wmv2,"
    "aac,mp3float,mp3,mp2float,mp2,ac3,eac3,opus,vorbis,flac,alac,amrnb,amrwb,adpcm_ms,adpcm_ima_wav,"
    "pcm_s16le,pcm_s16be,pcm_u8,pcm_s24le,pcm_s24be,pcm_f32le,pcm_alaw,pcm_mulaw,pcm_bluray";

double safelight_video_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void safelight_video_begin_operation(safelight_video *video) {
    double now = safelight_video_now();
    video->deadline = fmin(now + video->limits.seconds, video->opened_at + video->limits.total_seconds);
    video->bytes = 0;
    video->is_limit_reached = 0;
}

// MARK: - Reading

/* Returns true if a limit of bytes or time was reached. */
static int check_limits(void *opaque) {
    safelight_video *video = opaque;
    if (video->bytes > video->limits.bytes || safelight_video_now() > video->deadline) video->is_limit_reached = 1;
    return video->is_limit_reached;
}

static int read_bytes(void *opaque, uint8_t *buffer, int count) {
    safelight_video *video = opaque;
    if (check_limits(video)) return AVERROR_EXIT;
    int64_t remaining = video->size - video->position;
    if (remaining <= 0) return AVERROR_EOF;
    ssize_t length;
    do {
        length = pread(video->descriptor, buffer, (size_t)(remaining < count ? remaining : count),
                       video->offset + video->position);
    } while (length < 0 && errno == EINTR);
    if (length < 0) return AVERROR(errno);
    if (length == 0) return AVERROR_EOF;
    video->position += length;
    video->bytes += length;
    return (int)length;
}

static int64_t seek(void *opaque, int64_t offset, int whence) {
    safelight_video *video = opaque;
    int64_t target;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return video->size;
    case SEEK_SET: target = offset; break;
    case SEEK_CUR: target = video->position + offset; break;
    case SEEK_END: target = video->size + offset; break;
    default: return AVERROR(EINVAL);
    }
    if (target < 0) return AVERROR(EINVAL);
    return video->position = target;
}

/* Refuses the other files that a file may refer to. */
static int refuse_to_open(AVFormatContext *context, AVIOContext **io, const char *url, int flags,
                          AVDictionary **options) {
    (void)context, (void)url, (void)flags, (void)options;
    *io = NULL;
    return AVERROR(EPERM);
}

static void *fail(safelight_video *video, safelight_video_status *status, safelight_video_status problem) {
    *status = video && video->is_limit_reached ? SAFELIGHT_VIDEO_TOO_MUCH_WORK : problem;
    safelight_video_close(video);
    return NULL;
}

// MARK: - Properties

/* Returns the quotient of a positive fraction, else 0. */
static double quotient(AVRational value) { return value.den > 0 && value.num > 0 ? av_q2d(value) : 0; }

/* Returns 0 if the rate is unknown. Without a count of frames, a rate of one frame per time base of a millisecond or
   less is only that time base. */
static double frame_rate(const AVStream *stream, AVRational declared) {
    double value = quotient(declared);
    int is_time_base = stream->nb_frames == 0 && value >= 1000 && value * quotient(stream->time_base) > 0.99;
    return is_time_base ? 0 : value;
}

/* Clamps a time of the file, so that sums do not overflow. */
static int64_t clamped(int64_t time) { return av_clip64(time, -SAFELIGHT_VIDEO_MAX_TIME, SAFELIGHT_VIDEO_MAX_TIME); }

static int64_t to_microseconds(int64_t time, AVRational base) {
    return time == AV_NOPTS_VALUE ? 0 : clamped(av_rescale_q(time, base, AV_TIME_BASE_Q));
}

/* Returns the EXIF orientation that is closest to a display matrix. */
static int orientation(const int32_t matrix[9]) {
    double a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
    if (a * d - b * c == 0) return 1;
    if (fabs(a) + fabs(d) >= fabs(b) + fabs(c)) return a > 0 ? (d > 0 ? 1 : 4) : (d > 0 ? 2 : 3);
    return b > 0 ? (c > 0 ? 5 : 6) : (c > 0 ? 8 : 7);
}

static void read_sizes(safelight_video *video, const AVStream *stream) {
    safelight_video_info *info = &video->info;
    const AVCodecParameters *codec = stream->codecpar;
    info->width = codec->width;
    info->height = codec->height;
    AVRational sample_aspect =
        stream->sample_aspect_ratio.num > 0 ? stream->sample_aspect_ratio : codec->sample_aspect_ratio;
    double aspect = quotient(sample_aspect);
    if (!(aspect > 0.05 && aspect < 20)) aspect = 1;
    /* As in players, the height is kept and the width changes. */
    double width = round(info->width * aspect);
    info->display_width = width < 1 ? 1 : width > 1000000 ? 1000000 : (int)width;
    info->display_height = info->height;
    info->orientation = 1;
    const uint8_t *matrix = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, NULL);
    if (!matrix) return;
    info->orientation = orientation((const int32_t *)matrix);
    double angle = -av_display_rotation_get((const int32_t *)matrix);
    info->rotation = isfinite(angle) ? fmod(angle + 360, 360) : 0;
}

static const char *name_or_unknown(const char *name) { return name ? name : "unknown"; }

static void read_colour(safelight_video *video, const AVStream *stream) {
    safelight_video_info *info = &video->info;
    const AVCodecParameters *codec = stream->codecpar;
    info->primaries = name_or_unknown(av_color_primaries_name(codec->color_primaries));
    info->transfer = name_or_unknown(av_color_transfer_name(codec->color_trc));
    info->matrix = name_or_unknown(av_color_space_name(codec->color_space));
    info->range = name_or_unknown(av_color_range_name(codec->color_range));
    info->is_hdr = codec->color_trc == AVCOL_TRC_SMPTE2084 || codec->color_trc == AVCOL_TRC_ARIB_STD_B67;
    size_t size = 0;
    const void *content_light = av_stream_get_side_data(stream, AV_PKT_DATA_CONTENT_LIGHT_LEVEL, &size);
    if (content_light && size >= sizeof(unsigned))
        info->peak = ((const AVContentLightMetadata *)content_light)->MaxCLL;
    const AVMasteringDisplayMetadata *display =
        (const void *)av_stream_get_side_data(stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, &size);
    if (info->peak <= 0 && display && display->has_luminance) info->peak = quotient(display->max_luminance);
    const AVDOVIDecoderConfigurationRecord *dolby_vision =
        (const void *)av_stream_get_side_data(stream, AV_PKT_DATA_DOVI_CONF, &size);
    if (dolby_vision) info->dolby_vision = dolby_vision->dv_profile;
}

static int is_video(const AVStream *stream) {
    return stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
           !(stream->disposition & (AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS));
}

/* Returns the default video stream, else the first; null if there is none. */
static const AVStream *choose_video_stream(const AVFormatContext *context) {
    const AVStream *first = NULL;
    for (unsigned i = 0; i < context->nb_streams; i++) {
        const AVStream *stream = context->streams[i];
        if (!is_video(stream)) continue;
        if (stream->disposition & AV_DISPOSITION_DEFAULT) return stream;
        if (!first) first = stream;
    }
    return first;
}

static safelight_video_status read_info(safelight_video *video) {
    const AVFormatContext *context = video->context;
    const AVStream *stream = choose_video_stream(context);
    if (!stream) return SAFELIGHT_VIDEO_NO_VIDEO_TRACK;
    safelight_video_info *info = &video->info;
    info->track = stream->index;
    info->track_count = (int)context->nb_streams;
    read_sizes(video, stream);
    read_colour(video, stream);
    info->frame_rate = frame_rate(stream, stream->avg_frame_rate);
    if (info->frame_rate <= 0) info->frame_rate = frame_rate(stream, stream->r_frame_rate);
    video->start = context->start_time != AV_NOPTS_VALUE ? clamped(context->start_time)
                                                         : to_microseconds(stream->start_time, stream->time_base);
    video->is_start_known = context->start_time != AV_NOPTS_VALUE || stream->start_time != AV_NOPTS_VALUE;
    info->duration = context->duration != AV_NOPTS_VALUE && context->duration > 0
                         ? clamped(context->duration)
                         : to_microseconds(stream->duration, stream->time_base);
    if (info->width <= 0 || info->height <= 0) return SAFELIGHT_VIDEO_UNREADABLE;
    const safelight_video_limits *limits = &video->limits;
    if (info->width > limits->side || info->height > limits->side || info->display_width > limits->side ||
        (int64_t)info->width * info->height > limits->pixels ||
        (int64_t)info->display_width * info->display_height > limits->pixels)
        return SAFELIGHT_VIDEO_TOO_LARGE;
    return SAFELIGHT_VIDEO_OK;
}

const safelight_video_info *safelight_video_get_info(const safelight_video *video) { return &video->info; }

void safelight_video_get_track(const safelight_video *video, int index, safelight_video_track *track) {
    memset(track, 0, sizeof *track);
    if (index < 0 || index >= (int)video->context->nb_streams) return;
    const AVStream *stream = video->context->streams[index];
    const AVCodecParameters *codec = stream->codecpar;
    track->id = stream->id;
    switch (codec->codec_type) {
    case AVMEDIA_TYPE_VIDEO: track->kind = 0; break;
    case AVMEDIA_TYPE_AUDIO: track->kind = 1; break;
    case AVMEDIA_TYPE_SUBTITLE: track->kind = 2; break;
    default: track->kind = 3;
    }
    const AVCodecDescriptor *descriptor = avcodec_descriptor_get(codec->codec_id);
    track->codec = descriptor ? descriptor->name : "unknown";
    track->profile = avcodec_profile_name(codec->codec_id, codec->profile);
    for (int i = 0; i < 4; i++) {
        char letter = (char)(codec->codec_tag >> (8 * i) & 0xFF);
        track->tag[i] = letter >= 32 && letter < 127 ? letter : 0;
    }
    track->level = codec->level;
    track->is_picture = track->kind == 0 && !is_video(stream);
    track->bit_rate = codec->bit_rate;
    if (stream->start_time != AV_NOPTS_VALUE)
        track->start = to_microseconds(stream->start_time, stream->time_base) - video->start;
    track->duration = to_microseconds(stream->duration, stream->time_base);
    track->width = codec->width;
    track->height = codec->height;
    const AVPixFmtDescriptor *format = track->kind == 0 ? av_pix_fmt_desc_get(codec->format) : NULL;
    track->bits = format ? format->comp[0].depth : codec->bits_per_raw_sample;
    track->sample_rate = codec->sample_rate;
    track->channels = codec->ch_layout.nb_channels;
    track->frame_rate = frame_rate(stream, stream->avg_frame_rate);
    track->frames = stream->nb_frames;
    const AVDictionaryEntry *language = av_dict_get(stream->metadata, "language", NULL, 0);
    track->language = language ? language->value : NULL;
}

int safelight_video_audio_track(const safelight_video *video) {
    return av_find_best_stream(video->context, AVMEDIA_TYPE_AUDIO, -1, -1, NULL, 0);
}

const char *safelight_video_tag(const safelight_video *video, int track, int index, const char **value) {
    const AVFormatContext *context = video->context;
    if (track >= (int)context->nb_streams) return NULL;
    const AVDictionary *tags = track < 0 ? context->metadata : context->streams[track]->metadata;
    const AVDictionaryEntry *entry = NULL;
    for (int i = 0; i <= index; i++) {
        if (!(entry = av_dict_get(tags, "", entry, AV_DICT_IGNORE_SUFFIX))) return NULL;
    }
    *value = entry->value;
    return entry->key;
}

// MARK: - Opening

static AVFormatContext *make_context(safelight_video *video) {
    AVFormatContext *context = avformat_alloc_context();
    uint8_t *buffer = av_malloc(SAFELIGHT_VIDEO_BUFFER);
    AVIOContext *io =
        buffer ? avio_alloc_context(buffer, SAFELIGHT_VIDEO_BUFFER, 0, video, read_bytes, NULL, seek) : NULL;
    if (!context || !io) {
        if (!io) av_free(buffer);
        avio_context_free(&io);
        avformat_free_context(context);
        return NULL;
    }
    video->io = io;
    context->pb = io;
    context->flags |= AVFMT_FLAG_CUSTOM_IO;
    context->io_open = refuse_to_open;
    context->interrupt_callback = (AVIOInterruptCB){.callback = check_limits, .opaque = video};
    context->max_streams = video->limits.streams;
    context->probesize = 5 << 20;
    context->max_analyze_duration = 5 * AV_TIME_BASE;
    context->protocol_whitelist = av_strdup("none");
    context->codec_whitelist = av_strdup(decoders);
    return context;
}

safelight_video *safelight_video_open(int descriptor, int64_t offset, int64_t size, const char *demuxer,
                                      const safelight_video_limits *limits, int is_thorough,
                                      safelight_video_status *status) {
    if (!safelight_video_load()) return fail(NULL, status, SAFELIGHT_VIDEO_NO_LIBRARY);
    av_log_set_level(AV_LOG_QUIET);
    safelight_video *video = calloc(1, sizeof *video);
    if (!video) return fail(NULL, status, SAFELIGHT_VIDEO_NO_MEMORY);
    video->descriptor = descriptor;
    video->offset = offset;
    video->size = size;
    video->limits = *limits;
    video->last_timestamp = AV_NOPTS_VALUE;
    video->opened_at = safelight_video_now();
    safelight_video_begin_operation(video);
    const AVInputFormat *format = av_find_input_format(demuxer);
    AVFormatContext *context = format ? make_context(video) : NULL;
    if (!context) return fail(video, status, SAFELIGHT_VIDEO_NO_MEMORY);
    video->context = context;
    /* On failure the context is freed. */
    if (avformat_open_input(&video->context, "", format, NULL) < 0)
        return fail(video, status, SAFELIGHT_VIDEO_UNREADABLE);
    /* The headers of these containers describe the tracks. */
    const AVStream *stream = choose_video_stream(video->context);
    int has_descriptions =
        stream && stream->codecpar->width > 0 && (!strcmp(demuxer, "mov") || !strcmp(demuxer, "matroska"));
    if ((is_thorough || !has_descriptions) && avformat_find_stream_info(video->context, NULL) < 0)
        return fail(video, status, SAFELIGHT_VIDEO_UNREADABLE);
    *status = read_info(video);
    if (*status != SAFELIGHT_VIDEO_OK) return fail(video, status, *status);
    for (unsigned i = 0; i < video->context->nb_streams; i++) {
        if ((int)i != video->info.track) video->context->streams[i]->discard = AVDISCARD_ALL;
    }
    return video;
}

void safelight_video_close(safelight_video *video) {
    if (!video) return;
    safelight_video_end_decoding(video);
    avformat_close_input(&video->context);
    if (video->io) av_freep(&video->io->buffer);
    avio_context_free(&video->io);
    free(video);
}

const char *safelight_video_decoders(void) { return decoders; }

const char *safelight_video_versions(void) {
    static char text[160];
    if (!safelight_video_load()) return "not installed";
    unsigned f = avformat_version(), c = avcodec_version(), s = swscale_version(), u = avutil_version();
    snprintf(text, sizeof text, "%u.%u.%u (libavcodec %u.%u.%u, libswscale %u.%u.%u, libavutil %u.%u.%u)",
             f >> 16, f >> 8 & 255, f & 255, c >> 16, c >> 8 & 255, c & 255, s >> 16, s >> 8 & 255, s & 255, u >> 16,
             u >> 8 & 255, u & 255);
    return text;
}
