#ifndef SAFELIGHT_CPIXELS_H
#define SAFELIGHT_CPIXELS_H
#include <stddef.h>
#include <stdint.h>
int safelight_pixels_version(void);
#endif
