#ifndef SAFELIGHT_CCURL_H
#define SAFELIGHT_CCURL_H
// libcurl's macros that check types work only with compilers of C.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// Swift cannot call functions with variable arguments, so there is a function for each type of value.

typedef size_t (*safelight_curl_data)(char *bytes, size_t size, size_t count, void *context);
typedef int (*safelight_curl_seek)(void *context, curl_off_t offset, int origin);
typedef int (*safelight_curl_progress)(void *context, curl_off_t down, curl_off_t downloaded, curl_off_t up,
                                       curl_off_t uploaded);

static inline CURLcode safelight_curl_set_long(CURL *handle, CURLoption option, long value) {
    return (curl_easy_setopt)(handle, option, value);
}
static inline CURLcode safelight_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return (curl_easy_setopt)(handle, option, value);
}
static inline CURLcode safelight_curl_set_text(CURL *handle, CURLoption option, const char *value) {
    return (curl_easy_setopt)(handle, option, value);
}
static inline CURLcode safelight_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return (curl_easy_setopt)(handle, option, value);
}
static inline CURLcode safelight_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return (curl_easy_setopt)(handle, option, value);
}
static inline CURLcode safelight_curl_set_data(CURL *handle, CURLoption option, safelight_curl_data value) {
    return (curl_easy_setopt)(handle, option, value);
}
static inline CURLcode safelight_curl_set_seek(CURL *handle, safelight_curl_seek value) {
    return (curl_easy_setopt)(handle, CURLOPT_SEEKFUNCTION, value);
}
static inline CURLcode safelight_curl_set_progress(CURL *handle, safelight_curl_progress value) {
    return (curl_easy_setopt)(handle, CURLOPT_XFERINFOFUNCTION, value);
}
static inline CURLcode safelight_curl_status(CURL *handle, long *status) {
    return (curl_easy_getinfo)(handle, CURLINFO_RESPONSE_CODE, status);
}
#endif
