#include "CPixels.h"
#include "VideoFile.h"

#include <libavutil/imgutils.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The maximum number of damaged packets and frames that are skipped. */
#define MAX_ERRORS 100

static AVStream *video_stream(const safelight_video *video) { return video->context->streams[video->info.track]; }

// MARK: - The decoder

const AVCodec *safelight_video_decoder_for(enum AVCodecID id) {
    const AVCodec *codec = NULL;
    void *state = NULL;
    while ((codec = av_codec_iterate(&state))) {
        if (codec->id != id || !av_codec_is_decoder(codec)) continue;
        const char *match = safelight_video_decoders();
        size_t length = strlen(codec->name);
        while ((match = strstr(match, codec->name))) {
            int is_start = match == safelight_video_decoders() || match[-1] == ',';
            if (is_start && (match[length] == ',' || !match[length])) return codec;
            match += length;
        }
    }
    return NULL;
}

static safelight_video_status open_decoder(safelight_video *video) {
    const AVStream *stream = video_stream(video);
    const AVCodec *codec = safelight_video_decoder_for(stream->codecpar->codec_id);
    if (!codec) return SAFELIGHT_VIDEO_CODEC;
    video->decoder = avcodec_alloc_context3(codec);
    video->packet = av_packet_alloc();
    video->frame = av_frame_alloc();
    if (!video->decoder || !video->packet || !video->frame) return SAFELIGHT_VIDEO_NO_MEMORY;
    if (avcodec_parameters_to_context(video->decoder, stream->codecpar) < 0) return SAFELIGHT_VIDEO_UNREADABLE;
    video->decoder->pkt_timebase = stream->time_base;
    /* Parallel work is divided among worker processes, not threads. */
    video->decoder->thread_count = 1;
    video->decoder->max_pixels = video->limits.pixels;
    if (avcodec_open2(video->decoder, codec, NULL) < 0) return SAFELIGHT_VIDEO_UNREADABLE;
    return SAFELIGHT_VIDEO_OK;
}

void safelight_video_end_decoding(safelight_video *video) {
    avcodec_free_context(&video->decoder);
    av_packet_free(&video->packet);
    av_frame_free(&video->frame);
}

static safelight_video_status begin_decoding(safelight_video *video) {
    if (video->decoder) return SAFELIGHT_VIDEO_OK;
    safelight_video_status status = open_decoder(video);
    /* A decoder that is not open is freed: the next call would flush it, which crashes. */
    if (status != SAFELIGHT_VIDEO_OK) safelight_video_end_decoding(video);
    return status;
}

/* The maximum number of audio packets that are read before the first video packet. */
#define MAX_AUDIO_PACKETS 1000

static void set_audio_discard(AVFormatContext *context, enum AVDiscard discard) {
    for (unsigned i = 0; i < context->nb_streams; i++) {
        if (context->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO) context->streams[i]->discard = discard;
    }
}

/* Finds the start of the video in the first packets if the header does not declare it: a recorded live stream may begin
   at any timestamp. A start within the first second is ignored: it is the delay of frames that are reordered for
   display. */
static void find_start(safelight_video *video) {
    if (video->is_start_known) return;
    video->is_start_known = 1;
    AVFormatContext *context = video->context;
    int64_t first = INT64_MAX;
    /* Audio may start before the video. */
    set_audio_discard(context, AVDISCARD_DEFAULT);
    for (int i = 0; i < MAX_AUDIO_PACKETS && !video->is_pending && av_read_frame(context, video->packet) >= 0; i++) {
        const AVStream *stream = context->streams[video->packet->stream_index];
        int64_t timestamp = video->packet->pts != AV_NOPTS_VALUE ? video->packet->pts : video->packet->dts;
        if (timestamp != AV_NOPTS_VALUE)
            first = FFMIN(first, av_rescale_q(timestamp, stream->time_base, AV_TIME_BASE_Q));
        video->is_pending = stream->index == video->info.track;
        if (!video->is_pending) av_packet_unref(video->packet);
    }
    set_audio_discard(context, AVDISCARD_ALL);
    if (first > AV_TIME_BASE && first <= SAFELIGHT_VIDEO_MAX_TIME) video->start = first;
}

// MARK: - Decoding

typedef struct {
    int64_t packets;
    int errors;
    /* The timestamp before which frames are decoded only as references; AV_NOPTS_VALUE to decode all frames. */
    int64_t requested;
    /* The last timestamp before `requested`. Its frame may have been skipped. */
    int64_t last_early;
} progress;

