/* The filters of an export. */
#include "VideoExport.h"

#include <libavutil/samplefmt.h>
#include <stdio.h>
#include <string.h>

static AVFilterContext *source_filter(track *track, const char *name, const AVFrame *frame, AVRational base) {
    AVBufferSrcParameters *parameters = av_buffersrc_parameters_alloc();
    int is_audio = track->source->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    AVFilterContext *filter =
        avfilter_graph_alloc_filter(track->graph, avfilter_get_by_name(is_audio ? "abuffer" : "buffer"), name);
    if (!parameters || !filter) {
        av_free(parameters);
        return NULL;
    }
    parameters->format = frame->format;
    parameters->time_base = base;
    if (is_audio) {
        parameters->sample_rate = frame->sample_rate;
        av_channel_layout_copy(&parameters->ch_layout, &frame->ch_layout);
    } else {
        parameters->width = frame->width;
        parameters->height = frame->height;
        parameters->sample_aspect_ratio = frame->sample_aspect_ratio;
        parameters->frame_rate = track->source->avg_frame_rate;
    }
    int failed = av_buffersrc_parameters_set(filter, parameters) < 0 || avfilter_init_str(filter, NULL) < 0;
    av_channel_layout_uninit(&parameters->ch_layout);
    av_free(parameters);
    return failed ? NULL : filter;
}

/* Returns a labelled end of a filter graph; `next` if there is no memory. */
static AVFilterInOut *make_end(const char *name, AVFilterContext *filter, AVFilterInOut *next) {
    AVFilterInOut *end = avfilter_inout_alloc();
    if (!end) return next;
    end->name = av_strdup(name);
    end->filter_ctx = filter;
    end->next = next;
    return end;
}

/* Sends the colour table to its filter as an image (a Hald CLUT). The first call only creates the source of that
   filter. */
static int send_clut(job *job, track *track) {
    AVFrame *table = av_frame_alloc();
    if (!table) return -1;
    int side = job->options->hald_side;
    table->format = AV_PIX_FMT_RGB48LE;
    table->width = table->height = side;
    table->sample_aspect_ratio = (AVRational){1, 1};
    table->pts = 0;
    int failed = av_frame_get_buffer(table, 0) < 0;
    if (!failed && !track->hald_source) {
        track->hald_source = source_filter(track, "table", table, (AVRational){1, 1000000});
        av_frame_free(&table);
        return track->hald_source ? 0 : -1;
    }
    for (int y = 0; !failed && y < side; y++) {
        memcpy(table->data[0] + (ptrdiff_t)y * table->linesize[0],
               job->options->hald_clut + (size_t)y * (size_t)side * 3, (size_t)side * 6);
    }
    failed = failed || av_buffersrc_add_frame(track->hald_source, table) < 0 ||
             av_buffersrc_close(track->hald_source, 0, 0) < 0;
    av_frame_free(&table);
    return failed ? -1 : 0;
}

/* Writes an aformat filter for the audio format of a frame; an empty string if the format has no name. */
static void describe_format(const AVFrame *frame, char text[SAFELIGHT_VIDEO_FORMAT_BYTES]) {
    char layout[SAFELIGHT_VIDEO_FORMAT_BYTES / 2];
    const char *samples = av_get_sample_fmt_name(frame->format);
    int length = av_channel_layout_describe(&frame->ch_layout, layout, sizeof layout);
    text[0] = 0;
    if (!samples || length <= 0 || length > (int)sizeof layout) return;
    snprintf(text, SAFELIGHT_VIDEO_FORMAT_BYTES, "aformat=sample_fmts=%s:sample_rates=%d:channel_layouts=%s", samples,
             frame->sample_rate, layout);
}

static int append_filter(track *track, AVFilterContext **last, const char *name, const char *options) {
    AVFilterContext *filter;
    const AVFilter *kind = avfilter_get_by_name(name);
    if (avfilter_graph_create_filter(&filter, kind, name, options, NULL, track->graph) < 0) return -1;
    if (avfilter_link(*last, 0, filter, 0) < 0) return -1;
    *last = filter;
    return 0;
}

