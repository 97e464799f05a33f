import Foundation
import TestSupport

/// FFmpeg's libraries in one process: a small C program that writes an image of a frame for each line of its input.
///
/// The start of the program is not measured. For each line it opens the file, seeks, decodes up to the frame, scales it
/// and encodes a JPEG.
final class LibavPeer {
    private let child: Child

    init(_ bench: BenchmarkContext) async throws {
        guard let compiler = TestPaths.program("cc") ?? TestPaths.program("gcc"),
            let config = TestPaths.program("pkg-config")
        else { throw BenchmarkError("cc or pkg-config is not installed (Debian: gcc pkg-config)") }
        let folder = try bench.paths.folder("libav")
        try Data(Self.source.utf8).write(to: URL(fileURLWithPath: "\(folder)/frame.c"))
        let libraries = ["libavformat", "libavcodec", "libswscale", "libavutil"]
        let flags = try RunningProgram.run(config, ["--cflags", "--libs"] + libraries, seconds: 10)
        let flagList = flags.output.split(whereSeparator: \.isWhitespace).map(String.init)
        let built = try RunningProgram.run(
            compiler,
            ["-O2", "-o", "\(folder)/frame", "\(folder)/frame.c"] + flagList,
            seconds: 60
        )
        guard built.status == 0 else {
            throw BenchmarkError("FFmpeg's headers are not installed (Debian: libavformat-dev libswscale-dev)")
        }
        child = try Child([], program: "\(folder)/frame")
        try await child.expect("ready")
    }

    /// Writes an image of the frame at half a second, 256 pixels wide.
    func draw(_ path: String, _ output: String) async throws {
        try child.send("\(path) \(output)")
        try await child.expect("done")
    }

    private static let source = #"""
        #include <libavcodec/avcodec.h>
        #include <libavformat/avformat.h>
        #include <libavutil/opt.h>
        #include <libswscale/swscale.h>
        #include <stdio.h>
        #include <stdlib.h>

        static void check(int result) {
            if (result < 0) { fprintf(stderr, "%s\n", av_err2str(result)); exit(1); }
        }

        static void draw(const char *path, const char *output) {
            AVFormatContext *file = NULL;
            check(avformat_open_input(&file, path, NULL, NULL));
            check(avformat_find_stream_info(file, NULL));
            const AVCodec *codec = NULL;
            int index = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
            check(index);
            AVStream *stream = file->streams[index];
            AVCodecContext *decoder = avcodec_alloc_context3(codec);
            check(avcodec_parameters_to_context(decoder, stream->codecpar));
            decoder->thread_count = 1;
            check(avcodec_open2(decoder, codec, NULL));
            int64_t target = av_rescale_q(500000, AV_TIME_BASE_Q, stream->time_base);
            check(av_seek_frame(file, index, target, AVSEEK_FLAG_BACKWARD));
            AVPacket *packet = av_packet_alloc();
            AVFrame *frame = av_frame_alloc();
            int is_found = 0;
            while (!is_found && av_read_frame(file, packet) >= 0) {
                if (packet->stream_index == index) {
                    check(avcodec_send_packet(decoder, packet));
                    while (!is_found && avcodec_receive_frame(decoder, frame) >= 0)
                        is_found = frame->best_effort_timestamp >= target;
                }
                av_packet_unref(packet);
            }
            if (!is_found) check(AVERROR_EOF);
            AVFrame *small = av_frame_alloc();
            small->format = AV_PIX_FMT_YUVJ420P;
            small->width = 256;
            small->height = frame->height * 256 / frame->width & ~1;
            check(av_frame_get_buffer(small, 0));
            struct SwsContext *scaler = sws_getContext(frame->width, frame->height, frame->format, small->width,
                                                       small->height, small->format, SWS_BICUBIC, NULL, NULL, NULL);
            sws_scale(scaler, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height, small->data,
                      small->linesize);
            AVCodecContext *encoder = avcodec_alloc_context3(avcodec_find_encoder(AV_CODEC_ID_MJPEG));
            encoder->width = small->width;
            encoder->height = small->height;
            encoder->pix_fmt = small->format;
            encoder->time_base = (AVRational){1, 1};
            encoder->flags |= AV_CODEC_FLAG_QSCALE;
            small->quality = 3 * FF_QP2LAMBDA;
            check(avcodec_open2(encoder, NULL, NULL));
            check(avcodec_send_frame(encoder, small));
            check(avcodec_receive_packet(encoder, packet));
            FILE *out = fopen(output, "wb");
            fwrite(packet->data, 1, packet->size, out);
            fclose(out);
            avcodec_free_context(&encoder);
            sws_freeContext(scaler);
            av_frame_free(&small);
            av_frame_free(&frame);
            av_packet_free(&packet);
            avcodec_free_context(&decoder);
            avformat_close_input(&file);
        }

        int main(void) {
            char path[4096], output[4096];
            av_log_set_level(AV_LOG_ERROR);
            puts("ready");
            fflush(stdout);
            while (scanf("%4095s %4095s", path, output) == 2) {
                draw(path, output);
                puts("done");
                fflush(stdout);
            }
        }
        """#
}