/* Decodes the next frame into video->frame; SAFELIGHT_VIDEO_NO_FRAME at the end. */
static safelight_video_status next(safelight_video *video, progress *progress) {
    for (;;) {
        int result = avcodec_receive_frame(video->decoder, video->frame);
        if (result == 0) {
            if (video->frame->best_effort_timestamp != AV_NOPTS_VALUE) {
                video->last_timestamp = video->frame->best_effort_timestamp;
            } else {
                video->last_timestamp = video->last_timestamp == AV_NOPTS_VALUE ? 0 : video->last_timestamp + 1;
            }
            return SAFELIGHT_VIDEO_OK;
        }
        if (video->is_limit_reached) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        if (result == AVERROR_EOF) return SAFELIGHT_VIDEO_NO_FRAME;
        if (result != AVERROR(EAGAIN) && ++progress->errors > MAX_ERRORS) return SAFELIGHT_VIDEO_NO_FRAME;
        if (video->is_flushing && result != AVERROR(EAGAIN)) continue;
        if (video->is_flushing) return SAFELIGHT_VIDEO_NO_FRAME;
        if (progress->packets++ >= video->limits.packets || safelight_video_now() > video->deadline)
            return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        video->is_begun = 1;
        result = video->is_pending ? 0 : av_read_frame(video->context, video->packet);
        video->is_pending = 0;
        if (video->is_limit_reached) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        if (result < 0) {
            if (result != AVERROR_EOF && ++progress->errors <= MAX_ERRORS && !avio_feof(video->io)) continue;
            video->is_flushing = 1;
            avcodec_send_packet(video->decoder, NULL);
            continue;
        }
        if (video->packet->stream_index == video->info.track) {
            int64_t time = video->packet->pts;
            int is_early =
                progress->requested != AV_NOPTS_VALUE && time != AV_NOPTS_VALUE && time < progress->requested;
            if (is_early) progress->last_early = FFMAX(progress->last_early, time);
            video->decoder->skip_frame = is_early ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
            result = avcodec_send_packet(video->decoder, video->packet);
            if (result == AVERROR(ENOMEM)) progress->errors = MAX_ERRORS;
            if (result < 0 && result != AVERROR(EAGAIN) && ++progress->errors > MAX_ERRORS) {
                av_packet_unref(video->packet);
                return SAFELIGHT_VIDEO_NO_FRAME;
            }
        }
        av_packet_unref(video->packet);
    }
}

static void flush_decoder(safelight_video *video) {
    avcodec_flush_buffers(video->decoder);
    video->is_flushing = 0;
    video->last_timestamp = AV_NOPTS_VALUE;
}

/* Converts a time to a timestamp. It is rounded up, and the times of frames are rounded down, so that a search for the
   reported time of a frame finds that frame. */
static int64_t to_timestamp(const safelight_video *video, int64_t time) {
    return av_rescale_q_rnd(time + video->start, AV_TIME_BASE_Q, video_stream(video)->time_base, AV_ROUND_UP);
}

static int64_t to_time(const safelight_video *video, int64_t timestamp) {
    return av_rescale_q_rnd(timestamp, video_stream(video)->time_base, AV_TIME_BASE_Q, AV_ROUND_DOWN) - video->start;
}

/* Returns true if decoding can continue to the frame, because no key frame is between the last frame and it. */
static int can_continue(const safelight_video *video, int64_t requested) {
    if (video->last_timestamp == AV_NOPTS_VALUE || video->last_timestamp >= requested || video->is_flushing) return 0;
    const AVIndexEntry *entry =
        avformat_index_get_entry_from_timestamp(video_stream(video), requested, AVSEEK_FLAG_BACKWARD);
    if (entry) return entry->timestamp <= video->last_timestamp;
    int64_t distance = requested - video->last_timestamp;
    return av_rescale_q(distance, video_stream(video)->time_base, AV_TIME_BASE_Q) < AV_TIME_BASE;
}

/* Seeks to the key frame at or before a time, else to the first one. */
static void seek_to(safelight_video *video, int64_t time) {
    AVFormatContext *context = video->context;
    flush_decoder(video);
    if (time <= 0 && !video->is_begun) return;
    if (video->is_pending) av_packet_unref(video->packet);
    video->is_pending = 0;
    /* MPEG transport streams have no index, and a seek by time would land after the first key frame. */
    if (time <= 0 && context->iformat->flags & AVFMT_TS_DISCONT &&
        av_seek_frame(context, -1, 0, AVSEEK_FLAG_BYTE) >= 0)
        return;
    if (av_seek_frame(context, video->info.track, to_timestamp(video, time), AVSEEK_FLAG_BACKWARD) < 0)
        avformat_seek_file(context, video->info.track, INT64_MIN, INT64_MIN + 1, INT64_MAX, 0);
}