/* Appends filters that convert each interlaced frame to one progressive frame, and do not change progressive frames. */
static int append_deinterlacer(track *track, const AVFrame *frame, AVFilterContext **last) {
    int is_interlaced = frame->interlaced_frame || track->source->codecpar->field_order > AV_FIELD_PROGRESSIVE;
    if (!is_interlaced || frame->width < 16 || frame->height < 16) return 0;
    /* The size of frames may change within a video. "scale" adapts to it; "bwdif" would read beyond a smaller frame. */
    char size[64];
    snprintf(size, sizeof size, "%d:%d:flags=bicubic+accurate_rnd", frame->width, frame->height);
    if (append_filter(track, last, "scale", size) != 0) return -1;
    return append_filter(track, last, "bwdif", "mode=send_frame:parity=auto:deint=interlaced");
}

/* The format is that of the first frame, because containers may declare a wrong one. */
safelight_video_status safelight_video_open_filters(job *job, track *track, const AVFrame *frame, const char *text) {
    int is_audio = track->source->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    avfilter_graph_free(&track->graph);
    track->hald_source = NULL;
    track->format[0] = 0;
    if (!(track->graph = avfilter_graph_alloc())) return SAFELIGHT_VIDEO_NO_MEMORY;
    track->graph->nb_threads = job->options->threads;
    track->in = source_filter(track, "in", frame, track->source->time_base);
    const AVFilter *end = avfilter_get_by_name(is_audio ? "abuffersink" : "buffersink");
    int failed = !track->in || avfilter_graph_create_filter(&track->out, end, "out", NULL, NULL, track->graph) < 0;
    if (failed) return SAFELIGHT_VIDEO_NO_MEMORY;
    int has_clut = !is_audio && job->options->hald_clut;
    if (has_clut && send_clut(job, track) != 0) return SAFELIGHT_VIDEO_NO_MEMORY;
    AVFilterContext *last = track->in;
    if (!is_audio && append_deinterlacer(track, frame, &last) != 0) return SAFELIGHT_VIDEO_NO_MEMORY;
    AVFilterInOut *inputs = make_end("out", track->out, NULL);
    AVFilterInOut *outputs = make_end("in", last, has_clut ? make_end("table", track->hald_source, NULL) : NULL);
    failed = avfilter_graph_parse_ptr(track->graph, text, &inputs, &outputs, NULL) < 0 ||
             avfilter_graph_config(track->graph, NULL) < 0;
    avfilter_inout_free(&inputs);
    avfilter_inout_free(&outputs);
    if (!failed && has_clut) failed = send_clut(job, track) != 0;
    if (!failed && is_audio) describe_format(frame, track->format);
    return failed ? SAFELIGHT_VIDEO_CODEC : SAFELIGHT_VIDEO_OK;
}

/* Converts audio to the format of the first frame of its track, and sends it to the filters. */
static int convert(job *job, const char *format, AVFrame *frame) {
    track *audio = &job->audio_track, *converter = &job->converter;
    if (strcmp(format, converter->format) != 0) {
        converter->source = audio->source;
        if (safelight_video_open_filters(job, converter, frame, audio->format) != SAFELIGHT_VIDEO_OK)
            return AVERROR(EINVAL);
    }
    int result = av_buffersrc_add_frame(converter->in, frame);
    while (result >= 0) {
        result = av_buffersink_get_frame(converter->out, frame);
        if (result == AVERROR(EAGAIN)) return 0;
        if (result < 0) break;
        frame->pts = av_rescale_q(frame->pts, av_buffersink_get_time_base(converter->out), audio->source->time_base);
        result = av_buffersrc_add_frame(audio->in, frame);
    }
    return result;
}

int safelight_video_filter(job *job, track *track, AVFrame *frame) {
    char format[SAFELIGHT_VIDEO_FORMAT_BYTES] = "";
    if (track == &job->audio_track) describe_format(frame, format);
    /* Audio filters accept only the format of the first frame, but broadcasts change it between programmes. */
    int is_same = !format[0] || !strcmp(format, track->format);
    int result = is_same ? av_buffersrc_add_frame(track->in, frame) : convert(job, format, frame);
    av_frame_unref(frame);
    return result;
}
