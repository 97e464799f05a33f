#include "CPixels.h"
#include "VideoFile.h"

#include <libavutil/imgutils.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ERRORS 100

static AVStream *shown(const safelight_video *video) { return video->context->streams[video->info.track]; }

// MARK: - The decoder

const AVCodec *safelight_video_decoder_for(enum AVCodecID id) {
    const AVCodec *codec = NULL;
    void *state = NULL;
    while ((codec = av_codec_iterate(&state))) {
        if (codec->id != id || !av_codec_is_decoder(codec)) continue;
        const char *place = safelight_video_decoders();
        size_t length = strlen(codec->name);
        while ((place = strstr(place, codec->name))) {
            int begins = place == safelight_video_decoders() || place[-1] == ',';
            if (begins && (place[length] == ',' || !place[length])) return codec;
            place += length;
        }
    }
    return NULL;
}

static safelight_video_status open_decoder(safelight_video *video) {
    const AVStream *stream = shown(video);
    const AVCodec *codec = safelight_video_decoder_for(stream->codecpar->codec_id);
    if (!codec) return SAFELIGHT_VIDEO_CODEC;
    video->decoder = avcodec_alloc_context3(codec);
    video->packet = av_packet_alloc();
    video->frame = av_frame_alloc();
    if (!video->decoder || !video->packet || !video->frame) return SAFELIGHT_VIDEO_NO_MEMORY;
    if (avcodec_parameters_to_context(video->decoder, stream->codecpar) < 0) return SAFELIGHT_VIDEO_UNREADABLE;
    video->decoder->pkt_timebase = stream->time_base;
    /* The pool of workers decides about parallelism. */
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
    /* The next frame must not find a decoder that is not open: even emptying it would crash. */
    if (status != SAFELIGHT_VIDEO_OK) safelight_video_end_decoding(video);
    return status;
}

/* The maximum number of sound packets before the first frame. */
#define MOST_SOUND 1000

static void discard_sound(AVFormatContext *context, enum AVDiscard discard) {
    for (unsigned i = 0; i < context->nb_streams; i++) {
        if (context->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO) context->streams[i]->discard = discard;
    }
}

/* Finds the first moment by the first packets, if the header does not say it: streams that were saved while they were sent
   may begin at any time. Less than a second is the delay of frames that are shown in another order. */
static void find_start(safelight_video *video) {
    if (video->knows_start) return;
    video->knows_start = 1;
    AVFormatContext *context = video->context;
    int64_t first = INT64_MAX;
    /* Sound may start before the video. */
    discard_sound(context, AVDISCARD_DEFAULT);
    for (int i = 0; i < MOST_SOUND && !video->is_pending && av_read_frame(context, video->packet) >= 0; i++) {
        const AVStream *stream = context->streams[video->packet->stream_index];
        int64_t stamp = video->packet->pts != AV_NOPTS_VALUE ? video->packet->pts : video->packet->dts;
        if (stamp != AV_NOPTS_VALUE) first = FFMIN(first, av_rescale_q(stamp, stream->time_base, AV_TIME_BASE_Q));
        video->is_pending = stream->index == video->info.track;
        if (!video->is_pending) av_packet_unref(video->packet);
    }
    discard_sound(context, AVDISCARD_ALL);
    if (first > AV_TIME_BASE && first <= SAFELIGHT_VIDEO_LONGEST) video->start = first;
}

// MARK: - Decoding

typedef struct {
    int64_t packets;
    int errors;
    int64_t wanted; /* frames before it are needed only as references */
    int64_t newest; /* the last of those frames, which may have been left out */
} progress;