/* Moves the first frame at or after a time, or the last frame, to `selected`. A key frame up to `tolerance` before the
   time is used instead. */
static safelight_video_status find(safelight_video *video, int64_t time, int64_t tolerance, AVFrame *selected,
                                   int64_t *timestamp) {
    int64_t requested = to_timestamp(video, time);
    int64_t earliest = to_timestamp(video, tolerance < time ? time - tolerance : 0);
    progress progress = {.requested = requested, .last_early = INT64_MIN};
    /* Key frames are found in decoding order, so the key frame may be displayed after the requested frame. Then the
       seek is repeated from an earlier time. */
    static const int64_t distances[] = {0, 1000000, 4000000, 15000000, INT64_MAX};
    const int last_attempt = sizeof distances / sizeof *distances - 1;
    int attempt = 0;
    int continues = can_continue(video, requested);
    for (;;) {
        if (!continues) seek_to(video, distances[attempt] < time ? time - distances[attempt] : 0);
        int is_first = 1, found = 0;
        safelight_video_status status;
        while ((status = next(video, &progress)) == SAFELIGHT_VIDEO_OK) {
            /* The second pass skips frames up to the one that the first pass found. */
            if (progress.requested == AV_NOPTS_VALUE && video->last_timestamp <= *timestamp) {
                is_first = 0;
                continue;
            }
            int is_too_late = is_first && !continues && video->last_timestamp > requested && attempt < last_attempt &&
                              distances[attempt] < time;
            is_first = 0;
            if (is_too_late) break;
            av_frame_unref(selected);
            av_frame_move_ref(selected, video->frame);
            *timestamp = video->last_timestamp;
            found = 1;
            if (video->last_timestamp >= requested || (selected->key_frame && video->last_timestamp >= earliest))
                return status;
        }
        if (status != SAFELIGHT_VIDEO_OK) {
            /* If the second pass finds no frame or reaches a limit, the frame of the first pass is used. */
            if (progress.requested == AV_NOPTS_VALUE) return SAFELIGHT_VIDEO_OK;
            if (status == SAFELIGHT_VIDEO_NO_FRAME && found) {
                if (*timestamp >= progress.last_early) return SAFELIGHT_VIDEO_OK;
                /* The last frame of the video was skipped. The second pass decodes all frames. */
                progress.requested = AV_NOPTS_VALUE;
                continues = 0;
                continue;
            }
            if (status != SAFELIGHT_VIDEO_NO_FRAME || attempt >= last_attempt || time == 0)
                return status;
        }
        continues = 0;
        attempt++;
        if (attempt > last_attempt) return SAFELIGHT_VIDEO_NO_FRAME;
    }
}

// MARK: - Pixels

/* Replaces the deprecated formats whose names imply the full range. */
static enum AVPixelFormat replace_deprecated(enum AVPixelFormat format, int *is_full) {
    switch (format) {
    case AV_PIX_FMT_YUVJ420P: *is_full = 1; return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P: *is_full = 1; return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P: *is_full = 1; return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P: *is_full = 1; return AV_PIX_FMT_YUV440P;
    default: return format;
    }
}

static int coefficients(enum AVColorSpace matrix, int height) {
    switch (matrix) {
    case AVCOL_SPC_BT709: return SWS_CS_ITU709;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL: return SWS_CS_BT2020;
    case AVCOL_SPC_SMPTE240M: return SWS_CS_SMPTE240M;
    case AVCOL_SPC_FCC: return SWS_CS_FCC;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: return SWS_CS_ITU601;
    default: return height >= 720 ? SWS_CS_ITU709 : SWS_CS_ITU601;
    }
}

/* A pixel is combed if it differs from both of its neighbours in the other field, in the same direction, by more 8-bit
   levels than this. */
#define MIN_COMBING 12
/* A frame is combed if more than one pixel in this many is. Cameras often declare progressive frames to be interlaced.
   */
#define COMBED_PIXELS 400

