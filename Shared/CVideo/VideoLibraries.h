#ifndef SAFELIGHT_VIDEO_LIBRARIES_H
#define SAFELIGHT_VIDEO_LIBRARIES_H
/* FFmpeg's libraries, which are loaded at their first use. They depend on more than a hundred other libraries, whose
   loading would take most of the start of a program, and only workers that process a video need them. Each function
   that is called must be listed here; macros replace its name by a pointer to the loaded function. */
#include <libavcodec/avcodec.h>
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#define SAFELIGHT_AVUTIL_FUNCTIONS(X) \
    X(av_channel_layout_copy) X(av_channel_layout_describe) X(av_channel_layout_uninit) \
    X(av_color_primaries_from_name) X(av_color_primaries_name) \
    X(av_color_range_name) X(av_color_space_from_name) X(av_color_space_name) X(av_color_transfer_from_name) \
    X(av_color_transfer_name) X(av_dict_free) X(av_dict_get) X(av_dict_set) X(av_dict_set_int) \
    X(av_display_rotation_get) X(av_frame_alloc) X(av_frame_free) X(av_frame_get_buffer) X(av_frame_make_writable) \
    X(av_frame_move_ref) X(av_frame_unref) X(av_free) X(av_freep) X(av_get_sample_fmt_name) X(av_log_set_level) \
    X(av_malloc) \
    X(av_pix_fmt_desc_get) X(av_rescale_q) X(av_rescale_q_rnd) X(av_strdup) X(avutil_version)
#define SAFELIGHT_AVCODEC_FUNCTIONS(X) \
    X(av_codec_is_decoder) X(av_codec_iterate) X(av_packet_alloc) X(av_packet_free) X(av_packet_rescale_ts) \
    X(av_packet_unref) X(avcodec_alloc_context3) X(avcodec_descriptor_get) X(avcodec_find_encoder_by_name) \
    X(avcodec_flush_buffers) X(avcodec_free_context) X(avcodec_open2) X(avcodec_parameters_copy) \
    X(avcodec_parameters_from_context) X(avcodec_parameters_to_context) X(avcodec_profile_name) \
    X(avcodec_receive_frame) X(avcodec_receive_packet) X(avcodec_send_frame) X(avcodec_send_packet) X(avcodec_version)
#define SAFELIGHT_AVFORMAT_FUNCTIONS(X) \
    X(av_find_best_stream) X(av_find_input_format) X(av_guess_format) X(av_interleaved_write_frame) X(av_read_frame) \
    X(av_seek_frame) \
    X(av_stream_get_side_data) X(av_stream_new_side_data) X(av_write_trailer) X(avformat_alloc_context) \
    X(avformat_alloc_output_context2) X(avformat_close_input) X(avformat_find_stream_info) X(avformat_free_context) \
    X(avformat_index_get_entry_from_timestamp) X(avformat_new_stream) X(avformat_open_input) X(avformat_query_codec) \
    X(avformat_seek_file) X(avformat_version) X(avformat_write_header) X(avio_alloc_context) X(avio_context_free) \
    X(avio_feof) X(avio_flush)
#define SAFELIGHT_AVFILTER_FUNCTIONS(X) \
    X(av_buffersink_get_ch_layout) X(av_buffersink_get_format) X(av_buffersink_get_frame) \
    X(av_buffersink_get_frame_rate) X(av_buffersink_get_h) X(av_buffersink_get_sample_rate) \
    X(av_buffersink_get_time_base) X(av_buffersink_get_w) X(av_buffersink_set_frame_size) X(av_buffersrc_add_frame) \
    X(av_buffersrc_close) X(av_buffersrc_parameters_alloc) X(av_buffersrc_parameters_set) X(avfilter_get_by_name) \
    X(avfilter_graph_alloc) X(avfilter_graph_alloc_filter) X(avfilter_graph_config) X(avfilter_graph_create_filter) \
    X(avfilter_graph_free) X(avfilter_graph_parse_ptr) X(avfilter_init_str) X(avfilter_inout_alloc) \
    X(avfilter_inout_free) X(avfilter_link)
#define SAFELIGHT_SWSCALE_FUNCTIONS(X) \
    X(sws_freeContext) X(sws_getCoefficients) X(sws_getContext) X(sws_isSupportedInput) X(sws_scale) \
    X(sws_setColorspaceDetails) X(swscale_version)
