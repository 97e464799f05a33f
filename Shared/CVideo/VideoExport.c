/* Exports an open video to a new file: its tracks are copied, or decoded, filtered and encoded. */
#include "VideoExport.h"

#include <libavutil/opt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Broken packets and frames are left out, up to this many. */
#define MOST_ERRORS 1000
#define OUTPUT_BUFFER (256 << 10)

// MARK: - The output

static int write_bytes(void *opaque, uint8_t *bytes, int count) {
    job *job = opaque;
    if (job->problem) return AVERROR_EXIT;
    if (job->position + count > job->options->most_bytes) {
        job->problem = SAFELIGHT_VIDEO_TOO_LARGE;
        return AVERROR_EXIT;
    }
    if (job->options->write(job->options->sink, job->position, bytes, (size_t)count) != 0) {
        job->problem = SAFELIGHT_VIDEO_STOPPED;
        return AVERROR_EXIT;
    }
    job->position += count;
    if (job->position > job->end) job->end = job->position;
    return count;
}

static int64_t seek_output(void *opaque, int64_t offset, int whence) {
    job *job = opaque;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return job->end;
    case SEEK_SET: break;
    case SEEK_CUR: offset += job->position; break;
    case SEEK_END: offset += job->end; break;
    default: return AVERROR(EINVAL);
    }
    if (offset < 0 || offset > job->end) return AVERROR(EINVAL);
    return job->position = offset;
}

static safelight_video_status open_output(job *job) {
    if (avformat_alloc_output_context2(&job->output, NULL, job->options->is_quicktime ? "mov" : "mp4", NULL) < 0)
        return SAFELIGHT_VIDEO_NO_MEMORY;
    uint8_t *buffer = av_malloc(OUTPUT_BUFFER);
    job->output->pb = buffer ? avio_alloc_context(buffer, OUTPUT_BUFFER, 1, job, NULL, write_bytes, seek_output) : NULL;
    if (!job->output->pb) {
        av_free(buffer);
        return SAFELIGHT_VIDEO_NO_MEMORY;
    }
    job->output->flags |= AVFMT_FLAG_CUSTOM_IO;
    /* Without this, the boxes of Dolby Vision, stereo and spherical video are left out. */
    job->output->strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL;
    return SAFELIGHT_VIDEO_OK;
}

/* True for tags that describe the container, not the video. */
static int is_of_container(const char *key) {
    static const char *const names[] = {"major_brand", "minor_version", "compatible_brands", "encoder",
                                        "com.android.version", "rotate", "handler_name", "vendor_id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcasecmp(key, names[i])) return 1;
    }
    return 0;
}

#define MOST_TAGS 256
#define LONGEST_TAG 4096

static void copy_tags(job *job) {
    const AVDictionaryEntry *entry = NULL;
    const AVDictionary *tags = job->video->context->metadata;
    for (int i = 0; i < MOST_TAGS && (entry = av_dict_get(tags, "", entry, AV_DICT_IGNORE_SUFFIX)); i++) {
        if (is_of_container(entry->key) || strnlen(entry->value, LONGEST_TAG + 1) > LONGEST_TAG) continue;
        av_dict_set(&job->output->metadata, entry->key, entry->value, 0);
    }
}

// MARK: - Decoders, filters and encoders

static safelight_video_status open_decoder(job *job, track *track) {
    const AVCodec *codec = safelight_video_decoder_for(track->source->codecpar->codec_id);
    if (!codec) return SAFELIGHT_VIDEO_CODEC;
    if (!(track->decoder = avcodec_alloc_context3(codec))) return SAFELIGHT_VIDEO_NO_MEMORY;
    if (avcodec_parameters_to_context(track->decoder, track->source->codecpar) < 0) return SAFELIGHT_VIDEO_UNREADABLE;
    track->decoder->pkt_timebase = track->source->time_base;
    track->decoder->thread_count = job->options->threads;
    track->decoder->max_pixels = job->video->limits.pixels;
    return avcodec_open2(track->decoder, codec, NULL) < 0 ? SAFELIGHT_VIDEO_UNREADABLE : SAFELIGHT_VIDEO_OK;
}