/* Returns true if motion is visible between the two fields of a frame, and each field has whole rows of chroma. */
static int is_combed(const AVFrame *frame, const AVPixFmtDescriptor *format) {
    if (!frame->interlaced_frame || frame->height < 16 || frame->height % 4 != 0) return 0;
    if (!format || format->log2_chroma_h > 1) return 0;
    if (format->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM)) return 0;
    const AVComponentDescriptor *luma = &format->comp[0];
    int step = frame->linesize[luma->plane], is_deep = luma->depth > 8;
    if (is_deep && format->flags & AV_PIX_FMT_FLAG_BE) return 0;
    int64_t combed = 0;
    for (int y = 1; y + 1 < frame->height; y++) {
        const uint8_t *row = frame->data[luma->plane] + (ptrdiff_t)y * step + luma->offset;
        for (int x = 0; x < frame->width; x++, row += luma->step) {
            int middle = row[0], above = row[-step], below = row[step];
            if (is_deep) {
                int shift = luma->depth - 8 + luma->shift;
                middle = (row[1] << 8 | middle) >> shift;
                above = (row[1 - step] << 8 | above) >> shift;
                below = (row[1 + step] << 8 | below) >> shift;
            }
            int up = middle - above, down = middle - below, difference = FFMIN(abs(up), abs(down));
            combed += (up > 0) == (down > 0) && difference > MIN_COMBING + abs(above - below);
        }
    }
    return combed > (int64_t)frame->width * frame->height / COMBED_PIXELS;
}

static int scale(const AVFrame *frame, uint8_t *pixels, enum AVPixelFormat output, int width, int height, int flags) {
    int is_full = frame->color_range == AVCOL_RANGE_JPEG;
    enum AVPixelFormat input = replace_deprecated(frame->format, &is_full);
    if (!sws_isSupportedInput(input)) return -1;
    /* If motion is visible between the fields, only the first is used, scaled to the size of the frame. */
    int is_field = is_combed(frame, av_pix_fmt_desc_get(input));
    int rows = frame->height >> is_field;
    const uint8_t *data[AV_NUM_DATA_POINTERS];
    int steps[AV_NUM_DATA_POINTERS];
    for (int i = 0; i < AV_NUM_DATA_POINTERS; i++) {
        int is_second = is_field && frame->data[i] && !frame->top_field_first;
        data[i] = is_second ? frame->data[i] + frame->linesize[i] : frame->data[i];
        steps[i] = frame->linesize[i] * (1 + is_field);
    }
    struct SwsContext *context =
        sws_getContext(frame->width, rows, input, width, height, output, flags, NULL, NULL, NULL);
    if (!context) return -1;
    const int *table = sws_getCoefficients(coefficients(frame->colorspace, frame->height));
    sws_setColorspaceDetails(context, table, is_full, table, 1, 0, 1 << 16, 1 << 16);
    int bytes = output == AV_PIX_FMT_RGB48LE ? 6 : 3;
    uint8_t *planes[4] = {pixels};
    int strides[4] = {width * bytes};
    int rows_written = sws_scale(context, data, steps, 0, rows, planes, strides);
    sws_freeContext(context);
    return rows_written == height ? 0 : -1;
}

/* The side of the reduced frame from which the contrast is computed. */
#define SAMPLE_SIDE 32

/* A frame with a smaller standard deviation is almost a single colour. */
#define MIN_CONTRAST 20

/* Returns the largest standard deviation of red, green and blue. */
static double contrast(const AVFrame *frame) {
    uint8_t pixels[SAMPLE_SIDE * SAMPLE_SIDE * 3 + 64];
    if (scale(frame, pixels, AV_PIX_FMT_RGB24, SAMPLE_SIDE, SAMPLE_SIDE, SWS_BILINEAR) != 0) return MIN_CONTRAST;
    double max_variance = 0;
    for (int c = 0; c < 3; c++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < SAMPLE_SIDE * SAMPLE_SIDE; i++) {
            double value = pixels[3 * i + c];
            sum += value;
            squares += value * value;
        }
        double mean = sum / (SAMPLE_SIDE * SAMPLE_SIDE);
        max_variance = fmax(max_variance, squares / (SAMPLE_SIDE * SAMPLE_SIDE) - mean * mean);
    }
    return sqrt(max_variance);
}

/* Moves the first frame within `search` microseconds that is not almost a single colour, or the one with the highest
   contrast, to `selected`. */
static safelight_video_status find_automatic(safelight_video *video, int64_t search, AVFrame *selected,
                                             int64_t *timestamp) {
    progress progress = {.requested = AV_NOPTS_VALUE};
    double best = -1;
    int is_fading = 0;
    safelight_video_status status;
    seek_to(video, 0);
    while ((status = next(video, &progress)) == SAFELIGHT_VIDEO_OK) {
        if (best >= 0 && to_time(video, video->last_timestamp) > search) break;
        double found = contrast(video->frame);
        /* After frames of a single colour the video may fade in. Then the frame after which the contrast stops growing
           is used. */
        if (best >= MIN_CONTRAST && found < best * 1.03) break;
        if (found < MIN_CONTRAST) is_fading = 1;
        /* Smaller differences are noise in a video of a single colour. */
        if (found < best + 1) continue;
        best = found;
        *timestamp = video->last_timestamp;
        av_frame_unref(selected);
        av_frame_move_ref(selected, video->frame);
        if (found >= MIN_CONTRAST && !is_fading) break;
    }
    return best >= 0 ? SAFELIGHT_VIDEO_OK : status;
}