#define SAFELIGHT_VIDEO_FUNCTIONS(X) \
    SAFELIGHT_AVUTIL_FUNCTIONS(X) SAFELIGHT_AVCODEC_FUNCTIONS(X) SAFELIGHT_AVFORMAT_FUNCTIONS(X) \
    SAFELIGHT_AVFILTER_FUNCTIONS(X) SAFELIGHT_SWSCALE_FUNCTIONS(X)

struct safelight_video_functions {
#define SAFELIGHT_DECLARE(name) __typeof__(&name) name;
    SAFELIGHT_VIDEO_FUNCTIONS(SAFELIGHT_DECLARE)
#undef SAFELIGHT_DECLARE
};

/* Valid after safelight_video_load has returned 1. */
extern struct safelight_video_functions safelight_video_functions;

#ifndef SAFELIGHT_VIDEO_LIBRARIES
#define av_buffersink_get_ch_layout safelight_video_functions.av_buffersink_get_ch_layout
#define av_buffersink_get_format safelight_video_functions.av_buffersink_get_format
#define av_buffersink_get_frame safelight_video_functions.av_buffersink_get_frame
#define av_buffersink_get_frame_rate safelight_video_functions.av_buffersink_get_frame_rate
#define av_buffersink_get_h safelight_video_functions.av_buffersink_get_h
#define av_buffersink_get_sample_rate safelight_video_functions.av_buffersink_get_sample_rate
#define av_buffersink_get_time_base safelight_video_functions.av_buffersink_get_time_base
#define av_buffersink_get_w safelight_video_functions.av_buffersink_get_w
#define av_buffersink_set_frame_size safelight_video_functions.av_buffersink_set_frame_size
#define av_buffersrc_add_frame safelight_video_functions.av_buffersrc_add_frame
#define av_buffersrc_close safelight_video_functions.av_buffersrc_close
#define av_buffersrc_parameters_alloc safelight_video_functions.av_buffersrc_parameters_alloc
#define av_buffersrc_parameters_set safelight_video_functions.av_buffersrc_parameters_set
#define av_channel_layout_copy safelight_video_functions.av_channel_layout_copy
#define av_channel_layout_describe safelight_video_functions.av_channel_layout_describe
#define av_channel_layout_uninit safelight_video_functions.av_channel_layout_uninit
#define av_codec_is_decoder safelight_video_functions.av_codec_is_decoder
#define av_codec_iterate safelight_video_functions.av_codec_iterate
#define av_color_primaries_from_name safelight_video_functions.av_color_primaries_from_name
#define av_color_primaries_name safelight_video_functions.av_color_primaries_name
#define av_color_range_name safelight_video_functions.av_color_range_name
#define av_color_space_from_name safelight_video_functions.av_color_space_from_name
#define av_color_space_name safelight_video_functions.av_color_space_name
#define av_color_transfer_from_name safelight_video_functions.av_color_transfer_from_name
#define av_color_transfer_name safelight_video_functions.av_color_transfer_name
#define av_dict_free safelight_video_functions.av_dict_free
#define av_dict_get safelight_video_functions.av_dict_get
#define av_dict_set safelight_video_functions.av_dict_set
#define av_dict_set_int safelight_video_functions.av_dict_set_int
#define av_display_rotation_get safelight_video_functions.av_display_rotation_get
#define av_find_best_stream safelight_video_functions.av_find_best_stream
#define av_find_input_format safelight_video_functions.av_find_input_format
#define av_frame_alloc safelight_video_functions.av_frame_alloc
#define av_frame_free safelight_video_functions.av_frame_free
#define av_frame_get_buffer safelight_video_functions.av_frame_get_buffer
#define av_frame_make_writable safelight_video_functions.av_frame_make_writable
#define av_frame_move_ref safelight_video_functions.av_frame_move_ref
#define av_frame_unref safelight_video_functions.av_frame_unref
#define av_free safelight_video_functions.av_free
#define av_freep safelight_video_functions.av_freep
#define av_get_sample_fmt_name safelight_video_functions.av_get_sample_fmt_name
#define av_guess_format safelight_video_functions.av_guess_format
#define av_interleaved_write_frame safelight_video_functions.av_interleaved_write_frame
#define av_log_set_level safelight_video_functions.av_log_set_level
#define av_malloc safelight_video_functions.av_malloc
#define av_packet_alloc safelight_video_functions.av_packet_alloc
#define av_packet_free safelight_video_functions.av_packet_free
#define av_packet_rescale_ts safelight_video_functions.av_packet_rescale_ts
#define av_packet_unref safelight_video_functions.av_packet_unref
#define av_pix_fmt_desc_get safelight_video_functions.av_pix_fmt_desc_get
#define av_read_frame safelight_video_functions.av_read_frame
#define av_rescale_q safelight_video_functions.av_rescale_q
#define av_rescale_q_rnd safelight_video_functions.av_rescale_q_rnd
#define av_seek_frame safelight_video_functions.av_seek_frame
#define av_strdup safelight_video_functions.av_strdup
#define av_stream_get_side_data safelight_video_functions.av_stream_get_side_data
#define av_stream_new_side_data safelight_video_functions.av_stream_new_side_data
#define av_write_trailer safelight_video_functions.av_write_trailer
#define avcodec_alloc_context3 safelight_video_functions.avcodec_alloc_context3
#define avcodec_descriptor_get safelight_video_functions.avcodec_descriptor_get
#define avcodec_find_encoder_by_name safelight_video_functions.avcodec_find_encoder_by_name
#define avcodec_flush_buffers safelight_video_functions.avcodec_flush_buffers
#define avcodec_free_context safelight_video_functions.avcodec_free_context
#define avcodec_open2 safelight_video_functions.avcodec_open2
#define avcodec_parameters_copy safelight_video_functions.avcodec_parameters_copy
#define avcodec_parameters_from_context safelight_video_functions.avcodec_parameters_from_context
#define avcodec_parameters_to_context safelight_video_functions.avcodec_parameters_to_context
#define avcodec_profile_name safelight_video_functions.avcodec_profile_name
#define avcodec_receive_frame safelight_video_functions.avcodec_receive_frame
#define avcodec_receive_packet safelight_video_functions.avcodec_receive_packet
#define avcodec_send_frame safelight_video_functions.avcodec_send_frame
#define avcodec_send_packet safelight_video_functions.avcodec_send_packet
#define avcodec_version safelight_video_functions.avcodec_version
#define avfilter_get_by_name safelight_video_functions.avfilter_get_by_name
#define avfilter_graph_alloc safelight_video_functions.avfilter_graph_alloc
#define avfilter_graph_alloc_filter safelight_video_functions.avfilter_graph_alloc_filter
#define avfilter_graph_config safelight_video_functions.avfilter_graph_config
#define avfilter_graph_create_filter safelight_video_functions.avfilter_graph_create_filter
#define avfilter_graph_free safelight_video_functions.avfilter_graph_free
#define avfilter_graph_parse_ptr safelight_video_functions.avfilter_graph_parse_ptr
#define avfilter_init_str safelight_video_functions.avfilter_init_str
#define avfilter_inout_alloc safelight_video_functions.avfilter_inout_alloc
#define avfilter_inout_free safelight_video_functions.avfilter_inout_free
#define avfilter_link safelight_video_functions.avfilter_link
#define avformat_alloc_context safelight_video_functions.avformat_alloc_context
#define avformat_alloc_output_context2 safelight_video_functions.avformat_alloc_output_context2
#define avformat_close_input safelight_video_functions.avformat_close_input
#define avformat_find_stream_info safelight_video_functions.avformat_find_stream_info
#define avformat_free_context safelight_video_functions.avformat_free_context
#define avformat_index_get_entry_from_timestamp safelight_video_functions.avformat_index_get_entry_from_timestamp
#define avformat_new_stream safelight_video_functions.avformat_new_stream
#define avformat_open_input safelight_video_functions.avformat_open_input
#define avformat_query_codec safelight_video_functions.avformat_query_codec
#define avformat_seek_file safelight_video_functions.avformat_seek_file
#define avformat_version safelight_video_functions.avformat_version
#define avformat_write_header safelight_video_functions.avformat_write_header
#define avio_alloc_context safelight_video_functions.avio_alloc_context
#define avio_context_free safelight_video_functions.avio_context_free
#define avio_feof safelight_video_functions.avio_feof
#define avio_flush safelight_video_functions.avio_flush
#define avutil_version safelight_video_functions.avutil_version
#define sws_freeContext safelight_video_functions.sws_freeContext
#define sws_getCoefficients safelight_video_functions.sws_getCoefficients
#define sws_getContext safelight_video_functions.sws_getContext
#define sws_isSupportedInput safelight_video_functions.sws_isSupportedInput
#define sws_scale safelight_video_functions.sws_scale
#define sws_setColorspaceDetails safelight_video_functions.sws_setColorspaceDetails
#define swscale_version safelight_video_functions.swscale_version
#endif
#endif