static void set_colours(job *job, AVCodecContext *encoder) {
    const safelight_video_export_options *options = job->options;
    int value;
    if ((value = av_color_space_from_name(options->matrix)) >= 0) encoder->colorspace = value;
    if ((value = av_color_primaries_from_name(options->primaries)) >= 0) encoder->color_primaries = value;
    if ((value = av_color_transfer_from_name(options->transfer)) >= 0) encoder->color_trc = value;
    encoder->color_range = AVCOL_RANGE_MPEG;
}

static safelight_video_status open_encoder(job *job, track *track) {
    const safelight_video_export_options *options = job->options;
    int is_sound = track->source->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    const AVCodec *codec = avcodec_find_encoder_by_name(is_sound ? "aac" : options->is_hevc ? "libx265" : "libx264");
    if (!codec) return SAFELIGHT_VIDEO_NO_ENCODER;
    AVCodecContext *encoder = track->encoder = avcodec_alloc_context3(codec);
    if (!encoder) return SAFELIGHT_VIDEO_NO_MEMORY;
    AVDictionary *settings = NULL;
    encoder->time_base = av_buffersink_get_time_base(track->out);
    if (is_sound) {
        encoder->sample_fmt = av_buffersink_get_format(track->out);
        encoder->sample_rate = av_buffersink_get_sample_rate(track->out);
        av_buffersink_get_ch_layout(track->out, &encoder->ch_layout);
        encoder->bit_rate = 96000 * (encoder->ch_layout.nb_channels < 2 ? 1 : encoder->ch_layout.nb_channels);
        encoder->time_base = (AVRational){1, encoder->sample_rate};
    } else {
        encoder->width = av_buffersink_get_w(track->out);
        encoder->height = av_buffersink_get_h(track->out);
        encoder->pix_fmt = av_buffersink_get_format(track->out);
        encoder->sample_aspect_ratio = (AVRational){1, 1};
        encoder->framerate = av_buffersink_get_frame_rate(track->out);
        encoder->thread_count = options->threads;
        set_colours(job, encoder);
        av_dict_set(&settings, "preset", options->speed, 0);
        av_dict_set_int(&settings, "crf", options->quality, 0);
        if (options->is_hevc) {
            encoder->codec_tag = MKTAG('h', 'v', 'c', '1');
            av_dict_set(&settings, "x265-params", "log-level=none", 0);
        }
    }
    if (job->output->oformat->flags & AVFMT_GLOBALHEADER) encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    int failed = avcodec_open2(encoder, codec, &settings) < 0;
    av_dict_free(&settings);
    if (failed) return SAFELIGHT_VIDEO_NO_ENCODER;
    if (is_sound && !(codec->capabilities & AV_CODEC_CAP_VARIABLE_FRAME_SIZE))
        av_buffersink_set_frame_size(track->out, (unsigned)encoder->frame_size);
    return SAFELIGHT_VIDEO_OK;
}

/* True if a track begins after a time in microseconds; false if that is not known. Some containers do not name the start
   of a track that begins late. */
static int begins_after(const track *track, int64_t time) {
    int64_t stamp = track->first == AV_NOPTS_VALUE ? track->source->start_time : track->first;
    return stamp != AV_NOPTS_VALUE && av_rescale_q(stamp, track->source->time_base, AV_TIME_BASE_Q) > time;
}

static int seek_by(AVFormatContext *input, const AVStream *stream, int64_t time) {
    int64_t stamp = av_rescale_q(time, AV_TIME_BASE_Q, stream->time_base);
    return avformat_seek_file(input, stream->index, INT64_MIN, stamp, stamp, 0);
}