/* Returns the number of the gamut for safelight_rgb_to_srgb. */
static int gamut_of(const AVFrame *frame, int is_hdr) {
    switch (frame->color_primaries) {
    case AVCOL_PRI_BT2020: return 1;
    case AVCOL_PRI_SMPTE432: return 2;
    case AVCOL_PRI_UNSPECIFIED: return is_hdr;
    default: return 0;
    }
}

static safelight_video_status convert_to_srgb(const safelight_video *video, AVFrame *frame, int width, int height,
                                              uint8_t *target) {
    const AVCodecParameters *codec = video_stream(video)->codecpar;
    /* If the codec's stream declares no values, those of the container are used. */
    if (frame->color_trc == AVCOL_TRC_UNSPECIFIED) frame->color_trc = codec->color_trc;
    if (frame->color_primaries == AVCOL_PRI_UNSPECIFIED) frame->color_primaries = codec->color_primaries;
    if (frame->colorspace == AVCOL_SPC_UNSPECIFIED) frame->colorspace = codec->color_space;
    if (frame->color_range == AVCOL_RANGE_UNSPECIFIED) frame->color_range = codec->color_range;
    int transfer = frame->color_trc == AVCOL_TRC_SMPTE2084 ? 1 : frame->color_trc == AVCOL_TRC_ARIB_STD_B67 ? 2 : 0;
    int gamut = gamut_of(frame, transfer > 0);
    int flags = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP;
    if (!transfer && !gamut)
        return scale(frame, target, AV_PIX_FMT_RGB24, width, height, flags) == 0 ? SAFELIGHT_VIDEO_OK
                                                                                 : SAFELIGHT_VIDEO_CODEC;
    size_t count = (size_t)width * (size_t)height;
    uint16_t *deep = malloc(6 * count + 64);
    if (!deep) return SAFELIGHT_VIDEO_NO_MEMORY;
    safelight_video_status status = SAFELIGHT_VIDEO_CODEC;
    if (scale(frame, (uint8_t *)deep, AV_PIX_FMT_RGB48LE, width, height, flags) == 0) {
        /* libswscale converts the 8-bit value 255 of YUV to 65280. */
        const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
        double white = format && format->flags & AV_PIX_FMT_FLAG_RGB ? 65535 : 65280;
        safelight_rgb_to_srgb(deep, target, count, transfer, gamut, white, video->info.peak);
        status = SAFELIGHT_VIDEO_OK;
    }
    free(deep);
    return status;
}

safelight_video_status safelight_video_decode(safelight_video *video, int64_t time, int64_t tolerance, int64_t search,
                                              int width, int height, safelight_video_frame *frame) {
    memset(frame, 0, sizeof *frame);
    safelight_video_begin_operation(video);
    if (time > SAFELIGHT_VIDEO_MAX_TIME) time = SAFELIGHT_VIDEO_MAX_TIME;
    /* The colours of this profile depend on metadata that FFmpeg does not apply. */
    if (video->info.dolby_vision == 5) return SAFELIGHT_VIDEO_CODEC;
    safelight_video_status status = begin_decoding(video);
    if (status != SAFELIGHT_VIDEO_OK) return status;
    find_start(video);
    AVFrame *selected = av_frame_alloc();
    if (!selected) return SAFELIGHT_VIDEO_NO_MEMORY;
    int64_t timestamp = 0;
    status = time < 0 ? find_automatic(video, search, selected, &timestamp)
                      : find(video, time, tolerance, selected, &timestamp);
    if (status == SAFELIGHT_VIDEO_OK) {
        /* libswscale may write a few bytes beyond a row. */
        frame->pixels = malloc((size_t)width * (size_t)height * 3 + 64);
        status = frame->pixels ? convert_to_srgb(video, selected, width, height, frame->pixels)
                               : SAFELIGHT_VIDEO_NO_MEMORY;
        frame->time = to_time(video, timestamp);
        frame->is_key = selected->key_frame;
    }
    av_frame_free(&selected);
    if (status != SAFELIGHT_VIDEO_OK) {
        free(frame->pixels);
        frame->pixels = NULL;
    }
    return status;
}

void safelight_video_free(uint8_t *pixels) { free(pixels); }
