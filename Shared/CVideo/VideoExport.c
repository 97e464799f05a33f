/* Exports an open video to a new file. Its tracks are copied, or decoded, filtered and encoded. */
#include "VideoExport.h"

#include <libavutil/opt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The maximum number of damaged packets and frames that are skipped. */
#define MAX_ERRORS 1000
#define OUTPUT_BUFFER (256 << 10)

// MARK: - The output

static int write_bytes(void *opaque, uint8_t *bytes, int count) {
    job *job = opaque;
    if (job->output_status) return AVERROR_EXIT;
    if (job->position + count > job->options->max_bytes) {
        job->output_status = SAFELIGHT_VIDEO_TOO_LARGE;
        return AVERROR_EXIT;
    }
    if (job->options->write(job->options->sink, job->position, bytes, (size_t)count) != 0) {
        job->output_status = SAFELIGHT_VIDEO_STOPPED;
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
    /* Without this, the muxer leaves out the boxes of Dolby Vision, stereo and spherical video. */
    job->output->strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL;
    return SAFELIGHT_VIDEO_OK;
}

/* Returns true for tags that describe the container, not the video. */
static int is_container_tag(const char *key) {
    static const char *const names[] = {"major_brand", "minor_version", "compatible_brands", "encoder",
                                        "com.android.version", "rotate", "handler_name", "vendor_id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcasecmp(key, names[i])) return 1;
    }
    return 0;
}

#define MAX_TAGS 256
#define MAX_TAG_BYTES 4096

static void copy_tags(job *job) {
    const AVDictionaryEntry *entry = NULL;
    const AVDictionary *tags = job->video->context->metadata;
    for (int i = 0; i < MAX_TAGS && (entry = av_dict_get(tags, "", entry, AV_DICT_IGNORE_SUFFIX)); i++) {
        if (is_container_tag(entry->key) || strnlen(entry->value, MAX_TAG_BYTES + 1) > MAX_TAG_BYTES) continue;
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
    int is_audio = track->source->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    const AVCodec *codec = avcodec_find_encoder_by_name(is_audio ? "aac" : options->is_hevc ? "libx265" : "libx264");
    if (!codec) return SAFELIGHT_VIDEO_NO_ENCODER;
    AVCodecContext *encoder = track->encoder = avcodec_alloc_context3(codec);
    if (!encoder) return SAFELIGHT_VIDEO_NO_MEMORY;
    AVDictionary *settings = NULL;
    encoder->time_base = av_buffersink_get_time_base(track->out);
    if (is_audio) {
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
        av_dict_set(&settings, "preset", options->preset, 0);
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
    if (is_audio && !(codec->capabilities & AV_CODEC_CAP_VARIABLE_FRAME_SIZE))
        av_buffersink_set_frame_size(track->out, (unsigned)encoder->frame_size);
    return SAFELIGHT_VIDEO_OK;
}

/* Returns true if a track is known to begin after a time in microseconds. Some containers do not declare the start of a
   track that begins late. */
static int begins_after(const track *track, int64_t time) {
    int64_t timestamp = track->first_timestamp == AV_NOPTS_VALUE ? track->source->start_time : track->first_timestamp;
    return timestamp != AV_NOPTS_VALUE && av_rescale_q(timestamp, track->source->time_base, AV_TIME_BASE_Q) > time;
}

/* Seeks to the key frame of a stream at or before a time in microseconds. */
static int seek_by(AVFormatContext *input, const AVStream *stream, int64_t time) {
    int64_t timestamp = av_rescale_q(time, AV_TIME_BASE_Q, stream->time_base);
    return avformat_seek_file(input, stream->index, INT64_MIN, timestamp, timestamp, 0);
}

/* Seeks to the start of the exported part, for all tracks. Returns a negative FFmpeg error on failure. */
static int seek_to_start(const job *job) {
    AVFormatContext *input = job->video->context;
    /* MPEG transport streams have no index, and a seek by time would land after the first key frame: read from the
       first byte. */
    if (input->iformat->flags & AVFMT_TS_DISCONT && av_seek_frame(input, -1, 0, AVSEEK_FLAG_BYTE) >= 0) return 0;
    /* Starts a second early: key frames are found in decoding order, and a frame displayed before a key frame may
       depend on an earlier key frame. */
    int64_t early = job->options->start > AV_TIME_BASE ? job->options->start - AV_TIME_BASE : 0;
    int64_t first = job->video->start + early;
    const AVStream *video = job->video_track.source, *audio = job->audio_track.source;
    /* A seek by one track moves the others to the key frame found. If the video begins after the audio, a seek by the
       video track would skip the audio before it. The first audio packets have timestamps before the start, hence the
       extra second. */
    if (audio && begins_after(&job->video_track, first) && seek_by(input, audio, first - AV_TIME_BASE) >= 0) return 0;
    return seek_by(input, video, first);
}

/* Decodes a track up to its first frame, whose format is used to open the filters and the encoder. Then seeks to the
   start of the exported part. */
static safelight_video_status prepare(job *job, track *track, const char *filters) {
    AVFormatContext *input = job->video->context;
    safelight_video_status status = open_decoder(job, track);
    if (status) return status;
    /* A track may start late, so only its own packets are counted. While the video track is prepared, audio packets are
       read too, because some demuxers build the audio index as they read. */
    AVStream *other = track == &job->audio_track ? job->video_track.source : NULL;
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
    if (job->video->is_limit_reached) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
    if (!status && result < 0) status = SAFELIGHT_VIDEO_NO_FRAME;
    if (!status) track->first_timestamp = job->frame->best_effort_timestamp;
    if (!status) status = safelight_video_open_filters(job, track, job->frame, filters);
    av_frame_unref(job->frame);
    if (!status) status = open_encoder(job, track);
    avcodec_flush_buffers(track->decoder);
    if (seek_to_start(job) < 0 && !status) status = SAFELIGHT_VIDEO_UNREADABLE;
    return status;
}

static int can_copy(const AVOutputFormat *output, const AVStream *stream) {
    return avformat_query_codec(output, stream->codecpar->codec_id, FF_COMPLIANCE_NORMAL) == 1;
}

int safelight_video_can_copy(const safelight_video *video, int is_quicktime) {
    const AVOutputFormat *output = av_guess_format(is_quicktime ? "mov" : "mp4", NULL, NULL);
    return output && can_copy(output, video->context->streams[video->info.track]);
}

/* Returns true for audio codecs that players of MPEG-4 files usually support. */
static int is_common_audio(const AVStream *stream) {
    switch (stream->codecpar->codec_id) {
    case AV_CODEC_ID_AAC:
    case AV_CODEC_ID_ALAC:
    case AV_CODEC_ID_AC3:
    case AV_CODEC_ID_EAC3:
    case AV_CODEC_ID_MP3: return 1;
    default: return 0;
    }
}

/* Copies the side data of a track: all of it if the track is copied, else only the mastering display and content light
   metadata. */
static void copy_side_data(const track *track, int copies) {
    for (int i = 0; i < track->source->nb_side_data; i++) {
        const AVPacketSideData *side = &track->source->side_data[i];
        int is_hdr_metadata =
            side->type == AV_PKT_DATA_MASTERING_DISPLAY_METADATA || side->type == AV_PKT_DATA_CONTENT_LIGHT_LEVEL;
        if (!copies && !is_hdr_metadata) continue;
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
        if (avcodec_parameters_copy(track->target->codecpar, track->source->codecpar) < 0)
            return SAFELIGHT_VIDEO_NO_MEMORY;
        int is_hevc = track->source->codecpar->codec_id == AV_CODEC_ID_HEVC;
        track->target->codecpar->codec_tag = is_hevc ? MKTAG('h', 'v', 'c', '1') : 0;
        track->target->time_base = track->source->time_base;
        track->target->sample_aspect_ratio = track->source->sample_aspect_ratio;
        track->target->avg_frame_rate = track->source->avg_frame_rate;
    } else {
        if (avcodec_parameters_from_context(track->target->codecpar, track->encoder) < 0)
            return SAFELIGHT_VIDEO_NO_MEMORY;
        track->target->time_base = track->encoder->time_base;
        track->target->avg_frame_rate = track->encoder->framerate;
    }
    if (copies || job->options->is_hevc) copy_side_data(track, copies);
    const AVDictionaryEntry *language = av_dict_get(track->source->metadata, "language", NULL, 0);
    if (language) av_dict_set(&track->target->metadata, "language", language->value, 0);
    return SAFELIGHT_VIDEO_OK;
}

// MARK: - Exporting

/* Returns the cause of a failure: the output or a limit if it is known, else `status`. */
static safelight_video_status failure(job *job, safelight_video_status status) {
    if (job->output_status) return job->output_status;
    return job->video->is_limit_reached ? SAFELIGHT_VIDEO_TOO_MUCH_WORK : status;
}

/* Converts a time in microseconds from the start of the video to a timestamp of a track. */
static int64_t track_timestamp(const job *job, const track *track, int64_t time) {
    return av_rescale_q(time + job->video->start, AV_TIME_BASE_Q, track->source->time_base);
}

static safelight_video_status write_packets(job *job, track *track) {
    for (;;) {
        int result = avcodec_receive_packet(track->encoder, job->packet);
        if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return SAFELIGHT_VIDEO_OK;
        if (result < 0) return failure(job, SAFELIGHT_VIDEO_NO_ENCODER);
        job->packet->stream_index = track->target->index;
        av_packet_rescale_ts(job->packet, track->encoder->time_base, track->target->time_base);
        track->written++;
        if (av_interleaved_write_frame(job->output, job->packet) < 0) return failure(job, SAFELIGHT_VIDEO_NO_ENCODER);
    }
}

/* Recolours a frame and draws the overlay on it. */
static safelight_video_status paint(const job *job, AVFrame *frame) {
    const safelight_video_export_options *options = job->options;
    if (!options->yuv_table && !options->overlay.pixels) return SAFELIGHT_VIDEO_OK;
    if (frame->format != AV_PIX_FMT_YUV420P) return SAFELIGHT_VIDEO_CODEC;
    if (av_frame_make_writable(frame) < 0) return SAFELIGHT_VIDEO_NO_MEMORY;
    if (options->yuv_table) safelight_video_recolour(frame, options->yuv_table);
    if (options->overlay.pixels) safelight_video_draw(frame, options->matrix, &options->overlay);
    return SAFELIGHT_VIDEO_OK;
}

/* Encodes the frames that the filters have output; with is_end, also flushes the encoder. */
static safelight_video_status encode(job *job, track *track, int is_end) {
    safelight_video_status status = SAFELIGHT_VIDEO_OK;
    while (!status) {
        int result = av_buffersink_get_frame(track->out, job->frame);
        if (result < 0) break;
        job->frame->pict_type = AV_PICTURE_TYPE_NONE;
        if (track == &job->audio_track)
            job->frame->pts =
                av_rescale_q(job->frame->pts, av_buffersink_get_time_base(track->out), track->encoder->time_base);
        /* Muxers refuse timestamps that do not increase. Of frames with the same timestamp the first one is used. */
        if (job->frame->pts <= track->last_encoded) {
            int is_earlier = job->frame->pts < track->last_encoded;
            av_frame_unref(job->frame);
            if (is_earlier && ++job->errors > MAX_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
            continue;
        }
        track->last_encoded = job->frame->pts;
        if (track == &job->video_track && (status = paint(job, job->frame))) break;
        result = avcodec_send_frame(track->encoder, job->frame);
        av_frame_unref(job->frame);
        status = result < 0 ? failure(job, SAFELIGHT_VIDEO_NO_ENCODER) : write_packets(job, track);
    }
    if (!status && is_end && avcodec_send_frame(track->encoder, NULL) >= 0) status = write_packets(job, track);
    return status;
}

/* Sends a decoded frame to the filters if it is in the exported part, with timestamps from the start of that part. */
static safelight_video_status filter_frame(job *job, track *track) {
    const safelight_video_export_options *options = job->options;
    AVFrame *frame = job->frame;
    int64_t timestamp = frame->best_effort_timestamp;
    if (timestamp == AV_NOPTS_VALUE) return SAFELIGHT_VIDEO_OK;
    if (options->end >= 0 && timestamp >= track_timestamp(job, track, options->end)) {
        track->is_finished = 1;
        return SAFELIGHT_VIDEO_OK;
    }
    int64_t first = track_timestamp(job, track, options->start);
    if (options->start > 0 && timestamp < first) {
        int is_audio = track == &job->audio_track;
        AVRational sample = {1, is_audio ? frame->sample_rate : 1};
        int64_t length = is_audio ? av_rescale_q(frame->nb_samples, sample, track->source->time_base) : 1;
        if (timestamp + length <= first) return SAFELIGHT_VIDEO_OK;
    }
    frame->pts = timestamp - first;
    int result = safelight_video_filter(job, track, frame);
    if (result < 0 && ++job->errors > MAX_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
    return encode(job, track, 0);
}

static safelight_video_status decode(job *job, track *track, const AVPacket *packet) {
    int result = avcodec_send_packet(track->decoder, packet);
    if (result < 0 && result != AVERROR_EOF && ++job->errors > MAX_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
    safelight_video_status status = SAFELIGHT_VIDEO_OK;
    while (!status) {
        result = avcodec_receive_frame(track->decoder, job->frame);
        if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) break;
        if (result < 0) {
            if (++job->errors > MAX_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
            break;
        }
        status = filter_frame(job, track);
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
    track->written++;
    if (av_interleaved_write_frame(job->output, packet) < 0 && ++job->errors > MAX_ERRORS)
        return failure(job, SAFELIGHT_VIDEO_UNREADABLE);
    return job->output_status;
}

/* Microseconds. A longer jump in the timestamps of both tracks is a discontinuity, not a gap in the video. */
#define MAX_GAP (10 * (int64_t)AV_TIME_BASE)

/* Returns true if a time is more than MAX_GAP after everything that was read. */
static int exceeds_gap(const job *job, int64_t time) {
    return job->read_end > INT64_MIN / 4 && time > job->read_end + MAX_GAP;
}

static int is_discontinuous(const job *job, const track *track, int64_t time) {
    return time < track->read_end - AV_TIME_BASE || exceeds_gap(job, time);
}

/* Chooses the shift of a track so that its timestamps continue at `time`. */
static void choose_shift(job *job, track *track, int64_t time) {
    /* The other track may have been shifted first; after a damaged timestamp the previous shift is correct again. */
    const int64_t candidates[] = {track->shift, job->shift, track->previous_shift};
    for (int i = 0; i < 3; i++) {
        if (is_discontinuous(job, track, time + candidates[i])) continue;
        if (i == 0) return;
        track->previous_shift = track->shift;
        track->shift = job->shift = candidates[i];
        return;
    }
    /* After a damaged timestamp, a track less than a second behind the other continues at its own end, so that no gap
       appears in it. */
    int is_near = exceeds_gap(job, time + track->shift) && track->read_end > job->read_end - AV_TIME_BASE;
    int64_t end = is_near ? track->read_end : job->read_end;
    track->previous_shift = track->shift;
    track->shift = job->shift = av_clip64(end - time, -SAFELIGHT_VIDEO_MAX_TIME, SAFELIGHT_VIDEO_MAX_TIME);
}

/* Shifts the packets after a discontinuity so that they follow those before it, all tracks by the same offset. Joined
   recordings have such discontinuities. */
static void shift_after_discontinuity(job *job, track *track) {
    AVPacket *packet = job->packet;
    AVRational base = track->source->time_base;
    if (!(job->video->context->iformat->flags & AVFMT_TS_DISCONT)) return;
    if (packet->dts != AV_NOPTS_VALUE) {
        int64_t time = av_rescale_q(packet->dts, base, AV_TIME_BASE_Q);
        time = av_clip64(time, -SAFELIGHT_VIDEO_MAX_TIME, SAFELIGHT_VIDEO_MAX_TIME);
        choose_shift(job, track, time);
        int64_t length = av_clip64(av_rescale_q(packet->duration, base, AV_TIME_BASE_Q), 0, AV_TIME_BASE);
        track->read_end = FFMAX(track->read_end, time + track->shift + length);
        job->read_end = FFMAX(job->read_end, track->read_end);
    }
    int64_t shift = av_rescale_q(track->shift, AV_TIME_BASE_Q, base);
    if (packet->pts != AV_NOPTS_VALUE) packet->pts = av_sat_add64(packet->pts, shift);
    if (packet->dts != AV_NOPTS_VALUE) packet->dts = av_sat_add64(packet->dts, shift);
    /* Only one of the two timestamps may be damaged. */
    if (packet->pts != AV_NOPTS_VALUE && packet->dts != AV_NOPTS_VALUE) {
        int64_t delay = av_sat_sub64(packet->pts, packet->dts), max_delay = av_rescale_q(MAX_GAP, AV_TIME_BASE_Q, base);
        if (delay > max_delay || delay < -max_delay) packet->pts = packet->dts;
    }
}

static safelight_video_status run(job *job) {
    AVFormatContext *input = job->video->context;
    safelight_video_status status = SAFELIGHT_VIDEO_OK;
    int64_t reported = -1;
    while (!status && !(job->video_track.is_finished && (!job->audio_track.target || job->audio_track.is_finished))) {
        int result = av_read_frame(input, job->packet);
        if (job->video->is_limit_reached) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
        if (result == AVERROR_EOF || avio_feof(job->video->io)) {
            if (result < 0) break;
        } else if (result < 0) {
            if (++job->errors > MAX_ERRORS) return SAFELIGHT_VIDEO_UNREADABLE;
            continue;
        }
        int index = job->packet->stream_index;
        track *track = NULL;
        if (index == job->video_track.source->index) track = &job->video_track;
        else if (job->audio_track.target && index == job->audio_track.source->index) track = &job->audio_track;
        if (track && !track->is_finished) {
            shift_after_discontinuity(job, track);
            int64_t timestamp = job->packet->dts != AV_NOPTS_VALUE ? job->packet->dts : job->packet->pts;
            if (track == &job->video_track && timestamp != AV_NOPTS_VALUE) {
                int64_t time = av_rescale_q(timestamp, track->source->time_base, AV_TIME_BASE_Q);
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
    track *tracks[] = {&job->video_track, &job->audio_track};
    for (int i = 0; i < 2 && !status; i++) {
        if (!tracks[i]->target || !tracks[i]->encoder) continue;
        tracks[i]->is_finished = 0;
        status = decode(job, tracks[i], NULL);
        if (!status && av_buffersrc_add_frame(tracks[i]->in, NULL) >= 0) status = encode(job, tracks[i], 1);
    }
    return status;
}

/* Converts audio to a format that the AAC encoder accepts. */
static const char to_aac_input[] =
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
    job->video_track.source = input->streams[job->video->info.track];
    if (!options->filters && !can_copy(job->output->oformat, job->video_track.source)) return SAFELIGHT_VIDEO_CODEC;
    int audio_index = options->is_silent ? -1 : safelight_video_audio_track(job->video);
    AVStream *audio = audio_index < 0 ? NULL : input->streams[audio_index];
    job->audio_track.source = audio;
    /* A seek finds a position for each stream that is not discarded. */
    if (audio) audio->discard = AVDISCARD_DEFAULT;
    status = add_track(job, &job->video_track, !options->filters, options->filters);
    if (!status && audio) {
        int copies = !options->audio_filters && can_copy(job->output->oformat, audio) &&
                     (!options->filters || is_common_audio(audio));
        int is_supported = copies || safelight_video_decoder_for(audio->codecpar->codec_id);
        const char *filters = options->audio_filters ? options->audio_filters : to_aac_input;
        safelight_video_status audio_status =
            is_supported ? add_track(job, &job->audio_track, copies, filters) : SAFELIGHT_VIDEO_CODEC;
        /* If the audio cannot be decoded, the video is exported without it. */
        if (audio_status) {
            audio->discard = AVDISCARD_ALL;
            if (job->video->is_limit_reached) return SAFELIGHT_VIDEO_TOO_MUCH_WORK;
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
    job job = {.video = video, .options = options, .read_end = INT64_MIN / 2};
    job.video_track.last_encoded = job.audio_track.last_encoded = INT64_MIN;
    job.video_track.first_timestamp = job.audio_track.first_timestamp = AV_NOPTS_VALUE;
    job.video_track.read_end = job.audio_track.read_end = INT64_MIN / 2;
    if (options->filters && video->info.dolby_vision == 5) return SAFELIGHT_VIDEO_CODEC;
    video->deadline = fmin(safelight_video_now() + options->seconds, video->opened_at + options->seconds);
    safelight_video_status status = begin(&job);
    int is_header_written = !status;
    if (!status) status = run(&job);
    if (!status && job.video_track.written == 0)
        status = options->start > 0 || options->end >= 0 ? SAFELIGHT_VIDEO_EMPTY_PART : SAFELIGHT_VIDEO_NO_FRAME;
    if (is_header_written) {
        int result = av_write_trailer(job.output);
        if (job.output->pb) avio_flush(job.output->pb);
        if (!status && (result < 0 || job.output_status)) status = failure(&job, SAFELIGHT_VIDEO_NO_ENCODER);
    }
    *bytes = job.end;
    close_track(&job.video_track);
    close_track(&job.audio_track);
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