/* Decodes the next frame into video->frame; SAFELIGHT_VIDEO_NO_FRAME at the end. */
static safelight_video_status next(safelight_video *video, progress *progress) {
    for (;;) {
        int result = avcodec_receive_frame(video->decoder, video->frame);
        if (result == 0) {
            if (video->frame->best_effort_timestamp != AV_NOPTS_VALUE) {
                video->last = video->frame->best_effort_timestamp;
            } else {
                video->last = video->last == AV_NOPTS_VALUE ? 0 : video->last + 1;
            }
            return SAFELIGHT_VIDEO_OK;
        }
        if (video->exhausted) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        if (result == AVERROR_EOF) return SAFELIGHT_VIDEO_NO_FRAME;
        if (result != AVERROR(EAGAIN) && ++progress->errors > MOST_ERRORS) return SAFELIGHT_VIDEO_NO_FRAME;
        if (video->is_flushing && result != AVERROR(EAGAIN)) continue;
        if (video->is_flushing) return SAFELIGHT_VIDEO_NO_FRAME;
        if (progress->packets++ >= video->limits.packets || safelight_video_now() > video->deadline)
            return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        video->is_begun = 1;
        result = video->is_pending ? 0 : av_read_frame(video->context, video->packet);
        video->is_pending = 0;
        if (video->exhausted) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        if (result < 0) {
            if (result != AVERROR_EOF && ++progress->errors <= MOST_ERRORS && !avio_feof(video->io)) continue;
            video->is_flushing = 1;
            avcodec_send_packet(video->decoder, NULL);
            continue;
        }
        if (video->packet->stream_index == video->info.track) {
            int64_t time = video->packet->pts;
            int is_early = progress->wanted != AV_NOPTS_VALUE && time != AV_NOPTS_VALUE && time < progress->wanted;
            if (is_early) progress->newest = FFMAX(progress->newest, time);
            video->decoder->skip_frame = is_early ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
            result = avcodec_send_packet(video->decoder, video->packet);
            if (result == AVERROR(ENOMEM)) progress->errors = MOST_ERRORS;
            if (result < 0 && result != AVERROR(EAGAIN) && ++progress->errors > MOST_ERRORS) {
                av_packet_unref(video->packet);
                return SAFELIGHT_VIDEO_NO_FRAME;
            }
        }
        av_packet_unref(video->packet);
    }
}

static void restart(safelight_video *video) {
    avcodec_flush_buffers(video->decoder);
    video->is_flushing = 0;
    video->last = AV_NOPTS_VALUE;
}

/* Rounds up, while times of frames are rounded down, so that a search for the reported time of a frame finds the
   frame. */
static int64_t in_track(const safelight_video *video, int64_t time) {
    return av_rescale_q_rnd(time + video->start, AV_TIME_BASE_Q, shown(video)->time_base, AV_ROUND_UP);
}

static int64_t in_time(const safelight_video *video, int64_t stamp) {
    return av_rescale_q_rnd(stamp, shown(video)->time_base, AV_TIME_BASE_Q, AV_ROUND_DOWN) - video->start;
}

/* Returns true if no key frame is between the current position and the frame, so that decoding can continue. */
static int is_ahead(const safelight_video *video, int64_t wanted) {
    if (video->last == AV_NOPTS_VALUE || video->last >= wanted || video->is_flushing) return 0;
    const AVIndexEntry *entry = avformat_index_get_entry_from_timestamp(shown(video), wanted, AVSEEK_FLAG_BACKWARD);
    if (entry) return entry->timestamp <= video->last;
    return av_rescale_q(wanted - video->last, shown(video)->time_base, AV_TIME_BASE_Q) < AV_TIME_BASE;
}

/* Seeks to the key frame at or before a time, else to the first one. */
static void move_to(safelight_video *video, int64_t time) {
    AVFormatContext *context = video->context;
    restart(video);
    if (time <= 0 && !video->is_begun) return;
    if (video->is_pending) av_packet_unref(video->packet);
    video->is_pending = 0;
    /* Streams for broadcasting have no index: their times alone would lead behind the first key frame. */
    if (time <= 0 && context->iformat->flags & AVFMT_TS_DISCONT &&
        av_seek_frame(context, -1, 0, AVSEEK_FLAG_BYTE) >= 0)
        return;
    if (av_seek_frame(context, video->info.track, in_track(video, time), AVSEEK_FLAG_BACKWARD) < 0)
        avformat_seek_file(context, video->info.track, INT64_MIN, INT64_MIN + 1, INT64_MAX, 0);
}