/* Seeks to the start of the wanted part, for all tracks; returns FFmpeg's error. */
static int seek_start(const job *job) {
    AVFormatContext *input = job->video->context;
    /* Streams for broadcasting have no index: their times alone would lead behind the first key frame. */
    if (input->iformat->flags & AVFMT_TS_DISCONT && av_seek_frame(input, -1, 0, AVSEEK_FLAG_BYTE) >= 0) return 0;
    /* A second early: key frames are found by decoding order, and frames that are shown before one may need an earlier. */
    int64_t early = job->options->start > AV_TIME_BASE ? job->options->start - AV_TIME_BASE : 0;
    int64_t first = job->video->start + early;
    const AVStream *picture = job->picture.source, *sound = job->sound.source;
    /* A seek by one track moves the others to the time of the key frame that it found. That of a picture that begins
       later would leave out the sound before it. The first packets of sound have times before its start. */
    if (sound && begins_after(&job->picture, first) && seek_by(input, sound, first - AV_TIME_BASE) >= 0) return 0;
    return seek_by(input, picture, first);
}

/* Decodes a track until its first frame, which has the true format, and opens filters and encoder for it. The input is
   at the start of the wanted part afterwards. */
static safelight_video_status prepare(job *job, track *track, const char *filters) {
    AVFormatContext *input = job->video->context;
    safelight_video_status status = open_decoder(job, track);
    if (status) return status;
    /* A track may start late, so only its own packets are counted. That of the picture is read together with the sound,
       whose index some containers build as they are read. */
    AVStream *other = track == &job->sound ? job->picture.source : NULL;
    if (other) other->discard = AVDISCARD_ALL;
    int result = AVERROR(EAGAIN);
    for (int packets = 0; !status && result == AVERROR(EAGAIN) && packets < 10000;) {
        result = av_read_frame(input, job->packet);
        if (result < 0 || job->packet->stream_index == track->source->index) packets++;
        if (result == AVERROR_EOF) avcodec_send_packet(track->decoder, NULL);
        if (result >= 0 && job->packet->stream_index == track->source->index)
            avcodec_send_packet(track->decoder, job->packet);
        if (result >= 0) av_packet_unref(job->packet);
        if (result < 0 && result != AVERROR_EOF) break;
        result = avcodec_receive_frame(track->decoder, job->frame);
        if (result < 0 && result != AVERROR(EAGAIN) && result != AVERROR_EOF) result = AVERROR(EAGAIN);
    }
    if (other) other->discard = AVDISCARD_DEFAULT;
    if (job->video->exhausted) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
    if (!status && result < 0) status = SAFELIGHT_VIDEO_NO_FRAME;
    if (!status) track->first = job->frame->best_effort_timestamp;
    if (!status) status = safelight_video_open_filters(job, track, job->frame, filters);
    av_frame_unref(job->frame);
    if (!status) status = open_encoder(job, track);
    avcodec_flush_buffers(track->decoder);
    if (seek_start(job) < 0 && !status) status = SAFELIGHT_VIDEO_UNREADABLE;
    return status;
}

static int can_copy(const AVOutputFormat *output, const AVStream *stream) {
    return avformat_query_codec(output, stream->codecpar->codec_id, FF_COMPLIANCE_NORMAL) == 1;
}

int safelight_video_can_copy(const safelight_video *video, int is_quicktime) {
    const AVOutputFormat *output = av_guess_format(is_quicktime ? "mov" : "mp4", NULL, NULL);
    return output && can_copy(output, video->context->streams[video->info.track]);
}

/* Returns true for sound that players of MPEG-4 files usually support. */
static int is_common(const AVStream *sound) {
    switch (sound->codecpar->codec_id) {
    case AV_CODEC_ID_AAC:
    case AV_CODEC_ID_ALAC:
    case AV_CODEC_ID_AC3:
    case AV_CODEC_ID_EAC3:
    case AV_CODEC_ID_MP3: return 1;
    default: return 0;
    }
}

/* Copies the data about a whole track: all with the track itself, else the light of the display that it was made on. */
static void copy_side_data(const track *track, int copies) {
    for (int i = 0; i < track->source->nb_side_data; i++) {
        const AVPacketSideData *side = &track->source->side_data[i];
        int is_light = side->type == AV_PKT_DATA_MASTERING_DISPLAY_METADATA || side->type == AV_PKT_DATA_CONTENT_LIGHT_LEVEL;
        if (!copies && !is_light) continue;
        uint8_t *copy = av_stream_new_side_data(track->target, side->type, side->size);
        if (copy) memcpy(copy, side->data, side->size);
    }
}

