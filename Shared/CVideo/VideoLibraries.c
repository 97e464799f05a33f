/* Loads the libraries. Only in this file the names of their functions are not replaced. */
#define SAFELIGHT_VIDEO_LIBRARIES
#include "VideoLibraries.h"

#include "CVideo.h"

#include <dlfcn.h>
#include <pthread.h>

struct safelight_video_functions safelight_video_functions;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_loaded;

static void *open_library(const char *name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL); }

#define LIBRARY(name, version) open_library("lib" name ".so." AV_STRINGIFY(version))
#define LOAD(name) \
    if (!(safelight_video_functions.name = (__typeof__(&name))dlsym(handle, #name))) return 0;

/* Loads the versions that the headers are of. The libraries stay loaded. */
static int load(void) {
    void *handle = LIBRARY("avutil", LIBAVUTIL_VERSION_MAJOR);
    if (!handle) return 0;
    SAFELIGHT_AVUTIL_FUNCTIONS(LOAD)
    if (!(handle = LIBRARY("avcodec", LIBAVCODEC_VERSION_MAJOR))) return 0;
    SAFELIGHT_AVCODEC_FUNCTIONS(LOAD)
    if (!(handle = LIBRARY("avformat", LIBAVFORMAT_VERSION_MAJOR))) return 0;
    SAFELIGHT_AVFORMAT_FUNCTIONS(LOAD)
    if (!(handle = LIBRARY("swscale", LIBSWSCALE_VERSION_MAJOR))) return 0;
    SAFELIGHT_SWSCALE_FUNCTIONS(LOAD)
    if (!(handle = LIBRARY("avfilter", LIBAVFILTER_VERSION_MAJOR))) return 0;
    SAFELIGHT_AVFILTER_FUNCTIONS(LOAD)
    return 1;
}

static void load_once(void) { is_loaded = load(); }

int safelight_video_load(void) {
    pthread_once(&once, load_once);
    return is_loaded;
}
