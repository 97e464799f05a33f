#ifndef SAFELIGHT_CJXL_H
#define SAFELIGHT_CJXL_H
#include <jxl/decode.h>
#endif