static safelight_video_status add_track(job *job, track *track, int copies, const char *filters) {
    track->source->discard = AVDISCARD_DEFAULT;
    safelight_video_status status = copies ? SAFELIGHT_VIDEO_OK : prepare(job, track, filters);
    if (status) return status;
    if (!(track->target = avformat_new_stream(job->output, NULL))) return SAFELIGHT_VIDEO_NO_MEMORY;
    if (copies) {
        if (avcodec_parameters_copy(track->target->codecpar, track->source->codecpar) < 0) return SAFELIGHT_VIDEO_NO_MEMORY;
        int is_hevc = track->source->codecpar->codec_id == AV_CODEC_ID_HEVC;
        track->target->codecpar->codec_tag = is_hevc ? MKTAG('h', 'v', 'c', '1') : 0;
        track->target->time_base = track->source->time_base;
        track->target->sample_aspect_ratio = track->source->sample_aspect_ratio;
        track->target->avg_frame_rate = track->source->avg_frame_rate;
    } else {
        if (avcodec_parameters_from_context(track->target->codecpar, track->encoder) < 0) return SAFELIGHT_VIDEO_NO_MEMORY;
        track->target->time_base = track->encoder->time_base;
        track->target->avg_frame_rate = track->encoder->framerate;
    }
    if (copies || job->options->is_hevc) copy_side_data(track, copies);
    const AVDictionaryEntry *language = av_dict_get(track->source->metadata, "language", NULL, 0);
    if (language) av_dict_set(&track->target->metadata, "language", language->value, 0);
    return SAFELIGHT_VIDEO_OK;
}

// MARK: - Exporting

static safelight_video_status failure(job *job, safelight_video_status status) {
    if (job->problem) return job->problem;
    return job->video->exhausted ? SAFELIGHT_VIDEO_TOO_MUCH_WORK : status;
}

/* The part of the video that is wanted, in the units of a track. */
static int64_t limit(const job *job, const track *track, int64_t time) {
    return av_rescale_q(time + job->video->start, AV_TIME_BASE_Q, track->source->time_base);
}

static safelight_video_status write_packets(job *job, track *track) {
    for (;;) {
        int result = avcodec_receive_packet(track->encoder, job->packet);
        if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return SAFELIGHT_VIDEO_OK;
        if (result < 0) return failure(job, SAFELIGHT_VIDEO_NO_ENCODER);
        job->packet->stream_index = track->target->index;
        av_packet_rescale_ts(job->packet, track->encoder->time_base, track->target->time_base);
        track->shown++;
        if (av_interleaved_write_frame(job->output, job->packet) < 0) return failure(job, SAFELIGHT_VIDEO_NO_ENCODER);
    }
}

/* Changes colours and draws over a frame. */
static safelight_video_status paint(const job *job, AVFrame *frame) {
    const safelight_video_export_options *options = job->options;
    if (!options->colours && !options->overlay.pixels) return SAFELIGHT_VIDEO_OK;
    if (frame->format != AV_PIX_FMT_YUV420P) return SAFELIGHT_VIDEO_CODEC;
    if (av_frame_make_writable(frame) < 0) return SAFELIGHT_VIDEO_NO_MEMORY;
    if (options->colours) safelight_video_recolour(frame, options->colours);
    if (options->overlay.pixels) safelight_video_draw(frame, options->matrix, &options->overlay);
    return SAFELIGHT_VIDEO_OK;
}