/* Finds the first frame at or after a time, or the last one; it is in `kept`. */
static safelight_video_status find(safelight_video *video, int64_t time, int64_t tolerance, AVFrame *kept, int64_t *stamp) {
    int64_t wanted = in_track(video, time), earliest = in_track(video, tolerance < time ? time - tolerance : 0);
    progress progress = {.wanted = wanted, .newest = INT64_MIN};
    /* Key frames are found by decoding order: that frame may be shown only after the wanted one. */
    static const int64_t back[] = {0, 1000000, 4000000, 15000000, INT64_MAX};
    const int last_attempt = sizeof back / sizeof *back - 1;
    int attempt = 0;
    int goes_on = is_ahead(video, wanted);
    for (;;) {
        if (!goes_on) {
            int64_t from = back[attempt] < time ? time - back[attempt] : 0;
            move_to(video, from);
        }
        int is_first = 1, found = 0;
        safelight_video_status status;
        while ((status = next(video, &progress)) == SAFELIGHT_VIDEO_OK) {
            /* The second time, only frames behind the one that was found are wanted. */
            if (progress.wanted == AV_NOPTS_VALUE && video->last <= *stamp) {
                is_first = 0;
                continue;
            }
            int is_early = is_first && !goes_on && video->last > wanted && attempt < last_attempt && back[attempt] < time;
            is_first = 0;
            if (is_early) break;
            av_frame_unref(kept);
            av_frame_move_ref(kept, video->frame);
            *stamp = video->last;
            found = 1;
            if (video->last >= wanted || (kept->key_frame && video->last >= earliest)) return status;
        }
        if (status != SAFELIGHT_VIDEO_OK) {
            /* Also if the second time meets a limit: there is the frame of the first time. */
            if (progress.wanted == AV_NOPTS_VALUE) return SAFELIGHT_VIDEO_OK;
            if (status == SAFELIGHT_VIDEO_NO_FRAME && found) {
                if (*stamp >= progress.newest) return SAFELIGHT_VIDEO_OK;
                /* The last frame of the video was left out: once more, with all frames. */
                progress.wanted = AV_NOPTS_VALUE;
                goes_on = 0;
                continue;
            }
            if (status != SAFELIGHT_VIDEO_NO_FRAME || attempt >= last_attempt || time == 0)
                return status;
        }
        goes_on = 0;
        attempt++;
        if (attempt > last_attempt) return SAFELIGHT_VIDEO_NO_FRAME;
    }
}

// MARK: - Pixels

/* The deprecated formats, which have the full range by their name. */
static enum AVPixelFormat plain(enum AVPixelFormat format, int *is_full) {
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

/* The difference, in levels of 8 bits, by which a pixel of one field must be above or below both of its neighbours in
   the other field to count as combed. */
#define COMB 12
/* The fields of a frame show a movement if more than one in so many pixels is combed. Cameras often declare progressive
   frames to be interlaced. */
#define COMBED 400

/* Returns true if a frame shows a movement between its two fields, each of which has whole rows of chroma. */
static int is_combed(const AVFrame *frame, const AVPixFmtDescriptor *format) {
    if (!frame->interlaced_frame || frame->height < 16 || frame->height % 4 != 0) return 0;
    if (!format || format->log2_chroma_h > 1 || format->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM)) return 0;
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
            int up = middle - above, down = middle - below, least = FFMIN(abs(up), abs(down));
            combed += (up > 0) == (down > 0) && least > COMB + abs(above - below);
        }
    }
    return combed > (int64_t)frame->width * frame->height / COMBED;
}

static int scale(const AVFrame *frame, uint8_t *pixels, enum AVPixelFormat output, int width, int height, int flags) {
    int is_full = frame->color_range == AVCOL_RANGE_JPEG;
    enum AVPixelFormat input = plain(frame->format, &is_full);
    if (!sws_isSupportedInput(input)) return -1;
    /* Of two fields of different times the first is shown, in the size of the frame. */
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
    int made = sws_scale(context, data, steps, 0, rows, planes, strides);
    sws_freeContext(context);
    return made == height ? 0 : -1;
}

#define SAMPLE 32

/* The standard deviation from which a frame is not almost a single colour. */
#define CONTRAST 20

/* Returns the largest standard deviation of red, green and blue. */
static double contrast(const AVFrame *frame) {
    uint8_t pixels[SAMPLE * SAMPLE * 3 + 64];
    if (scale(frame, pixels, AV_PIX_FMT_RGB24, SAMPLE, SAMPLE, SWS_BILINEAR) != 0) return CONTRAST;
    double most = 0;
    for (int c = 0; c < 3; c++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < SAMPLE * SAMPLE; i++) {
            double value = pixels[3 * i + c];
            sum += value;
            squares += value * value;
        }
        double mean = sum / (SAMPLE * SAMPLE);
        most = fmax(most, squares / (SAMPLE * SAMPLE) - mean * mean);
    }
    return sqrt(most);
}

/* Finds the first frame of the beginning that is not almost a single colour, or the one with the most contrast. */
static safelight_video_status find_first(safelight_video *video, int64_t search, AVFrame *kept, int64_t *stamp) {
    progress progress = {.wanted = AV_NOPTS_VALUE};
    double best = -1;
    int is_fading = 0;
    safelight_video_status status;
    move_to(video, 0);
    while ((status = next(video, &progress)) == SAFELIGHT_VIDEO_OK) {
        if (best >= 0 && in_time(video, video->last) > search) break;
        double found = contrast(video->frame);
        /* After frames of one colour the video may fade in: then it is the frame where the contrast stops growing. */
        if (best >= CONTRAST && found < best * 1.03) break;
        if (found < CONTRAST) is_fading = 1;
        /* Noise in a uniform video must not decide. */
        if (found < best + 1) continue;
        best = found;
        *stamp = video->last;
        av_frame_unref(kept);
        av_frame_move_ref(kept, video->frame);
        if (found >= CONTRAST && !is_fading) break;
    }
    return best >= 0 ? SAFELIGHT_VIDEO_OK : status;
}

static int primaries(const AVFrame *frame, int is_hdr) {
    switch (frame->color_primaries) {
    case AVCOL_PRI_BT2020: return 1;
    case AVCOL_PRI_SMPTE432: return 2;
    case AVCOL_PRI_UNSPECIFIED: return is_hdr;
    default: return 0;
    }
}

static safelight_video_status to_pixels(const safelight_video *video, AVFrame *frame, int width, int height, uint8_t *target) {
    const AVCodecParameters *codec = shown(video)->codecpar;
    /* The container's values are used if the stream has none. */
    if (frame->color_trc == AVCOL_TRC_UNSPECIFIED) frame->color_trc = codec->color_trc;
    if (frame->color_primaries == AVCOL_PRI_UNSPECIFIED) frame->color_primaries = codec->color_primaries;
    if (frame->colorspace == AVCOL_SPC_UNSPECIFIED) frame->colorspace = codec->color_space;
    if (frame->color_range == AVCOL_RANGE_UNSPECIFIED) frame->color_range = codec->color_range;
    int transfer = frame->color_trc == AVCOL_TRC_SMPTE2084 ? 1 : frame->color_trc == AVCOL_TRC_ARIB_STD_B67 ? 2 : 0;
    int gamut = primaries(frame, transfer > 0);
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
    safelight_video_begin(video);
    if (time > SAFELIGHT_VIDEO_LONGEST) time = SAFELIGHT_VIDEO_LONGEST;
    /* The colours depend on metadata that FFmpeg does not apply. */
    if (video->info.dolby_vision == 5) return SAFELIGHT_VIDEO_CODEC;
    safelight_video_status status = begin_decoding(video);
    if (status != SAFELIGHT_VIDEO_OK) return status;
    find_start(video);
    AVFrame *kept = av_frame_alloc();
    if (!kept) return SAFELIGHT_VIDEO_NO_MEMORY;
    int64_t stamp = 0;
    status = time < 0 ? find_first(video, search, kept, &stamp) : find(video, time, tolerance, kept, &stamp);
    if (status == SAFELIGHT_VIDEO_OK) {
        /* The functions of libswscale may write a few bytes more than a row. */
        frame->pixels = malloc((size_t)width * (size_t)height * 3 + 64);
        status = frame->pixels ? to_pixels(video, kept, width, height, frame->pixels) : SAFELIGHT_VIDEO_NO_MEMORY;
        frame->time = in_time(video, stamp);
        frame->is_key = kept->key_frame;
    }
    av_frame_free(&kept);
    if (status != SAFELIGHT_VIDEO_OK) {
        free(frame->pixels);
        frame->pixels = NULL;
    }
    return status;
}

void safelight_video_free(uint8_t *pixels) { free(pixels); }