/* Encodes the frames that the filters have finished; with is_end also those that the encoder has buffered. */
static safelight_video_status encode(job *job, track *track, int is_end) {
    safelight_video_status status = SAFELIGHT_VIDEO_OK;
    while (!status) {
        int result = av_buffersink_get_frame(track->out, job->frame);
        if (result < 0) break;
        job->frame->pict_type = AV_PICTURE_TYPE_NONE;
        if (track == &job->sound)
            job->frame->pts = av_rescale_q(job->frame->pts, av_buffersink_get_time_base(track->out), track->encoder->time_base);
        /* The container refuses times that do not increase. Of two frames with the same time the first one is used. */
        if (job->frame->pts <= track->newest) {
            int is_back = job->frame->pts < track->newest;
            av_frame_unref(job->frame);
            if (is_back && ++job->errors > MOST_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
            continue;
        }
        track->newest = job->frame->pts;
        if (track == &job->picture && (status = paint(job, job->frame))) break;
        result = avcodec_send_frame(track->encoder, job->frame);
        av_frame_unref(job->frame);
        status = result < 0 ? failure(job, SAFELIGHT_VIDEO_NO_ENCODER) : write_packets(job, track);
    }
    if (!status && is_end && avcodec_send_frame(track->encoder, NULL) >= 0) status = write_packets(job, track);
    return status;
}

/* Gives a decoded frame to the filters if it is in the wanted part, with times that begin with that part. */
static safelight_video_status filter(job *job, track *track) {
    const safelight_video_export_options *options = job->options;
    AVFrame *frame = job->frame;
    int64_t stamp = frame->best_effort_timestamp;
    if (stamp == AV_NOPTS_VALUE) return SAFELIGHT_VIDEO_OK;
    if (options->end >= 0 && stamp >= limit(job, track, options->end)) {
        track->is_over = 1;
        return SAFELIGHT_VIDEO_OK;
    }
    int64_t first = limit(job, track, options->start);
    if (options->start > 0 && stamp < first) {
        AVRational sample = {1, track == &job->sound ? frame->sample_rate : 1};
        int64_t length = track == &job->sound ? av_rescale_q(frame->nb_samples, sample, track->source->time_base) : 1;
        if (stamp + length <= first) return SAFELIGHT_VIDEO_OK;
    }
    frame->pts = stamp - first;
    int result = safelight_video_filter(job, track, frame);
    if (result < 0 && ++job->errors > MOST_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
    return encode(job, track, 0);
}

static safelight_video_status decode(job *job, track *track, const AVPacket *packet) {
    int result = avcodec_send_packet(track->decoder, packet);
    if (result < 0 && result != AVERROR_EOF && ++job->errors > MOST_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
    safelight_video_status status = SAFELIGHT_VIDEO_OK;
    while (!status) {
        result = avcodec_receive_frame(track->decoder, job->frame);
        if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) break;
        if (result < 0) {
            if (++job->errors > MOST_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
            break;
        }
        status = filter(job, track);
        av_frame_unref(job->frame);
    }
    return status;
}

static safelight_video_status copy(job *job, track *track) {
    AVPacket *packet = job->packet;
    int64_t shift = av_rescale_q(job->video->start, AV_TIME_BASE_Q, track->source->time_base);
    if (packet->pts != AV_NOPTS_VALUE) packet->pts -= shift;
    if (packet->dts != AV_NOPTS_VALUE) packet->dts -= shift;
    packet->stream_index = track->target->index;
    packet->pos = -1;
    av_packet_rescale_ts(packet, track->source->time_base, track->target->time_base);
    track->shown++;
    if (av_interleaved_write_frame(job->output, packet) < 0 && ++job->errors > MOST_ERRORS)
        return failure(job, SAFELIGHT_VIDEO_UNREADABLE);
    return job->problem;
}

/* In microseconds. A longer gap in the times of both tracks is none in the video. */
#define MOST_GAP (10 * (int64_t)AV_TIME_BASE)

static int is_ahead(const job *job, int64_t time) {
    return job->read > INT64_MIN / 4 && time > job->read + MOST_GAP;
}

static int jumps(const job *job, const track *track, int64_t time) {
    return time < track->read - AV_TIME_BASE || is_ahead(job, time);
}

/* Chooses what is added to the times of a track, so that they continue at one. */
static void choose_shift(job *job, track *track, int64_t time) {
    /* The other track may have been moved first, and behind a damaged time the shift before it is right again. */
    const int64_t known[] = {track->shift, job->shift, track->previous};
    for (int i = 0; i < 3; i++) {
        if (jumps(job, track, time + known[i])) continue;
        if (i == 0) return;
        track->previous = track->shift;
        track->shift = job->shift = known[i];
        return;
    }
    /* Behind a damaged time in sound that is a little later than the picture nothing may be left out. */
    int is_near = is_ahead(job, time + track->shift) && track->read > job->read - AV_TIME_BASE;
    int64_t end = is_near ? track->read : job->read;
    track->previous = track->shift;
    track->shift = job->shift = av_clip64(end - time, -SAFELIGHT_VIDEO_LONGEST, SAFELIGHT_VIDEO_LONGEST);
}

/* Recordings that were joined continue at other times: the packets from there on are moved behind those before, of all
   tracks by the same time. */
static void move_behind(job *job, track *track) {
    AVPacket *packet = job->packet;
    AVRational base = track->source->time_base;
    if (!(job->video->context->iformat->flags & AVFMT_TS_DISCONT)) return;
    if (packet->dts != AV_NOPTS_VALUE) {
        int64_t time = av_rescale_q(packet->dts, base, AV_TIME_BASE_Q);
        time = av_clip64(time, -SAFELIGHT_VIDEO_LONGEST, SAFELIGHT_VIDEO_LONGEST);
        choose_shift(job, track, time);
        int64_t length = av_clip64(av_rescale_q(packet->duration, base, AV_TIME_BASE_Q), 0, AV_TIME_BASE);
        track->read = FFMAX(track->read, time + track->shift + length);
        job->read = FFMAX(job->read, track->read);
    }
    int64_t shift = av_rescale_q(track->shift, AV_TIME_BASE_Q, base);
    if (packet->pts != AV_NOPTS_VALUE) packet->pts = av_sat_add64(packet->pts, shift);
    if (packet->dts != AV_NOPTS_VALUE) packet->dts = av_sat_add64(packet->dts, shift);
    /* One of the two may be damaged alone. */
    if (packet->pts != AV_NOPTS_VALUE && packet->dts != AV_NOPTS_VALUE) {
        int64_t late = av_sat_sub64(packet->pts, packet->dts), most = av_rescale_q(MOST_GAP, AV_TIME_BASE_Q, base);
        if (late > most || late < -most) packet->pts = packet->dts;
    }
}

static safelight_video_status run(job *job) {
    AVFormatContext *input = job->video->context;
    safelight_video_status status = SAFELIGHT_VIDEO_OK;
    int64_t reported = -1;
    while (!status && !(job->picture.is_over && (!job->sound.target || job->sound.is_over))) {
        int result = av_read_frame(input, job->packet);
        if (job->video->exhausted) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        if (result == AVERROR_EOF || avio_feof(job->video->io)) {
            if (result < 0) break;
        } else if (result < 0) {
            if (++job->errors > MOST_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
            continue;
        }
        track *track = job->packet->stream_index == job->picture.source->index                      ? &job->picture
                       : job->sound.target && job->packet->stream_index == job->sound.source->index ? &job->sound
                                                                                                     : NULL;
        if (track && !track->is_over) {
            move_behind(job, track);
            int64_t stamp = job->packet->dts != AV_NOPTS_VALUE ? job->packet->dts : job->packet->pts;
            if (track == &job->picture && stamp != AV_NOPTS_VALUE) {
                int64_t time = av_rescale_q(stamp, track->source->time_base, AV_TIME_BASE_Q);
                time -= job->video->start + job->options->start;
                if (time >= reported + 100000) {
                    reported = time;
                    if (job->options->progress(job->options->sink, time) != 0) status = SAFELIGHT_VIDEO_STOPPED;
                }
            }
            if (!status) status = track->encoder ? decode(job, track, job->packet) : copy(job, track);
        }
        av_packet_unref(job->packet);
    }
    track *tracks[] = {&job->picture, &job->sound};
    for (int i = 0; i < 2 && !status; i++) {
        if (!tracks[i]->target || !tracks[i]->encoder) continue;
        tracks[i]->is_over = 0;
        status = decode(job, tracks[i], NULL);
        if (!status && av_buffersrc_add_frame(tracks[i]->in, NULL) >= 0) status = encode(job, tracks[i], 1);
    }
    return status;
}

/* The formats that the encoder of AAC accepts. */
static const char encodable[] =
    "aformat=sample_fmts=fltp:sample_rates=48000|44100|32000|24000|22050|16000:channel_layouts=stereo|mono|5.1";

static safelight_video_status begin(job *job) {
    const safelight_video_export_options *options = job->options;
    AVFormatContext *input = job->video->context;
    safelight_video_status status = open_output(job);
    if (status) return status;
    job->packet = av_packet_alloc();
    job->frame = av_frame_alloc();
    if (!job->packet || !job->frame) return SAFELIGHT_VIDEO_NO_MEMORY;
    copy_tags(job);
    job->picture.source = input->streams[job->video->info.track];
    if (!options->filters && !can_copy(job->output->oformat, job->picture.source)) return SAFELIGHT_VIDEO_CODEC;
    int heard_track = options->is_silent ? -1 : safelight_video_sound(job->video);
    AVStream *sound = heard_track < 0 ? NULL : input->streams[heard_track];
    job->sound.source = sound;
    /* Seeks look for the start of each track that is not discarded. */
    if (sound) sound->discard = AVDISCARD_DEFAULT;
    status = add_track(job, &job->picture, !options->filters, options->filters);
    if (!status && sound) {
        int copies = !options->sound_filters && can_copy(job->output->oformat, sound) && (!options->filters || is_common(sound));
        int is_known = copies || safelight_video_decoder_for(sound->codecpar->codec_id);
        safelight_video_status heard =
            is_known ? add_track(job, &job->sound, copies, options->sound_filters ? options->sound_filters : encodable)
                     : SAFELIGHT_VIDEO_CODEC;
        /* A silent video is better than none if its sound cannot be decoded. */
        if (heard) {
            sound->discard = AVDISCARD_ALL;
            if (job->video->exhausted) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        }
    }
    if (status) return status;
    AVDictionary *settings = NULL;
    av_dict_set(&settings, "movflags", "use_metadata_tags", 0);
    int result = avformat_write_header(job->output, &settings);
    av_dict_free(&settings);
    return result < 0 ? failure(job, SAFELIGHT_VIDEO_CODEC) : SAFELIGHT_VIDEO_OK;
}

static void close_track(track *track) {
    avcodec_free_context(&track->decoder);
    avcodec_free_context(&track->encoder);
    avfilter_graph_free(&track->graph);
}

safelight_video_status safelight_video_export(safelight_video *video, const safelight_video_export_options *options,
                                              int64_t *bytes) {
    job job = {.video = video, .options = options, .read = INT64_MIN / 2};
    job.picture.newest = job.sound.newest = INT64_MIN;
    job.picture.first = job.sound.first = AV_NOPTS_VALUE;
    job.picture.read = job.sound.read = INT64_MIN / 2;
    if (options->filters && video->info.dolby_vision == 5) return SAFELIGHT_VIDEO_CODEC;
    video->deadline = fmin(safelight_video_now() + options->seconds, video->opened + options->seconds);
    safelight_video_status status = begin(&job);
    int is_begun = !status;
    if (!status) status = run(&job);
    if (!status && job.picture.shown == 0)
        status = options->start > 0 || options->end >= 0 ? SAFELIGHT_VIDEO_EMPTY_PART : SAFELIGHT_VIDEO_NO_FRAME;
    if (is_begun) {
        int result = av_write_trailer(job.output);
        if (job.output->pb) avio_flush(job.output->pb);
        if (!status && (result < 0 || job.problem)) status = failure(&job, SAFELIGHT_VIDEO_NO_ENCODER);
    }
    *bytes = job.end;
    close_track(&job.picture);
    close_track(&job.sound);
    close_track(&job.converter);
    av_packet_free(&job.packet);
    av_frame_free(&job.frame);
    if (job.output) {
        if (job.output->pb) av_freep(&job.output->pb->buffer);
        avio_context_free(&job.output->pb);
        avformat_free_context(job.output);
    }
    return status;
}
